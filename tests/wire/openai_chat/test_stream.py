"""Streams of the OpenAI Chat dialect, in both directions."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import WireError
from dragoman.model.accumulate import MessageAccumulator
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
from dragoman.model.media import Image
from dragoman.model.parts import Citation, Origin, ServerToolCall, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.openai_chat.codec import DIALECT
from tests.wire.openai_chat.streams import (
    DONE,
    PAIRS,
    USAGE,
    body_of,
    call,
    chunk,
    chunks_of,
    decoded,
    encoded,
    frame,
    said,
    stream,
)
from tests.wire.test_hostile import json_values

NAMES = sorted(PAIRS)
ELSEWHERE = ResponseStart(id="msg_1", model="claude", origin=Origin(dialect="anthropic"))


# --- reading


@pytest.mark.parametrize("name", NAMES)
def test_a_folded_stream_is_the_plain_answer(name: str) -> None:
    """What the chunks add up to is what the plain body says, to the last unknown field."""
    decoder, _ = decoded([stream(name)])
    expected = DIALECT.decode_response(PAIRS[name][1])
    assert decoder.is_complete
    assert decoder.response == expected
    assert body_of(decoder.response) == body_of(expected)
    assert decoder.response.usage == expected.usage


@pytest.mark.parametrize("name", NAMES)
def test_bytes_may_come_one_by_one(name: str) -> None:
    """A stream cut at every byte folds to the same response."""
    whole = stream(name)
    decoder, _ = decoded([whole])
    other, _ = decoded([bytes([byte]) for byte in whole])
    assert other.is_complete
    assert body_of(other.response) == body_of(decoder.response)


def test_a_negative_index_counts_as_none() -> None:
    """It says nothing about a call's place; the call is read all the same."""
    pieces = [
        frame(chunk(said(call(-1, "", id="call_1", name="weather")))),
        frame(chunk(said(call(-1, '{"city":"Basel"}')))),
        frame(chunk(said({}, "tool_calls"))),
        DONE,
    ]
    decoder, _ = decoded(pieces)
    (found,) = decoder.response.tool_calls
    assert (found.name, found.arguments) == ("weather", {"city": "Basel"})


@given(data=st.data())
def test_bytes_may_be_cut_anywhere(data: st.DataObject) -> None:
    """A stream cut anywhere folds to the same response."""
    whole = stream(data.draw(st.sampled_from(NAMES)))
    places = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=20)))
    pieces = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]
    assert body_of(decoded(pieces)[0].response) == body_of(decoded([whole])[0].response)


@pytest.mark.parametrize("name", NAMES)
def test_the_events_alone_say_it_all(name: str) -> None:
    """Whoever folds the events gets the parts of the response, if not in a plain body's order."""
    decoder, events = decoded([stream(name)])
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    for mine, theirs in zip(accumulator.response.choices, decoder.response.choices, strict=True):
        assert set(mine.message.parts) == set(theirs.message.parts)
        assert mine.extras == theirs.extras
        assert mine.message.extras == theirs.message.extras


@pytest.mark.parametrize("name", NAMES)
def test_events_come_in_legal_order(name: str) -> None:
    """The response starts first and ends last; a part starts once, before it grows."""
    _, events = decoded([stream(name)])
    started: set[tuple[int, int]] = set()
    assert isinstance(events[0], ResponseStart)
    assert isinstance(events[-1], ResponseEnd)
    for event in events:
        if isinstance(event, PartStart):
            assert (event.choice, event.index) not in started
            started.add((event.choice, event.index))
        elif isinstance(event, (PartDelta, PartStop)):
            assert (event.choice, event.index) in started


def test_nothing_is_held_back() -> None:
    """Every piece of text is handed out with the chunk that brought it."""
    decoder = DIALECT.stream_decoder()
    texts = []
    for one in PAIRS["text"][0]:
        for event in decoder.feed(frame(one)):
            if isinstance(event, PartStart) and isinstance(event.part, Text):
                texts.append(event.part.text)
            elif isinstance(event, PartDelta):
                texts.append(event.text or "")
        assert decoder.response.text == "".join(texts)
    assert texts == ["Grüezi", " mitenand 👋"]


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_ends_early_is_not_complete(name: str) -> None:
    """Cut after any frame, there is no end, and what is written onward ends in an error (G1)."""
    frames = [frame(one) for one in PAIRS[name][0]]
    for count in range(len(frames) + 1):
        decoder, events = decoded(frames[:count])
        assert not decoder.is_complete
        assert ResponseEnd() not in events
        written = encoded(events)
        assert b"[DONE]" not in written
        assert "error" in chunks_of(written)[-1]


