"""Concurrent use of agents and histories: tasks, threads and nested loops."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from dragoman import Agent, ChatHistory, Message, Request, Result, SessionIdentity, ToolCall, tool
from dragoman.errors import Conflict, InvalidInputError
from dragoman.testing import ScriptedModel
from tests.agent.cutting import DONE, Kept, Scene, kept
from tests.agent.scripts import asks, call, model, weather
from tests.agent.torture import check_on_the_wire, results_in

_HISTORIES = pytest.mark.parametrize("kind", ["memory", "sqlite", "files", "blocking"])
_SHARED = pytest.mark.parametrize("is_shared", [True, False], ids=["one history", "two"])


async def _two(first: Kept, is_shared: bool) -> tuple[Kept, Kept]:
    """One session opened twice: the same history object, or one each."""
    history = first.history
    if is_shared:
        return first, first
    if isinstance(history, ChatHistory):
        return first, Kept(await ChatHistory.open(history.identity, history.storage))
    return first, Kept(ChatHistory.open_sync(history.identity, history.storage))


def _talker(name: str, id: str, look: Any) -> Agent:
    """An agent that looks up a name once, then answers."""

    def answer(request: Request) -> Message | str:
        said = [call.arguments["name"] for m in request.messages for call in m.tool_calls]
        return DONE if name in said else asks(ToolCall.create(id, "look", {"name": name}))

    return Agent(ScriptedModel([answer], repeat=True), tools=[look])


@pytest.mark.parametrize("ids", [("call_1", "call_2"), ("call_1", "call_1")], ids=["", "same id"])
@_SHARED
@_HISTORIES
async def test_two_concurrent_prompts_on_one_history(
    kind: str,
    is_shared: bool,
    ids: tuple[str, str],
    tmp_path: Path,
) -> None:
    """Both are answered, and every message is stored once."""
    ran: Counter[str] = Counter()

    @tool
    async def look(name: str) -> str:
        """Look something up."""
        ran[name] += 1
        await asyncio.sleep(0)
        return f"found {name}"

    async with kept(kind, tmp_path) as make:
        both = await _two(await make(1), is_shared)
        talking = [
            _talker(name, id, look).send(name, history=each.history)
            for name, id, each in zip("AB", ids, both, strict=True)
        ]
        results = await asyncio.gather(*talking)
        messages = await both[0].messages()
    assert all(result.text.endswith(DONE) for result in results)
    assert ran == {"A": 1, "B": 1}
    found = Counter(message.id for message in messages)
    assert found == Counter(message.id for result in results for message in result.messages)
    assert max(found.values()) == 1
    if len({*ids}) == len(ids):  # the Responses API warns about reused ids (I5)
        check_on_the_wire(messages)


@_SHARED
@_HISTORIES
async def test_only_one_of_two_concurrent_resumptions_runs_the_tools(
    kind: str,
    is_shared: bool,
    tmp_path: Path,
) -> None:
    """The other one raises, or continues after the first."""
    async with kept(kind, tmp_path) as make:
        for number in range(5):
            scene = Scene()
            one, two = await _two(await make(number), is_shared)
            waiting = asks(*(ToolCall.create(each, "patient", {"id": each}) for each in "abc"))
            await _added(one.history, [Message.user("Go"), waiting])
            outcomes = await asyncio.gather(
                *(scene.agent().send(history=each.history) for each in (one, two)),
                return_exceptions=True,
            )
            messages = await one.messages()
            asked = Counter(each.id for message in messages for each in message.tool_calls)
            assert [asked[each] for each in "abc"] == [1, 1, 1]
            # The later one may also call the model, which then calls "d" again.
            assert Counter(scene.begun) <= asked
            assert Counter(id for id, _ in results_in(messages)) <= asked
            assert [type(each) for each in outcomes].count(Result) >= 1
            assert all(isinstance(each, (Result, Conflict)) for each in outcomes)


async def _added(history: Any, messages: list[Message]) -> None:
    added = history.extend(messages)
    if asyncio.iscoroutine(added):
        await added


async def test_a_repeated_approval_runs_the_call_once(tmp_path: Path) -> None:
    """Two concurrent approvals of the same call run it once."""
    paid: list[str] = []

    @tool(requires_approval=True)
    async def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return "paid"

    store, who = f"sqlite:///{tmp_path}/chats.db", SessionIdentity(chat="7")
    async with (
        await ChatHistory.open(who, storage=store) as one,
        await ChatHistory.open(who, storage=store) as two,
    ):
        await Agent(model(asks(call("pay", to="Bob"))), tools=[pay]).send("Pay", history=one)
        outcomes = await asyncio.gather(
            *(
                Agent(model("Paid."), tools=[pay]).send(history=each, approvals={"call_1": True})
                for each in (one, two)
            ),
            return_exceptions=True,
        )
        messages = await one.messages()
    assert paid == ["Bob"]
    refused = [each for each in outcomes if isinstance(each, BaseException)]
    assert len(refused) == 1
    assert isinstance(refused[0], (Conflict, InvalidInputError))  # depending on timing
    assert results_in(messages) == [("call_1", "paid")]


# --- threads


def test_fifty_threads_share_an_agent(tmp_path: Path) -> None:
    """Each thread has its own conversation and gets its own answer."""
    everybody = Barrier(50)
    agent = Agent(ScriptedModel([_found], repeat=True), tools=[_looking()])

    def talk(number: int) -> list[str]:
        who = SessionIdentity(chat=str(number))
        with ChatHistory.open_sync(who, storage=f"sqlite:///{tmp_path}/chats.db") as history:
            everybody.wait(60)
            result = agent.send_sync(f"{number}", history=history)
            assert result.messages == history.messages()
            return [text for _, text in results_in(result.messages)]

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(talk, range(50))) == [[f"found {n}"] for n in range(50)]


def _found(request: Request) -> Message | str:
    if request.messages[-1].tool_results:
        return DONE
    return asks(ToolCall.create("call_1", "look", {"name": request.messages[-1].text}))


def _looking() -> Any:
    @tool
    def look(name: str) -> str:
        """Look something up."""
        return f"found {name}"

    return look


async def test_a_blocking_call_inside_a_running_loop() -> None:
    """A blocking call works inside a running loop, and blocks only that loop."""
    agent = Agent(model(asks(call("weather", city="Basel")), DONE), tools=[weather])
    assert agent.send_sync("Go").text == DONE
    with Agent(model(DONE)).stream_sync("Go") as stream:
        assert "".join(chunk.output for chunk in stream) == DONE


@pytest.mark.parametrize("depth", [1, 5])
def test_agents_within_tools(depth: int) -> None:
    """A blocking tool calls another agent, whose tool calls another."""

    def agent(level: int) -> Agent:
        @tool
        def ask() -> str:
            """Ask somebody else."""
            if level == 0:
                return "the bottom"
            return agent(level - 1).send_sync("Go").text

        def answer(request: Request) -> Message | str:
            results = request.messages[-1].tool_results
            return results[0].text if results else asks(call("ask"), call("ask", "call_2"))

        return Agent(ScriptedModel([answer], repeat=True), tools=[ask])

    assert agent(depth).send_sync("Go").text == "the bottom"
    assert asyncio.run(agent(depth).send("Go")).text == "the bottom"


def test_a_blocking_call_in_the_background_loop_raises() -> None:
    """It would wait for itself, so it raises instead of blocking for ever."""

    @tool
    async def ask() -> str:
        """Ask somebody else, the wrong way."""
        return Agent(model(DONE)).send_sync("Go").text

    result = Agent(model(asks(call("ask")), DONE), tools=[ask]).send_sync("Go")
    (told,) = result.messages[2].tool_results
    assert told.is_error
    assert result.text == DONE
