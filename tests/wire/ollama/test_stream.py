"""Ollama's streams, decoded and encoded."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Image,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolCallDelta,
)
from dragoman.errors import WireError
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.messages import make_message
from dragoman.model.parts import Citation, Origin, ServerToolCall
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.ollama.codec import DIALECT
from tests.wire.ollama.streams import (
    TIME,
    chunk,
    decoded,
    done,
    encoded,
    line,
    lines,
    stream,
)

START = ResponseStart(id="r", model="m", created_at=1.0, origin=Origin(dialect="anthropic"))
END: list[Event] = [ChoiceFinish(FinishReason.STOP, "end_turn"),
                    UsageUpdate(Usage(input=3, output=4)),
       ResponseEnd()]  # fmt: skip


def test_last_line_needs_no_newline() -> None:
    """A complete object at the end of the stream is decoded without a newline."""
    decoder, _ = decoded([stream("text").rstrip(b"\n")])
    assert decoder.is_complete


def test_events_of_a_stream() -> None:
    """Thinking ends when text starts; calls are whole."""
    _, events = decoded([line(chunk(thinking="a")), line(chunk(content="b")),
                         line(chunk(tool_calls=[{"function": {"name": "f", "arguments": {}}}])),
                         line(done())])  # fmt: skip
    kinds = [(type(event).__name__, getattr(event, "index", None)) for event in events]
    assert kinds == [
        ("ResponseStart", None), ("PartStart", 0), ("PartDelta", 0), ("PartStop", 0),
        ("PartStart", 1), ("PartDelta", 1), ("PartStart", 2), ("PartStop", 2), ("PartStop", 1),
        ("UsageUpdate", None), ("ChoiceFinish", None), ("ResponseEnd", None),
    ]  # fmt: skip


def test_data_after_the_end_is_ignored() -> None:
    """Nothing after the `done` line is read."""
    decoder, _ = decoded([stream("text"), b"rubbish\n", line(chunk(content="more"))])
    assert decoder.is_complete
    assert decoder.response == decoded([stream("text")])[0].response


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["function", "name", "arguments", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
_CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "model": _VALUES, "created_at": _VALUES, "done": _VALUES, "done_reason": _VALUES,
        "eval_count": _VALUES, "logprobs": _VALUES, "error": _VALUES, "odd": _VALUES,
        "message": st.one_of(_VALUES, st.fixed_dictionaries({}, optional={
            "role": _VALUES, "content": _VALUES, "thinking": _VALUES, "images": _VALUES,
            "tool_calls": _VALUES})),
    },
)  # fmt: skip


@given(chunks=st.lists(_CHUNKS, max_size=4))
def test_random_chunks_give_events_or_wire_error(chunks: list[Any]) -> None:
    """Random chunks raise nothing but `WireError`, and the events can be encoded."""
    decoder = DIALECT.stream_decoder()
    events: list[Event] = []
    with suppress(WireError):
        for one in chunks:
            events += decoder.feed(line(one))
    events += decoder.close()
    assert decoder.response is not None
    lines(encoded(events))


# --- encoding foreign events


def written(*events: Event) -> tuple[list[dict[str, Any]], set[str]]:
    """The lines for these events between a start and an end, and the paths of the losses."""
    encoder = DIALECT.stream_encoder()
    everything: list[Event] = [START, *events, *END]
    made = b"".join([*map(encoder.feed, everything), encoder.close()])
    return lines(made), {loss.path for loss in encoder.losses} - {"id"}


def test_every_line_has_the_required_fields() -> None:
    """Each line has model and time; the last one has counts and reason."""
    found, losses = written(PartStart(0, Text("")), PartDelta(0, "Hi"), PartStop(0))
    assert found == [
        {"model": "m", "created_at": "1970-01-01T00:00:01Z",
         "message": {"role": "assistant", "content": "Hi"}, "done": False},
        {"model": "m", "created_at": "1970-01-01T00:00:01Z",
         "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
         "prompt_eval_count": 3, "eval_count": 4},
    ]  # fmt: skip
    assert losses == set()


@pytest.mark.parametrize(
    "events",
    [
        [PartStart(0, ToolCall("a", "f", input={})), PartDelta(0, '{"x": '), PartDelta(0, "1}"),
         PartStop(0), PartStart(1, ToolCall("b", "g", input={})), PartStop(1)],
        [PartStart(0, ToolCall("a", "f", '{"x":1}')), PartStart(1, ToolCall("b", "g", "")),
         PartStop(1), PartStop(0)],
        [ToolCallDelta(0, "a", "f", '{"x"'), ToolCallDelta(1, "b", "g", "{"),
         ToolCallDelta(0, None, None, ": 1}"), ToolCallDelta(1, None, None, "}")],
        [PartStop(0, ToolCall("a", "f", '{"x": 1}')), PartStop(1, ToolCall("b", "g", input={}))],
    ],
)  # fmt: skip
def test_calls_are_written_whole(events: list[Event]) -> None:
    """A streamed call is written in one line (W104)."""
    found, losses = written(*events)
    (calls,) = (one["message"]["tool_calls"] for one in found if "tool_calls" in one["message"])
    assert calls == [
        {"id": "a", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
        {"id": "b", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    assert losses == set()


def test_truncated_call_is_left_out() -> None:
    """A truncated call is left out and reported as a loss (I7)."""
    encoder = DIALECT.stream_encoder()
    events: list[Event] = [
        START, ToolCallDelta(0, "a", "f", '{"x"'), ChoiceFinish(FinishReason.LENGTH), ResponseEnd()
    ]  # fmt: skip
    found = lines(b"".join(map(encoder.feed, events)))
    assert [one["done_reason"] for one in found] == ["length"]
    assert "choices[0].message.parts[0]" in {loss.path for loss in encoder.losses}


def test_several_thinking_parts_are_joined_by_newlines() -> None:
    """Foreign thinking parts share one field; signatures and encrypted data are losses."""
    found, losses = written(
        PartStart(0, Thinking("")), PartDelta(0, "one"), PartDelta(0, " more"),
        PartDelta(0, signature="s"), PartStop(0),
        PartStart(1, Thinking("", "x", "redacted")), PartStop(1),
        PartStart(2, Thinking("two")), PartStop(2),
    )  # fmt: skip
    assert "".join(one["message"].get("thinking", "") for one in found) == "one more\ntwo"
    assert losses == {"choices[0].message.parts[0].signature", "choices[0].message.parts[1]"}


def test_unsupported_content_is_reported_once() -> None:
    """Citations, refusals, further choices and events are one loss each."""
    found, losses = written(
        PartStart(0, Text("")), PartDelta(0, "x"),
        PartDelta(0, citations=(Citation(kind="url"),)),
        PartDelta(0, citations=(Citation(kind="url"),)), PartStop(0),
        PartStart(1, Refusal("N")), PartDelta(1, "o."), PartStop(1),
        PartStart(2, ServerToolCall("search")), PartStop(2),
        PartStart(0, Text("other"), choice=1),
        OpaqueEvent("anthropic", {"type": "ping"}),
    )  # fmt: skip
    assert "".join(one["message"]["content"] for one in found) == "xNo."
    assert losses == {
        "choices[0].message.parts[0].citations", "choices[0].message.parts[1]",
        "choices[0].message.parts[2]", "choices[1]", "events",
    }  # fmt: skip


def test_images_are_left_out() -> None:
    """The official client can't read images in a response, so they are a loss."""
    found, losses = written(PartStart(0, Image(data="iVBORw0KGgo=")), PartStop(0))
    assert len(found) == 1
    assert losses == {"choices[0].message.parts[0]"}