@given(data=st.data())
def test_a_stream_that_is_cut_in_a_frame_is_not_complete(data: st.DataObject) -> None:
    """Half a frame at the end is no error, and no end either."""
    whole = stream(data.draw(st.sampled_from(NAMES)))
    decoder, _ = decoded([whole[: data.draw(st.integers(0, len(whole) - len(DONE)))]])
    assert not decoder.is_complete


def test_a_call_that_was_cut_off_is_known_as_such() -> None:
    """Without a finish reason, half a call must never be run (I7)."""
    decoder, _ = decoded([frame(chunk(said(call(0, '{"a": 1', id="c", name="f"))))])
    assert decoder.response.finish is None
    assert decoder.response.message.finish is None
    assert [c.has_valid_arguments for c in decoder.response.tool_calls] == [False]


def test_the_last_usage_counts() -> None:
    """Usage in every chunk is the whole so far; it is not added up (W69)."""
    usages = [{**USAGE, "completion_tokens": n, "total_tokens": 9 + n} for n in (1, 2, 4)]
    pieces = [frame(chunk(said({"content": "a"}), usage=usage)) for usage in usages]
    decoder, events = decoded(pieces)
    assert decoder.response.usage is not None
    assert decoder.response.usage.total_output == 4
    assert len([event for event in events if isinstance(event, UsageUpdate)]) == 3


def test_usage_may_be_groqs_own() -> None:
    """Usage that is only in `x_groq` is found (W113)."""
    decoder, _ = decoded([frame(chunk(x_groq={"usage": USAGE}))])
    assert decoder.response.usage is not None
    assert decoder.response.usage.total == 13


@pytest.mark.parametrize("without_done", [False, True])
def test_some_servers_never_say_done(without_done: bool) -> None:
    """Where the end is not said, it is known by the finish reasons, if the caller says so."""
    decoder = DIALECT.stream_decoder(ends_with_done=not without_done)
    decoder.feed(frame(chunk(said({"content": "a"}, "stop"))))
    decoder.close()
    assert decoder.is_complete is without_done
    cut = DIALECT.stream_decoder(ends_with_done=False)
    cut.feed(frame(chunk(said({"content": "a"}))))
    cut.close()
    assert not cut.is_complete


def test_keep_alives_say_nothing() -> None:
    """Comments, empty data and chunks without choices do no harm (W10)."""
    noise = b": keep-alive\n\ndata:\n\ndata: \n\n" + frame({}) + frame(chunk())
    decoder, _ = decoded([noise, stream("text"), noise])
    assert body_of(decoder.response) == body_of(decoded([stream("text")])[0].response)


def test_data_may_follow_the_done() -> None:
    """What comes after the end is not read."""
    decoder, _ = decoded([stream("text"), b"data: garbage\n\n"])
    assert decoder.is_complete


@pytest.mark.parametrize(
    ("written", "code", "status"),
    [
        (b'event: error\ndata: {"error":{"message":"no","code":"bad","status_code":400}}\n\n',
         "bad", 400),
        (b'data: {"error":{"message":"no","code":429,"type":"limit"}}\n\n', "limit", 429),
        (b'event: error\ndata: {"message":"no"}\n\n', None, None),
        (b'data: {"error":"no"}\n\n', None, None),
    ],
)  # fmt: skip
def test_an_error_in_mid_stream_is_an_event(
    written: bytes, code: str | None, status: int | None
) -> None:
    """An error is told, not raised, and the stream is not complete even if it says so (W112)."""
    decoder, events = decoded([frame(chunk(said({"content": "a"}))), written, DONE])
    (error,) = [event for event in events if isinstance(event, StreamError)]
    assert (error.message, error.code, error.status) == ("no", code, status)
    assert not decoder.is_complete
    again, _ = decoded([encoded(events)])
    assert not again.is_complete


def test_an_unknown_event_is_carried_whole() -> None:
    """An event of another name that is no chunk comes out again as it was."""
    written = b'event: trace\ndata: {"a":1}\n\n'
    _, events = decoded([written])
    assert events == [OpaqueEvent("openai-chat", {"event": "trace", "data": {"a": 1}})]
    assert DIALECT.stream_encoder().feed(events[0]) == written


