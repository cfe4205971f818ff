"""Scripted models."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, InvalidInputError, RateLimited, StreamInterrupted
from dragoman.model.events import PartDelta, PartStart, ResponseEnd, ResponseStart
from dragoman.model.messages import Message
from dragoman.model.parts import Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.scripted import ScriptedModel
from dragoman.transport.synthetic_answers import PlayedStream

_CALL = ToolCall.create("call_1", "weather", {"city": "Basel"})


async def test_it_answers_in_order_and_keeps_the_requests() -> None:
    """Texts, messages, calls and whole responses, sent and streamed."""
    whole = Response(choices=(Choice(0, Message.assistant("four"), FinishReason.LENGTH),))
    model = ScriptedModel(["one", Message.assistant("two", tool_calls=[_CALL]), _CALL, whole])
    assert (await model.send("a")).text == "one"
    second = await model.stream("b").collect()
    assert (second.text, second.tool_calls) == ("two", (_CALL,))
    assert second.finish is FinishReason.TOOL_CALLS
    assert (await model.send("c")).tool_calls == (_CALL,)
    assert await model.send("d") is whole
    assert [request.messages[0].text for request in model.requests] == ["a", "b", "c", "d"]
    assert [request.stream for request in model.requests] == [False, True, False, False]
    assert model.remaining == 0


async def test_the_end_of_the_script_is_an_error() -> None:
    """The request is still recorded."""
    model = ScriptedModel(["only"])
    await model.send("a")
    with pytest.raises(InvalidInputError, match="has 1 steps, and this is request 2"):
        await model.send("b")
    with pytest.raises(InvalidInputError, match="has ended"):
        await model.stream("c").collect()
    assert len(model.requests) == 3


async def test_repeat_starts_the_script_again() -> None:
    """Any number of times."""
    model = ScriptedModel(["a", "b"], repeat=True)
    assert [(await model.send("?")).text for _ in range(5)] == ["a", "b", "a", "b", "a"]


@pytest.mark.parametrize("step", [RateLimited("later", retry_after=3.0), RateLimited("later")])
async def test_exceptions_are_raised(step: Exception) -> None:
    """Unchanged, sent or streamed."""
    model = ScriptedModel([step, step, "then"])
    with pytest.raises(RateLimited) as caught:
        await model.send("a")
    assert caught.value is step
    with pytest.raises(RateLimited):
        await model.stream("a").collect()
    assert (await model.send("a")).text == "then"


async def test_functions_are_called() -> None:
    """Plain or async, with the request; they return a step."""

    async def later(request: Request) -> str:
        await asyncio.sleep(0)
        return f"{len(request.messages)} messages"

    model = ScriptedModel([lambda request: request.messages[-1].text.upper(), later])
    assert (await model.send("loud")).text == "LOUD"
    assert (await model.send("x")).text == "1 messages"


async def test_events_are_replayed_unchanged() -> None:
    """A list of events is a stream; `send` returns the accumulated response."""
    events = [ResponseStart(model="m"), PartStart(0, Text("")), PartDelta(0, "Hi"), ResponseEnd()]
    model = ScriptedModel([events, events])
    stream = model.stream("a")
    assert [event async for event in stream] == events
    assert (await model.send("a")).text == stream.response.text == "Hi"


@pytest.mark.parametrize("ending", [[StreamInterrupted("cut")], []])
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_stream_is_interrupted_where_the_script_says(
    ending: list[Exception], is_streamed: bool
) -> None:
    """The error has the partial response; events without an end are an error too."""
    model = ScriptedModel([[PartStart(0, Text("")), PartDelta(0, "Hal"), *ending]])
    with pytest.raises(StreamInterrupted) as caught:
        await (model.stream("a").collect() if is_streamed else model.send("a"))
    assert caught.value.partial.text == "Hal"


async def test_thinking_and_usage_are_included() -> None:
    """The response has them, streamed or not."""
    message = Message.assistant(Thinking("Let me see.", signature="s"), "Yes.")
    message = message.replace(usage=Usage(7, 2))
    model = ScriptedModel([message, message])
    plain, streamed = await model.send("a"), await model.stream("a").collect()
    assert plain.message.parts == streamed.message.parts == message.parts
    assert plain.usage == streamed.usage == Usage(7, 2)


async def test_a_stream_is_iterated_once() -> None:
    """As with a network stream; closing it again does nothing."""
    model = ScriptedModel(["a b c", "d"])
    stream = model.stream("?")
    async with stream:
        async for _ in stream:
            break
        assert not stream.is_complete
    with pytest.raises(InvalidInputError, match="once"):
        await stream.collect()
    await stream.close()
    assert model.remaining == 1


async def test_a_stream_that_was_closed_unread_has_nothing_more() -> None:
    """Then the script is not used up."""
    model = ScriptedModel(["a b c"])
    stream = model.stream("?")
    assert isinstance(stream, PlayedStream)
    assert (stream.has_started, stream.is_over) == (False, False)
    await stream.close()
    assert (stream.has_started, stream.is_over) == (False, True)
    with pytest.raises(InvalidInputError, match="once"):
        await stream.collect()
    assert model.remaining == 1
    async with model.stream("?") as read:
        assert isinstance(read, PlayedStream)
        first = await read.batch()
        assert len(first) == 1
        assert (read.has_started, read.is_over) == (True, False)
        while await read.batch():
            pass
    assert (read.is_over, read.is_complete, read.response.text) == (True, True, "a b c")


async def test_a_script_can_be_a_file(tmp_path: Path) -> None:
    """JSON with texts and messages."""
    path = tmp_path / "play.json"
    path.write_text(json.dumps(["one", {"role": "assistant", "content": "two"}]))
    model = ScriptedModel.from_file(path)
    assert [(await model.send("?")).text for _ in range(2)] == ["one", "two"]


@pytest.mark.parametrize("content", [None, "{", '{"a": 1}'])
def test_an_invalid_file_is_rejected(tmp_path: Path, content: str | None) -> None:
    """The error says what is wrong."""
    path = tmp_path / "play.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match="script"):
        ScriptedModel.from_file(path)


def test_a_single_text_is_rejected() -> None:
    """It would be played letter by letter."""
    with pytest.raises(InvalidInputError, match="list"):
        ScriptedModel("Hello")