def test_part_without_a_start_is_written_as_text() -> None:
    """A delta without a start, or a stop with the whole text, is still written."""
    found, _ = written(PartDelta(0, "a"), PartStop(1, Text("b")), PartStop(2))
    assert "".join(one["message"]["content"] for one in found) == "ab"


@pytest.mark.parametrize(
    ("final", "text", "is_lost"),
    [("Hello", "Hello", False), ("He", "He", False), ("No", "He", True)],
)
def test_part_stop_content_is_written(final: str, text: str, *, is_lost: bool) -> None:
    """Text added by the stop is written; text it retracts is a loss (W26)."""
    found, losses = written(PartStart(0, Text("")), PartDelta(0, "He"), PartStop(0, Text(final)))
    assert "".join(one["message"]["content"] for one in found) == text
    assert bool(losses) is is_lost


def test_foreign_error_is_the_last_line() -> None:
    """A foreign error is written as a text."""
    encoder = DIALECT.stream_encoder()
    made = encoder.feed(START) + encoder.feed(StreamError("overloaded", "overloaded_error"))
    assert lines(made) == [{"error": "overloaded"}]
    assert encoder.feed(PartStart(0, Text("x"))) == encoder.close() == b""


def test_end_without_a_finish_reason_is_a_stop() -> None:
    """Clients wait for `done` and its reason."""
    encoder = DIALECT.stream_encoder()
    (last,) = lines(encoder.feed(START) + encoder.feed(ResponseEnd()))
    assert (last["done"], last["done_reason"]) == (True, "stop")
    assert encoder.close() == b""


