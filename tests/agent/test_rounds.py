"""What is stored of a round of tools, and when."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Agent,
    ChatHistory,
    Message,
    Role,
    SessionIdentity,
    ToolCall,
    ToolExecutor,
    tool,
)
from dragoman.agent import Hooks, RunContext, ToolFinished, ToolStarted
from dragoman.agent.conversations import begun_in, with_begun
from dragoman.agent.round_records import UNKNOWN
from dragoman.errors import Conflict, InvalidInputError
from dragoman.history import MemoryStorage
from dragoman.model.collection import Messages
from dragoman.model.messages import make_message
from dragoman.model.tools import ToolResult
from tests.agent.scripts import asks, call, model, weather


async def opened(path: Path) -> ChatHistory:
    """A history on disk."""
    return await ChatHistory.open(SessionIdentity(chat="7"), storage=f"sqlite:///{path}/chats.db")


async def stored(path: Path) -> list[Message]:
    """The messages that another process would find."""
    async with await opened(path) as history:
        return list(await history.messages())


def results(message: Message) -> dict[str, str]:
    """The results in a message, by their calls."""
    return {result.call_id: result.text for result in message.tool_results}


async def test_a_result_is_stored_immediately(tmp_path: Path) -> None:
    """While other tools still run; their stored results say that the outcome is unknown."""
    seen: dict[str, Any] = {}
    quick_is_done = asyncio.Event()

    @tool
    async def quick() -> str:
        """Ends at once."""
        seen["begun"] = results((await stored(tmp_path))[-1])
        quick_is_done.set()
        return "quick"

    @tool
    async def slow() -> str:
        """Ends later."""
        await quick_is_done.wait()
        for _ in range(200):
            seen["meanwhile"] = results((await stored(tmp_path))[-1])
            if seen["meanwhile"]["a"] == "quick":
                break
        return "slow"

    agent = Agent(model(asks(call("quick", "a"), call("slow", "b")), "Done."), tools=[quick, slow])
    async with await opened(tmp_path) as history:
        result = await agent.send("Go", history=history)
    assert seen["begun"] == {"a": UNKNOWN, "b": UNKNOWN}
    assert seen["meanwhile"] == {"a": "quick", "b": UNKNOWN}
    kept = await stored(tmp_path)
    assert [m.role.value for m in kept] == ["user", "assistant", "tool", "assistant"]
    assert results(kept[2]) == {"a": "quick", "b": "slow"}
    assert [m.id for m in kept] == [m.id for m in result.messages]


async def test_in_sequence_only_a_started_call_is_unknown(tmp_path: Path) -> None:
    """A call that was not started has no result yet: it is run when the run is resumed."""
    seen: list[dict[str, str]] = []

    @tool
    async def step(number: int) -> str:
        """One of several."""
        seen.append(results((await stored(tmp_path))[-1]))
        return f"step {number}"

    calls = asks(*(call("step", f"c{n}", number=n) for n in range(3)))
    agent = Agent(model(calls, "Done."), tools=[step], executor=ToolExecutor(limit=1))
    async with await opened(tmp_path) as history:
        await agent.send("Go", history=history)
    assert seen == [
        {"c0": UNKNOWN},
        {"c0": "step 0", "c1": UNKNOWN},
        {"c0": "step 0", "c1": "step 1", "c2": UNKNOWN},
    ]


async def test_a_cancelled_run_stores_what_happened(tmp_path: Path) -> None:
    """Finished tools have their results; started ones are unknown; the rest is run when resumed."""
    ran: list[int] = []
    begun = asyncio.Event()

    @tool
    async def step(number: int) -> str:
        """The second one hangs."""
        ran.append(number)
        if number == 1:
            begun.set()
            await asyncio.sleep(3600)
        return f"step {number}"

    calls = asks(*(call("step", f"c{n}", number=n) for n in range(3)))
    settings: dict[str, Any] = {"tools": [step], "executor": ToolExecutor(limit=1)}
    async with await opened(tmp_path) as history:
        task = asyncio.create_task(Agent(model(calls), **settings).send("Go", history=history))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert results((await stored(tmp_path))[-1]) == {"c0": "step 0", "c1": UNKNOWN}
    async with await opened(tmp_path) as history:
        result = await Agent(model("Done."), **settings).send(history=history)
    assert ran == [0, 1, 2]
    assert result.output == "Done."
    kept = await stored(tmp_path)
    assert [results(m) for m in kept if m.tool_results] == [
        {"c0": "step 0", "c1": UNKNOWN},
        {"c2": "step 2"},
    ]


async def test_an_invalid_call_keeps_its_result(tmp_path: Path) -> None:
    """The error is known at once, and is not overwritten when other calls start."""
    calls = asks(call("weather", "a", town="x"), call("weather", "b", city="Basel"))
    async with await opened(tmp_path) as history:
        await Agent(model(calls, "Done."), tools=[weather]).send("Go", history=history)
    told = results((await stored(tmp_path))[2])
    assert "city" in told["a"]
    assert told["b"] == "rain in Basel"


class Slow:
    """A conversation with slow writes, which are recorded."""

    keeps_rounds = True

    def __init__(self) -> None:
        self.kept: list[Message] = []
        self.writings: list[dict[str, str]] = []
        self.begun: list[tuple[str, ...]] = []
        self.state: dict[str, str] = {}
        """What a program that starts now would find, by the calls that were begun."""
        self.replaced = 0

    async def window(self, model: str | None, tools: Any, system: Any) -> Messages:  # noqa: ARG002 - all of it
        """All messages."""
        return Messages(*self.kept)

    async def add(self, message: Message) -> Message:
        """Store a message."""
        self.kept.append(message)
        await self._write(message)
        return message

    async def replace(self, message: Message) -> Message:
        """Replace the last message."""
        self.kept[-1] = message
        self.replaced += 1
        await self._write(message)
        return message

    async def _write(self, message: Message) -> None:
        if message.role is Role.TOOL:
            self.writings.append(results(message))
            self.begun.append(begun_in(message))
            self.state |= dict.fromkeys(begun_in(message), UNKNOWN) | results(message)
        for _ in range(5):
            await asyncio.sleep(0)


@tool
async def step(number: int) -> str:
    """One of many."""
    return f"step {number}"


def many(count: int) -> Message:
    """An answer with that many calls."""
    return asks(*(call("step", f"c{n}", number=n) for n in range(count)))


@pytest.mark.parametrize(("limit", "most"), [(8, 127), (None, 3), (1, 1001)])
async def test_a_long_round_writes_each_result_once(limit: int | None, most: int) -> None:
    """Together with the next starts; no message is written twice, and writes aren't delayed."""
    slow = Slow()
    agent = Agent(model(many(1000), "Done."), tools=[step], executor=ToolExecutor(limit=limit))
    result = await agent.send("Go", history=slow)
    assert result.output == "Done."
    assert slow.replaced == 0
    assert len(slow.writings) <= most
    written = [id for writing in slow.writings for id in writing]
    assert sorted(written) == sorted({f"c{n}" for n in range(1000)})
    assert {id: text for writing in slow.writings for id, text in writing.items()} == {
        f"c{n}": f"step {n}" for n in range(1000)
    }
    begun = [id for ids in slow.begun for id in ids]
    assert begun == [f"c{n}" for n in range(1000)]
    open_calls = 0
    for begins, ends in zip(slow.begun, slow.writings, strict=True):
        open_calls += len(begins) - len(ends)
        assert 0 <= open_calls <= (limit or 1000)
    assert [message.id for message in slow.kept] == [message.id for message in result.messages]


