"""Runs that are interrupted at any moment: how they are created, stored, cancelled and checked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from dragoman import (
    Agent,
    ChatHistory,
    ConversationHistory,
    Message,
    Messages,
    Request,
    Role,
    SessionIdentity,
    ToolCall,
    ToolExecutor,
    tool,
)
from dragoman.agent.round_records import UNKNOWN
from dragoman.agent.stream import AgentStream
from dragoman.testing import ScriptedModel
from tests.agent.scripts import asks, call
from tests.agent.torture import check_on_the_wire, results_in
from tests.cancelling import cancelled_at
from tests.environment import PATIENCE

DONE = "All done."
_MOST = 400
_ONE = SessionIdentity(chat="7")


class Report(Struct):
    """What a typed run gives."""

    city: str


# --- what is run


class Scene:
    """An agent whose tools record what they do; a new one for each attempt."""

    def __init__(self, way: str = "send", limit: int | None = None) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.way = way
        self._limit = limit

    def agent(self) -> Agent[Any, Any]:
        """An agent with two rounds of tools, and a text or typed answer."""
        output: Any = Report if self.way == "typed" else None
        return Agent(
            ScriptedModel([self._answer], repeat=True),
            tools=[self._patient(), self._blocking(), self._guarded()],
            output=output,
            executor=ToolExecutor(limit=self._limit),
        )

    def _patient(self) -> Any:
        @tool
        async def patient(id: str) -> str:
            """Waits a little."""
            self.begun.append(id)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.ended.append(id)
            return f"{id} is done"

        return patient

    def _blocking(self) -> Any:
        @tool
        def blocking(id: str) -> str:
            """Runs on a thread."""
            self.begun.append(id)
            self.ended.append(id)
            return f"{id} is done"

        return blocking

    def _guarded(self) -> Any:
        @tool(requires_approval=self.way == "approval")
        async def guarded(id: str) -> str:
            """Perhaps somebody has to agree."""
            self.begun.append(id)
            await asyncio.sleep(0)
            self.ended.append(id)
            return f"{id} is done"

        return guarded

    def _answer(self, request: Request) -> Message | str:
        said = sum(bool(m.tool_calls) for m in request.messages)
        if said == 0:
            return asks(_call("patient", "a"), _call("blocking", "b"), _call("patient", "c"))
        if said == 1:
            return asks(_call("guarded", "d"), text="Go on?")
        return (
            asks(call("return_result", f"out{said}", city="Basel")) if self.way == "typed" else DONE
        )

    # --- ways to run it

    async def run(self, history: Any) -> None:
        """Runs from the prompt to the answer."""
        if self.way == "approval":
            asked = await self.agent().send("Go", history=history)
            await self.agent().send(history=history, approvals={c.id: True for c in asked.deferred})
        elif self.way == "chunks":
            async with self.streamed(history) as stream:
                async for _ in stream:
                    await asyncio.sleep(0)  # the reader's own waits count too
        elif self.way == "events":
            async with self.streamed(history) as stream:
                async for _ in stream.events():
                    await asyncio.sleep(0)
        else:
            await self.agent().send("Go", history=history)

    def streamed(self, history: Any) -> AgentStream[Any]:
        """The run as a stream, to be read by the caller."""
        return self.agent().stream("Go", history=history)

    async def resume(self, history: Any, messages: Sequence[Message]) -> None:
        """Resumes the conversation and runs it to the end."""
        if messages and messages[-1].text == DONE:
            return
        prompt = () if any(m.role is Role.USER for m in messages) else ("Go",)
        result = await self.agent().send(*prompt, history=history)
        if result.deferred:
            approvals = {each.id: True for each in result.deferred}
            result = await self.agent().send(history=history, approvals=approvals)
        if self.way == "typed":
            assert result.output == Report("Basel")
        else:
            assert result.text.endswith(DONE)

    async def until_threads_end(self) -> None:
        """Waits until abandoned blocking tools have ended."""
        async with asyncio.timeout(PATIENCE):
            while "b" in self.begun and "b" not in self.ended:  # noqa: ASYNC110 - a thread's doing
                await asyncio.sleep(0.001)

    # --- what must hold

    def check_left(self, messages: Sequence[Message]) -> None:
        """Every started call is recorded once, with its result or as unknown."""
        results = dict(results_in(messages))
        assert Counter(self.begun) <= Counter(set(self.begun))
        assert set(self.begun) <= results.keys()
        for id, text in results.items():
            assert text == UNKNOWN or id in self.ended or id.startswith("out")

    def check_end(self, messages: Sequence[Message]) -> None:
        """Every call has one result, and the conversation is valid for every provider."""
        self.check_left(messages)
        asked = [each.id for m in messages for each in m.tool_calls]
        answered = [id for id, _ in results_in(messages)]
        assert sorted(asked) == sorted(answered)
        assert {"a", "b", "c", "d"} <= set(asked)
        check_on_the_wire(messages)


def _call(name: str, id: str) -> ToolCall:
    return ToolCall.create(id, name, {"id": id})


# --- storage


class Kept:
    """A conversation that outlives a run."""

    def __init__(self, history: Any) -> None:
        self.history = history

    async def messages(self) -> Messages:
        """All messages."""
        if isinstance(self.history, ConversationHistory):
            return self.history.messages
        found = self.history.messages()
        return found if isinstance(found, Messages) else await found


@asynccontextmanager
async def kept(kind: str, path: Path) -> AsyncGenerator[Callable[[int], Awaitable[Kept]]]:
    """A factory of fresh conversations of a kind."""
    if kind == "strict":

        async def strict(_number: int) -> Kept:
            return Kept(ConversationHistory([Message.system("Be brief.")]))

        yield strict
        return
    urls = {"files": f"file://{path}/x", "memory": "memory:"}
    url = urls.get(kind, f"sqlite:///{path}/x.db")
    if kind == "blocking":
        with ChatHistory.open_sync(_ONE, storage=url) as first:

            async def blocking(number: int) -> Kept:
                who = SessionIdentity(chat=str(number))
                return Kept(ChatHistory.open_sync(who, storage=first.storage))

            yield blocking
        return
    async with await ChatHistory.open(_ONE, storage=url) as one:

        async def stored(number: int) -> Kept:
            return Kept(await ChatHistory.open(SessionIdentity(chat=str(number)), one.storage))

        yield stored


# --- cancelling


async def at_wait(work: Coroutine[Any, Any, Any], nth: int) -> bool:
    """Cancels at the n-th wait; returns False if the work ended before."""

    async def run() -> None:
        await cancelled_at(work, nth)

    return await _was_cut(asyncio.create_task(run()))


async def at_tick(work: Coroutine[Any, Any, Any], nth: int) -> bool:
    """Cancels after n iterations of the loop; returns False if the work ended before."""
    task = asyncio.create_task(work)
    for _ in range(nth):
        await asyncio.sleep(0)
    if not task.done():
        task.cancel()
    return await _was_cut(task)


async def _was_cut(task: asyncio.Task[Any]) -> bool:
    try:
        await task
    except asyncio.CancelledError:
        return True
    assert not task.cancelling()  # a cancellation must not be suppressed
    return False


async def alone(before: set[asyncio.Task[Any]]) -> None:
    """Asserts that no other tasks run than before, after collected ones have ended."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def everywhere(attempt: Callable[[int], Awaitable[bool]]) -> None:
    """Tries the first moment, the second and so on, until the run ends before it."""
    for nth in range(1, _MOST):
        if not await attempt(nth):
            assert nth > 2
            return
    pytest.fail("it never ends")