@pytest.mark.parametrize("data", ["secret", "[1]", '"secret"', '{"secret": ', "1e999", "[DONE"])
def test_a_frame_that_is_no_object_is_refused(data: str) -> None:
    """Garbage raises `WireError`, which never quotes it, and ends the reading."""
    decoder = DIALECT.stream_decoder()
    with pytest.raises(WireError) as caught:
        decoder.feed(f"data: {data}\n\n".encode())
    assert "secret" not in str(caught.value)
    assert caught.value.dialect == "openai-chat"
    assert decoder.feed(stream("text")) == []
    assert not decoder.is_complete


# --- anything


def _take(pieces: list[bytes]) -> None:
    """Decode, and encode what came out; a `WireError` is a fine answer."""
    decoder = DIALECT.stream_decoder()
    events: list[Event] = []
    with suppress(WireError):
        for piece in pieces:
            events += decoder.feed(piece)
        events += decoder.close()
    DIALECT.encode_response(decoder.response)
    encoded(events)


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_are_events_or_a_wire_error(pieces: list[bytes]) -> None:
    """Random bytes never get past the decoder as another exception."""
    _take(pieces)


@given(st.lists(json_values, max_size=4))
def test_any_json_is_events_or_a_wire_error(values: list[Any]) -> None:
    """Random JSON never gets past the decoder as another exception."""
    _take([frame(value) for value in values])


@given(st.lists(st.dictionaries(
    st.sampled_from(["content", "tool_calls", "refusal", "audio", "reasoning", "images",
                     "reasoning_details", "executed_tools", "annotations", "function_call"]),
    json_values, max_size=3), max_size=4))  # fmt: skip
def test_any_delta_is_events_or_a_wire_error(deltas: list[Any]) -> None:
    """Known fields with anything in them never get past the decoder as another exception."""
    _take([frame(chunk(said(delta))) for delta in deltas])


@given(data=st.data())
def test_a_stream_with_one_thing_wrong_is_events_or_a_wire_error(data: st.DataObject) -> None:
    """A real stream in which any one value was replaced by any other does no harm."""
    chunks = copy.deepcopy(PAIRS[data.draw(st.sampled_from(NAMES))][0])
    at: Any = chunks
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not at[key] or not isinstance(at[key], (dict, list)) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(json_values)
    _take([*map(frame, chunks), DONE])


# --- writing


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_comes_back(name: str) -> None:
    """Read, written and read again, a stream says the same, to the last unknown field."""
    decoder, events = decoded([stream(name)])
    encoder = DIALECT.stream_encoder(include_usage=True)
    again, _ = decoded([*map(encoder.feed, events), encoder.close()])
    assert encoder.losses == []
    assert again.is_complete
    assert again.response == decoder.response
    assert body_of(again.response) == body_of(decoder.response)


@pytest.mark.parametrize("name", NAMES)
def test_every_chunk_has_its_head(name: str) -> None:
    """Chunks name their object, id, time and model; the role comes once, in the first delta."""
    _, events = decoded([stream(name)])
    chunks = chunks_of(encoded(events))
    roles: dict[int, list[bool]] = {}
    for one in chunks:
        assert one["object"] == "chat.completion.chunk"
        assert {"id", "created", "model", "choices"} <= one.keys()
        for choice in one["choices"]:
            roles.setdefault(choice["index"], []).append("role" in choice["delta"])
    assert all(found == [True] + [False] * (len(found) - 1) for found in roles.values())


def test_usage_is_written_if_asked_for() -> None:
    """The chunk with the usage comes last, without choices; others have a null then (W9)."""
    _, events = decoded([stream("text")])
    assert all("usage" not in one for one in chunks_of(encoded(events, include_usage=False)))
    *others, last = chunks_of(encoded(events))
    assert all(one["usage"] is None for one in others)
    assert (last["choices"], last["usage"]) == ([], USAGE)


def test_what_came_with_the_usage_is_lost_without_it() -> None:
    """Unknown fields of a chunk that the client did not ask for are reported."""
    last = chunk(usage=USAGE, timings={"ms": 1})
    _, events = decoded([frame(chunk(said({"content": "a"}, "stop"))), frame(last), DONE])
    encoder = DIALECT.stream_encoder()
    for event in events:
        encoder.feed(event)
    assert [loss.path for loss in encoder.losses] == ["extras.timings"]


