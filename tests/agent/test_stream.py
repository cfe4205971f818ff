"""Streaming a run: chunks that add up to the result, events, and leaving early."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Agent,
    ConversationHistory,
    Message,
    Messages,
    Policy,
    Response,
    Text,
    Thinking,
    Usage,
    tool,
)
from dragoman.agent import Chunk
from dragoman.agent.events import (
    MessageAdded,
    ResponseReceived,
    RunFinished,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from dragoman.agent.round_records import UNKNOWN
from dragoman.errors import InvalidInputError, StreamInterrupted
from dragoman.model.events import PartDelta, PartStart, PartStop, ResponseEnd, ResponseStart
from dragoman.testing import ScriptedModel
from tests.agent.scripts import asks, call, clock, model, weather


def script() -> list[Any]:
    """Thinking, text and calls, then an answer."""
    thought = Message.assistant(
        Thinking("Which city, I wonder."),
        Text("Let me look."),
        tool_calls=[call("weather", "a", city="Basel"), call("clock", "b", city="Basel")],
    )
    return [thought, Message.assistant(Thinking("I see."), Text("It rains at three."))]


async def chunks_of(agent: Agent, *content: Any) -> list[Chunk]:
    """All chunks."""
    return [chunk async for chunk in agent.stream(*content)]


async def test_chunks_add_up_to_what_send_returns() -> None:
    """Text, thinking, messages and usage, each once."""
    told = await Agent(ScriptedModel(script()), tools=[weather, clock]).send("Weather?")
    stream = Agent(ScriptedModel(script()), tools=[weather, clock]).stream("Weather?")
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.output for chunk in chunks) == told.output
    assert "".join(chunk.metadata.get("thinking", "") for chunk in chunks) == told.thinking
    messages = Messages.of(message for chunk in chunks for message in chunk.messages)
    assert messages == told.messages == stream.result.messages
    assert [chunk.usage for chunk in chunks if chunk.usage] == [told.usage]
    assert [chunk.finish for chunk in chunks if chunk.finish] == [told.finish]
    assert {chunk.id for chunk in chunks} == {stream.result.id}
    assert stream.is_complete


async def test_the_prompt_comes_first_and_thinking_is_no_message() -> None:
    """Acceptance 31; the seed collects messages from chunks."""
    chunks = await chunks_of(Agent(ScriptedModel(script()), tools=[weather, clock]), "Weather?")
    assert chunks[0].messages[0].text == "Weather?"
    thinking = [chunk for chunk in chunks if chunk.metadata]
    assert thinking
    assert not any(chunk.messages or chunk.output for chunk in thinking)


async def test_text_is_streamed_without_delay() -> None:
    """Each piece is available as soon as the model has sent it."""

    async def answer(_request: object) -> list[object]:
        return [ResponseStart(), PartStart(0, Text("")), PartDelta(0, "Now"), ResponseEnd()]

    stream = aiter(Agent(model(answer)).stream("Hi"))
    assert (await anext(stream)).messages
    assert (await anext(stream)).output == "Now"


@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=6),
    st.booleans(),
)
def test_a_repeated_part_adds_only_what_is_new(pieces: Sequence[str], tells: bool) -> None:
    """W26: some providers repeat the whole part; nothing is streamed twice or missing."""
    whole = "".join(pieces)
    events: list[object] = [ResponseStart()]
    if tells:
        events += [PartStart(0, Text("")), *(PartDelta(0, piece) for piece in pieces[:-1])]
    events += [PartStop(0, Text(whole)), ResponseEnd()]
    stream = Agent(model(events)).stream_sync("Hi")
    assert "".join(chunk.output for chunk in stream) == whole


async def test_a_stream_is_iterated_once() -> None:
    """A second iteration is an error, in every form (acceptance 38)."""
    agent = Agent(ScriptedModel(["Hi."], repeat=True))
    stream = agent.stream("Hello")
    assert (await stream.collect()).output == "Hi."
    with pytest.raises(InvalidInputError, match="once"):
        aiter(stream)
    with pytest.raises(InvalidInputError, match="once"):
        stream.events()
    with pytest.raises(InvalidInputError, match="once"):
        await stream.collect()
    blocking = agent.stream_sync("Hello")
    assert "".join(chunk.output for chunk in blocking) == "Hi."
    with pytest.raises(InvalidInputError, match="once"):
        iter(blocking)


async def test_events_of_a_run() -> None:
    """Steps, text, tools as they start and end, messages as they are added, the end."""
    stream = Agent(ScriptedModel(script()), tools=[weather, clock]).stream("Weather?")
    events = [event async for event in stream.events()]
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert [e.step for e in events if isinstance(e, StepStarted)] == [1, 2]
    assert kinds.count(ToolStarted) == kinds.count(ToolFinished) == 2
    assert kinds.count(ResponseReceived) == 2
    assert kinds[0] is MessageAdded
    assert kinds[-1] is RunFinished
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.result == stream.result


async def test_leaving_early_stops_everything() -> None:
    """Running tools are cancelled, no task is left, and started calls are recorded."""
    cancelled = asyncio.Event()

    @tool
    async def endless() -> str:
        """Never ends."""
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()
        return ""

    agent = Agent(model(asks(call("endless", "a"), call("endless", "b"))), tools=[endless])
    before = asyncio.all_tasks()
    async with agent.stream("Go") as stream:
        async for event in stream.events():
            if isinstance(event, ToolStarted) and event.call.id == "b":
                break
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    assert not stream.is_complete
    *_, last = stream.result.messages
    assert {each.call_id: each.text for each in last.tool_results} == {"a": UNKNOWN}


async def test_an_interrupted_answer_is_an_error_with_its_partial() -> None:
    """The history has complete messages only, and the partial result has the text."""
    history = ConversationHistory(policy=Policy.LENIENT)
    broken = [ResponseStart(), PartStart(0, Text("")), PartDelta(0, "Half"),
              StreamInterrupted("gone")]  # fmt: skip
    stream = Agent(model(broken)).stream("Hi", history=history)
    with pytest.raises(StreamInterrupted) as caught:
        await stream.collect()
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Half"
    assert stream.result.text == "Half"
    assert [m.text for m in history.messages] == ["Hi"]


async def test_unreported_usage_is_unknown() -> None:
    """None, not zero."""
    events = [ResponseStart(), PartStart(0, Text("Hi")), ResponseEnd()]
    result = await Agent(model(events)).stream("Hello").collect()
    assert result.usage is None
    with_usage = Message.assistant("x").replace(usage=Usage(input=1))
    assert (await Agent(model(with_usage)).send("Hi")).usage == Usage(input=1)


def test_blocking_streams() -> None:
    """The same chunks, without `await`; leaving the loop closes it."""
    agent = Agent(ScriptedModel(script(), repeat=True), tools=[weather, clock])
    told = agent.send_sync("Weather?")
    with agent.stream_sync("Weather?") as stream:
        text = "".join(chunk.output for chunk in stream)
    assert text == told.output == stream.result.output
    agent = Agent(ScriptedModel(script(), repeat=True), tools=[weather, clock])
    with agent.stream_sync("Weather?") as stream:
        for chunk in stream:
            if chunk.output:
                break
    assert not stream.is_complete
    chat = agent.chat()
    assert chat.stream_sync("Weather?").collect().text
    assert chat.messages_sync()[0].text == "Weather?"


async def test_the_repr_of_a_stream_shows_its_state() -> None:
    """People look at it in a notebook before they know that it has to be iterated."""
    stream = Agent("echo:").stream("Hi")
    assert repr(stream) == "AgentStream(echo:, not started: use `async for` or `await collect()`)"
    await anext(aiter(stream))
    assert repr(stream) == "AgentStream(echo:, started)"
    await stream.close()
    assert repr(stream) == "AgentStream(echo:, closed)"
    blocking = Agent("echo:").stream_sync("Hi")
    assert repr(blocking) == "BlockingAgentStream(echo:, not started: use `for` or `collect()`)"
    blocking.collect()
    assert repr(blocking) == "BlockingAgentStream(echo:, complete)"


def test_texts_are_never_empty() -> None:
    """`texts` yields what is said; every chunk holds something, which may be a message."""
    agent = Agent(model(asks(call("weather", city="Basel")), "It is sunny."), tools=[weather])
    assert [*agent.stream_sync("Weather?").texts()] == ["It", " is", " sunny."]
    script = model(asks(call("weather", city="Basel")), Response(), "Yes.")
    for chunk in Agent(script, tools=[weather]).stream_sync("Weather?"):
        held = [chunk.output, chunk.messages, chunk.metadata, chunk.usage, chunk.finish]
        assert any(held)


async def test_texts_of_an_async_stream() -> None:
    """The same, in a coroutine."""
    stream = Agent(model("It is sunny.")).stream("Weather?")
    assert [piece async for piece in stream.texts()] == ["It", " is", " sunny."]
    assert stream.is_complete