_PARTS = st.one_of(
    st.builds(Text, st.text(min_size=1)),
    st.builds(Thinking, st.text(min_size=1)),
    st.builds(
        lambda name, given: make_call(name, name, input=given),
        st.text(min_size=1, max_size=9),
        st.dictionaries(st.text(max_size=4), st.integers(-9, 9), max_size=2),
    ),
)


@given(parts=st.lists(_PARTS, max_size=5, unique_by=repr), size=st.integers(1, 4))
def test_stream_and_body_are_decoded_alike(parts: list[Any], size: int) -> None:
    """A response written as a stream decodes like the same one written as a body."""
    events: list[Event] = [START]
    for index, part in enumerate(parts):
        if isinstance(part, ToolCall):
            events += [PartStart(index, part), PartStop(index)]
            continue
        events.append(PartStart(index, part.replace(text="")))
        pieces = [part.text[at : at + size] for at in range(0, len(part.text), size)]
        events += [PartDelta(index, piece) for piece in pieces]
        events.append(PartStop(index))
    finish = FinishReason.TOOL_CALLS
    events += [ChoiceFinish(finish), ResponseEnd()]
    message = make_message(Role.ASSISTANT, tuple(parts), origin=START.origin)
    body = DIALECT.encode_response(Response(choices=(Choice(0, message, finish),), model="m"))
    whole = DIALECT.decode_response(body.to_bytes())
    pieces_read = decoded([encoded(events)])[0].response
    assert pieces_read.text == whole.text
    assert pieces_read.message.thinking == whole.message.thinking
    assert pieces_read.tool_calls == whole.tool_calls


def test_time_of_the_first_line_is_kept() -> None:
    """The time is kept to the nanosecond."""
    decoder, events = decoded([stream("text")])
    assert decoder.response.created_at == 1760742847.414671
    assert {one["created_at"] for one in lines(encoded(events))} == {TIME}


def test_endless_line_raises_wire_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than the frame limit raises `WireError`."""
    from dragoman.wire.framing import NdjsonParser

    monkeypatch.setattr("dragoman.wire.ollama.stream.NdjsonParser", lambda: NdjsonParser(limit=100))
    decoder = DIALECT.stream_decoder()
    with pytest.raises(WireError) as caught:
        decoder.feed(b"x" * 101)
    assert caught.value.dialect == "ollama"
    assert decoder.close() == []