def test_blocks_of_another_dialect() -> None:
    """Interleaved blocks become one content and calls in places of their own (W35)."""
    events: list[Event] = [
        ELSEWHERE,
        PartStart(0, Thinking("")),
        PartDelta(0, "Hm"),
        PartDelta(0, signature="c2ln"),
        PartStop(0),
        PartStart(1, Text("")),
        PartDelta(1, "Let me", citations=(Citation(kind="url", url="https://a.example"),)),
        PartStop(1),
        PartStart(2, ToolCall("toolu_a", "weather", input={})),
        PartStart(3, ToolCall("toolu_b", "now", input={})),
        PartDelta(2, '{"city":'),
        PartDelta(2, ' "Basel"}'),
        PartStop(2),
        PartStop(3),
        PartStart(4, ServerToolCall("search")),
        PartStart(5, Image(data="aGk=", mime="image/png")),
        PartStart(6, Text("")),
        PartDelta(6, " look."),
        UsageUpdate(Usage(input=1, output=2)),
        ChoiceFinish(FinishReason.STOP, "end_turn"),
        ResponseEnd(),
    ]
    encoder = DIALECT.stream_encoder(include_usage=True)
    decoder, _ = decoded([*map(encoder.feed, events), encoder.close()])
    message = decoder.response.message
    assert (message.thinking, message.text) == ("Hm", "Let me look.")
    assert [(c.id, c.name, c.raw) for c in message.tool_calls] == [
        ("toolu_a", "weather", '{"city": "Basel"}'),
        ("toolu_b", "now", "{}"),
    ]
    assert len(message.media) == 1
    assert decoder.response.choices[0].finish_raw == "tool_calls"  # W11
    assert decoder.response.usage == Usage(input=1, output=2)
    assert not encoder.losses  # what is not shown goes along in envelopes


def test_calls_of_another_dialect_in_pieces() -> None:
    """A piece of a call without an id gets one; clients can't answer a call without."""
    events: list[Event] = [
        ELSEWHERE,
        ToolCallDelta(0, None, "now", "{}"),
        ToolCallDelta(1, "x", "then", "{"),
        ToolCallDelta(1, None, None, "}"),
        ChoiceFinish(FinishReason.TOOL_CALLS),
        ResponseEnd(),
    ]
    decoder, _ = decoded([encoded(events)])
    assert [c.raw for c in decoder.response.tool_calls] == ["{}", "{}"]
    assert all(c.id for c in decoder.response.tool_calls)
    assert '"id":"call_' in encoded(events).decode()


def test_several_thoughts_of_another_dialect_are_lines_apart() -> None:
    """Thinking has one field here, and `Message.thinking` joins its parts by newlines."""
    events: list[Event] = [ELSEWHERE, PartStart(0, Thinking("One.")), PartStart(1, Text("a")),
              PartStart(2, Thinking("")), PartDelta(2, "T"), PartDelta(2, "wo."),
              ChoiceFinish(FinishReason.STOP), ResponseEnd()]  # fmt: skip
    decoder, _ = decoded([encoded(events)])
    assert decoder.response.message.thinking == "One.\nTwo."


def test_each_event_is_written_at_once() -> None:
    """What an event says is in the bytes that it gives, and nothing follows a proper end (G3)."""
    _, events = decoded([stream("text")])
    encoder = DIALECT.stream_encoder()
    written = b""
    for event in events:
        written = encoder.feed(event)
        if isinstance(event, PartDelta):
            assert json.dumps(event.text, ensure_ascii=False).encode() in written
    assert written.endswith(DONE)
    assert encoder.close() == b""
    assert encoder.feed(PartDelta(0, "more")) == b""


def test_an_error_of_another_dialect_ends_the_stream() -> None:
    """An error is written as this dialect has them, once, and without a clean end."""
    encoder = DIALECT.stream_encoder()
    written = encoder.feed(ELSEWHERE) + encoder.feed(StreamError("busy", status=529))
    assert chunks_of(written)[-1] == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "529"}
    }
    assert encoder.close() == b""


def test_a_stream_that_never_began_ends_in_an_error() -> None:
    """No event at all is no answer."""
    (only,) = chunks_of(DIALECT.stream_encoder().close())
    assert only["error"]["code"] == "stream_interrupted"


def test_another_dialects_own_events_are_left_out() -> None:
    """They have no place here, and are reported once."""
    encoder = DIALECT.stream_encoder()
    assert [encoder.feed(OpaqueEvent("anthropic", {"type": "ping"})) for _ in "ab"] == [b"", b""]
    assert len(encoder.losses) == 1