@pytest.mark.parametrize("count", [8, 40])
async def test_events_follow_the_writes(count: int) -> None:
    """A tool starts after its start is stored, and a result is reported after it is stored."""
    slow = Slow()
    agent = Agent(model(many(count), "Done."), tools=[step])
    async for event in agent.stream("Go", history=slow).events():
        if isinstance(event, ToolStarted):
            assert slow.state[event.call.id] == UNKNOWN
        elif isinstance(event, ToolFinished):
            assert slow.state[event.call.id] == event.result.text
    assert len(slow.writings) < 20


@pytest.mark.parametrize("count", [3, 9])
async def test_leaving_a_stream_loses_no_unstarted_call(count: int) -> None:
    """In sequence, only started calls are unknown, whenever the reader leaves."""
    for taken in range(4, 11):
        slow = Slow()
        settings: dict[str, Any] = {"tools": [step], "executor": ToolExecutor(limit=1)}
        begun: list[str] = []
        async with Agent(model(many(count)), **settings).stream("Go", history=slow) as stream:
            events = stream.events()
            for _ in range(taken):
                event = await anext(events)
                begun += [event.call.id] if isinstance(event, ToolStarted) else []
        if slow.writings:
            assert set(slow.state) == set(begun)


@pytest.mark.parametrize("count", [2, 9])
async def test_a_failing_round_keeps_its_results(count: int) -> None:
    """A hook fails for the second of two simultaneous results: the first is stored."""

    def strict(call: ToolCall, result: ToolResult, _run: RunContext) -> None:
        if call.id == "c1":
            raise ValueError(result.text)

    slow = Slow()
    agent = Agent(model(many(count)), tools=[step], hooks=Hooks(after_tool_call=strict))
    with pytest.raises(ValueError, match="step 1"):
        await agent.send("Go", history=slow)
    assert slow.state["c0"] == "step 0"
    assert slow.state["c1"] == UNKNOWN
    assert set(slow.state) == {f"c{n}" for n in range(min(count, 8))}  # of nine, one never started
    assert {*slow.kept[-1].tool_results[0].text} == {*"step 0"}
    assert results(slow.kept[-1]) == slow.state  # and readers need to know nothing of rounds


