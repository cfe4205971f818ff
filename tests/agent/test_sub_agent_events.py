"""Events of sub-agents, as seen by the reader of the run that calls them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, ToolExecutor, tool
from dragoman.agent import Hooks, RunContext
from dragoman.agent.events import (
    AgentEvent,
    RunFinished,
    SubAgentEvent,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from tests.agent.scripts import asks, call, model, weather


def geographer() -> Agent[Any, str]:
    """An agent that calls a tool before it answers."""
    return Agent(model(asks(call("weather", "w", city="Mostar")), "It rains."), tools=[weather])


def asked(agent: Agent[Any, str], *ids: str, **options: Any) -> Agent[Any, str]:
    """An agent that calls this one, once for each id, and then answers."""
    calls = asks(*(call("maps", id, prompt="Where?") for id in ids))
    return Agent(model(calls, "Done."), tools=[agent.as_tool("maps", "Maps.")], **options)


def names(events: list[AgentEvent]) -> list[str]:
    """The event types; those of sub-agents have the ids of the calls in front."""
    return [_name(event) for event in events]


def _name(event: AgentEvent) -> str:
    if isinstance(event, SubAgentEvent):
        return f"{event.call.id}.{_name(event.event)}"
    return type(event).__name__


def texts(events: list[AgentEvent]) -> list[str]:
    """The pieces of text of the sub-agents."""
    within = [event.event for event in events if isinstance(event, SubAgentEvent)]
    return [event.text for event in within if isinstance(event, TextDelta)]


WITHIN = [
    "StepStarted", "ResponseReceived", "MessageAdded", "ToolStarted", "ToolFinished",
    "MessageAdded", "StepStarted", "TextDelta", "TextDelta", "ResponseReceived", "MessageAdded",
    "RunFinished",
]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 8])
async def test_events_of_an_agent_that_is_a_tool_are_in_the_stream(limit: int) -> None:
    """With the id of their call, between its start and its end, in order."""
    agent = asked(geographer(), "m", executor=ToolExecutor(limit=limit))
    events = [event async for event in agent.stream("Where?").events()]
    told = names(events)
    begun, ended = told.index("ToolStarted"), told.index("ToolFinished")
    # the prompt of that agent comes first
    assert told[begun + 1 : ended] == ["m.MessageAdded", *(f"m.{name}" for name in WITHIN)]
    assert not any(name.startswith("m.") for name in (*told[:begun], *told[ended:]))
    within = [event for event in events if isinstance(event, SubAgentEvent)]
    assert {event.call.name for event in within} == {"maps"}
    last = within[-1].event
    assert isinstance(last, RunFinished)
    assert last.result.output == "It rains."


async def test_they_arrive_while_the_tool_runs() -> None:
    """Not when it has ended: slow text is streamed as it arrives."""
    is_seen = asyncio.Event()

    @tool
    async def waits() -> str:
        """Ends when somebody has seen that it began."""
        await is_seen.wait()
        return "seen"

    inner = Agent(model(asks(call("waits", "w")), "Good."), tools=[waits])
    async with asyncio.timeout(30):
        async for event in asked(inner, "m").stream("Go").events():
            if isinstance(event, SubAgentEvent) and isinstance(event.event, ToolStarted):
                is_seen.set()
    assert is_seen.is_set()


async def test_a_stream_within_a_stream_is_streamed() -> None:
    """Both stream their text in pieces; with `send`, texts and requests are whole."""
    inner = Agent("echo:")
    agent = asked(inner, "m")
    events = [event async for event in agent.stream("Go").events()]
    assert "".join(texts(events)) == "Where?"
    assert (await asked(geographer(), "m").send("Go")).output == "Done."


async def test_chunks_have_none_of_them() -> None:
    """They add up to the result of the run itself."""
    chunks = [chunk async for chunk in asked(geographer(), "m").stream("Where?")]
    assert "".join(chunk.output for chunk in chunks) == "Done."
    assert sum(len(chunk.messages) for chunk in chunks) == 4


async def test_concurrent_sub_agents_are_distinguished() -> None:
    """By their calls; each one's events are in order."""
    inner = Agent(model(*["One."] * 3))
    events = [event async for event in asked(inner, "a", "b", "c").stream("Go").events()]
    for id in "abc":
        told = [_name(event.event) for event in events
                if isinstance(event, SubAgentEvent) and event.call.id == id]  # fmt: skip
        assert told[0] == "MessageAdded"
        assert told[-1] == "RunFinished"
        ended = next(number for number, event in enumerate(events)
                     if isinstance(event, ToolFinished) and event.call.id == id)  # fmt: skip
        assert not any(isinstance(event, SubAgentEvent) and event.call.id == id
                       for event in events[ended:])  # fmt: skip


async def test_events_pass_through_all_levels() -> None:
    """With three levels of agents, events are nested as the calls are."""
    middle = asked(geographer(), "inner")
    outer = asked(middle, "outer")
    told = names([event async for event in outer.stream("Go").events()])
    assert "outer.inner.ToolStarted" in told
    assert "outer.inner.RunFinished" in told
    assert told.count("outer.RunFinished") == 1


async def test_hooks_get_them_with_send_as_well() -> None:
    """`on_event` of the calling run; a hook of the sub-agent gets its own."""
    heard: list[AgentEvent] = []
    own: list[AgentEvent] = []
    inner = Agent(model("One."), hooks=Hooks(on_event=lambda event, _run: own.append(event)))
    hooks = Hooks[Any](on_event=lambda event, _run: heard.append(event))
    await asked(inner, "m", hooks=hooks).send("Go")
    within = [event.event for event in heard if isinstance(event, SubAgentEvent)]
    assert within == own
    assert names(within)[-1] == "RunFinished"


@pytest.mark.parametrize("is_async", [True, False])
async def test_custom_tools_use_within(*, is_async: bool) -> None:
    """On the loop or on a thread; several agents at once, also as streams of the tool's own."""
    inner = Agent("echo:")

    @tool
    async def soon(run: RunContext) -> str:
        """Asks two at once, and goes through one of them."""

        async def gone_through() -> str:
            return "".join([c.output async for c in inner.stream("b", within=run)])

        first, second = await asyncio.gather(inner.send("a", within=run), gone_through())
        return first.output + second

    @tool
    def now(run: RunContext) -> str:
        """Asks one after the other."""
        return inner.send_sync("a", within=run).output + inner.send_sync("b", within=run).output

    used = soon if is_async else now
    agent = Agent(model(asks(call(used.name, "m")), "Done."), tools=[used])
    events = [event async for event in agent.stream("Go").events()]
    assert sorted("".join(texts(events))) == ["a", "b"]
    [ended] = [event for event in events if isinstance(event, ToolFinished)]
    assert ended.result.text == "ab"


async def test_leaving_ends_the_sub_agents() -> None:
    """Everything stops at once, and nothing is left running."""
    ended: list[str] = []

    @tool
    async def waits() -> str:
        """Never ends by itself."""
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("waits")
        return ""

    inner = Agent(model(asks(call("waits", "w"))), tools=[waits])
    async with asked(inner, "m").stream("Go") as stream:
        async for event in stream.events():
            if isinstance(event, SubAgentEvent) and isinstance(event.event, ToolStarted):
                for _ in range(5):
                    await asyncio.sleep(0)
                break
    assert ended in ([], ["waits"])  # it may not have started
    assert len(asyncio.all_tasks()) == 1