async def test_a_long_round_that_was_killed_is_resumed() -> None:
    """Results stay, started calls without one are unknown, the rest is run once, in order."""
    ran: list[int] = []

    @tool
    async def step(number: int) -> str:
        """One of many."""
        ran.append(number)
        return f"step {number}"

    calls = many(12)
    first = with_begun(make_message(Role.TOOL), ["c0", "c1", "c2"])
    second = with_begun(make_message(Role.TOOL, (ToolResult("c1", "step 1"),)), ["c3"])
    path = "memory://"
    async with ChatHistory(SessionIdentity(chat="7"), path, {"store_meta": False}) as history:
        await history.extend([Message.user("Go"), calls, first, second])
        with pytest.raises(InvalidInputError, match="8 pending calls"):
            await Agent(model("Done."), tools=[step]).send(history=history, results={"c3": "no"})
        await Agent(model("Done."), tools=[step]).send(history=history)
        kept = await history.messages()
    assert ran == [*range(4, 12)]
    told = {id: text for message in kept for id, text in results(message).items()}
    unknown = dict.fromkeys(("c0", "c2", "c3"), UNKNOWN)
    assert told == {f"c{n}": f"step {n}" for n in range(12)} | unknown
    assert sum(len(results(message)) for message in kept) == 12


async def test_calls_that_another_run_has_started_are_not_started() -> None:
    """If another run resumed the round meanwhile, the first one stops and explains why."""
    resumed = 0

    @tool
    async def step(number: int) -> str:
        """The ninth finds that the session has been resumed elsewhere."""
        nonlocal resumed
        if number == 0:
            other = await ChatHistory.open(SessionIdentity(chat="7"), storage)
            await other.add(with_begun(make_message(Role.TOOL), ["c10"]))
            resumed += 1
        assert number != 10
        return f"step {number}"

    storage = MemoryStorage()
    async with ChatHistory(SessionIdentity(chat="7"), storage) as history:
        with pytest.raises(Conflict, match="another run"):
            await Agent(model(many(12)), tools=[step]).send("Go", history=history)
    assert resumed == 1
