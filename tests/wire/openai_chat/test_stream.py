"""Streams of the OpenAI Chat dialect, in both directions."""

from __future__ import annotations

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
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.openai_chat.streams import (
    DONE,
    PAIRS,
    TABLE,
    USAGE,
    body_of,
    call,
    chosen,
    chunk,
    chunks_of,
    decoded,
    encoded,
    frame,
    stream,
)
from tests.wire.test_hostile import json_values

NAMES = sorted(PAIRS)
ELSEWHERE = ResponseStart(id="msg_1", model="claude", origin=Origin(dialect="anthropic"))


# --- reading


def test_negative_index_is_ignored() -> None:
    """A negative index is treated as missing; the call is still decoded."""
    pieces = [
        frame(chunk(chosen(call(-1, "", id="call_1", name="weather")))),
        frame(chunk(chosen(call(-1, '{"city":"Basel"}')))),
        frame(chunk(chosen({}, "tool_calls"))),
        DONE,
    ]
    decoder, _ = decoded(pieces)
    (found,) = decoder.response.tool_calls
    assert (found.name, found.arguments) == ("weather", {"city": "Basel"})


@pytest.mark.parametrize("name", NAMES)
def test_events_contain_the_whole_response(name: str) -> None:
    """Accumulating the events gives the response's parts, possibly in another order."""
    decoder, events = decoded([stream(name)])
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    for mine, theirs in zip(accumulator.response.choices, decoder.response.choices, strict=True):
        assert set(mine.message.parts) == set(theirs.message.parts)
        assert mine.extras == theirs.extras
        assert mine.message.extras == theirs.message.extras


@pytest.mark.parametrize("name", NAMES)
def test_events_come_in_a_valid_order(name: str) -> None:
    """The response starts first and ends last; each part starts once, before its deltas."""
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


def test_truncated_call_has_no_finish() -> None:
    """Without a finish reason, a partial call has invalid arguments and isn't run (I7)."""
    decoder, _ = decoded([frame(chunk(chosen(call(0, '{"a": 1', id="c", name="f"))))])
    assert decoder.response.finish is None
    assert decoder.response.message.finish is None
    assert [c.has_valid_arguments for c in decoder.response.tool_calls] == [False]


def test_the_last_usage_counts() -> None:
    """Usage in each chunk is cumulative, so the last one counts (W69)."""
    usages = [{**USAGE, "completion_tokens": n, "total_tokens": 9 + n} for n in (1, 2, 4)]
    pieces = [frame(chunk(chosen({"content": "a"}), usage=usage)) for usage in usages]
    decoder, events = decoded(pieces)
    assert decoder.response.usage is not None
    assert decoder.response.usage.total_output == 4
    assert len([event for event in events if isinstance(event, UsageUpdate)]) == 3


def test_usage_is_read_from_x_groq() -> None:
    """Usage that is only in `x_groq` is decoded (W113)."""
    decoder, _ = decoded([frame(chunk(x_groq={"usage": USAGE}))])
    assert decoder.response.usage is not None
    assert decoder.response.usage.total == 13


@pytest.mark.parametrize("without_done", [False, True])
def test_stream_without_done_may_end_with_a_finish_reason(without_done: bool) -> None:
    """With `ends_with_done=False`, a finish reason completes the stream."""
    decoder = DIALECT.stream_decoder(ends_with_done=not without_done)
    decoder.feed(frame(chunk(chosen({"content": "a"}, "stop"))))
    decoder.close()
    assert decoder.is_complete is without_done
    cut = DIALECT.stream_decoder(ends_with_done=False)
    cut.feed(frame(chunk(chosen({"content": "a"}))))
    cut.close()
    assert not cut.is_complete


@pytest.mark.corpus
def test_recorded_stream_without_done_is_complete_by_its_finish_reason(corpus: Corpus) -> None:
    """With `ends_with_done=False`, recorded streams without `[DONE]` are complete."""
    faults = TABLE["openai-chat"].recorded_faults
    for file, found in recorded.streams(corpus, "openai-chat"):
        if faults.get(file) == "unfinished":
            decoder = DIALECT.stream_decoder(ends_with_done=False)
            decoder.feed(found)
            decoder.close()
            assert decoder.is_complete, file


def test_keep_alives_are_ignored() -> None:
    """Comments, empty data and chunks without choices are ignored (W10)."""
    noise = b": keep-alive\n\ndata:\n\ndata: \n\n" + frame({}) + frame(chunk())
    decoder, _ = decoded([noise, stream("text"), noise])
    assert body_of(decoder.response) == body_of(decoded([stream("text")])[0].response)


def test_data_after_done_is_ignored() -> None:
    """Nothing after `[DONE]` is read."""
    decoder, _ = decoded([stream("text"), b"data: garbage\n\n"])
    assert decoder.is_complete


def test_unknown_event_round_trips() -> None:
    """An event with another name that isn't a chunk round-trips."""
    written = b'event: trace\ndata: {"a":1}\n\n'
    _, events = decoded([written])
    assert events == [OpaqueEvent("openai-chat", {"event": "trace", "data": {"a": 1}})]
    assert DIALECT.stream_encoder().feed(events[0]) == written


# --- arbitrary input


def _take(pieces: list[bytes]) -> None:
    """Decodes, then encodes the events; `WireError` is allowed."""
    decoder = DIALECT.stream_decoder()
    events: list[Event] = []
    with suppress(WireError):
        for piece in pieces:
            events += decoder.feed(piece)
        events += decoder.close()
    DIALECT.encode_response(decoder.response)
    encoded(events)


@given(st.lists(st.dictionaries(
    st.sampled_from(["content", "tool_calls", "refusal", "audio", "reasoning", "images",
                     "reasoning_details", "executed_tools", "annotations", "function_call"]),
    json_values, max_size=3), max_size=4))  # fmt: skip
def test_any_delta_gives_events_or_wire_error(deltas: list[Any]) -> None:
    """Known fields with random values raise nothing but `WireError`."""
    _take([frame(chunk(chosen(delta))) for delta in deltas])


# --- writing


@pytest.mark.parametrize("name", NAMES)
def test_every_chunk_has_the_required_fields(name: str) -> None:
    """Chunks have object, id, time and model; the role is only in the first delta."""
    _, events = decoded([stream(name)])
    chunks = chunks_of(encoded(events))
    roles: dict[int, list[bool]] = {}
    for one in chunks:
        assert one["object"] == "chat.completion.chunk"
        assert {"id", "created", "model", "choices"} <= one.keys()
        for choice in one["choices"]:
            roles.setdefault(choice["index"], []).append("role" in choice["delta"])
    assert all(found == [True] + [False] * (len(found) - 1) for found in roles.values())


def test_usage_is_written_on_request() -> None:
    """The usage chunk comes last, without choices; the others have `usage: null` (W9)."""
    _, events = decoded([stream("text")])
    assert all("usage" not in one for one in chunks_of(encoded(events, include_usage=False)))
    *others, last = chunks_of(encoded(events))
    assert all(one["usage"] is None for one in others)
    assert (last["choices"], last["usage"]) == ([], USAGE)


def test_extra_fields_of_the_usage_chunk_are_lost_without_it() -> None:
    """Unknown fields of a usage chunk that the client didn't request are losses."""
    last = chunk(usage=USAGE, timings={"ms": 1})
    _, events = decoded([frame(chunk(chosen({"content": "a"}, "stop"))), frame(last), DONE])
    encoder = DIALECT.stream_encoder()
    for event in events:
        encoder.feed(event)
    assert [loss.path for loss in encoder.losses] == ["extras.timings"]


def test_foreign_parts_are_written_as_content_and_calls() -> None:
    """Foreign interleaved parts become one content and calls with their own index (W35)."""
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
    assert not encoder.losses  # unsupported parts are sent in envelopes


def test_foreign_call_deltas_get_an_id() -> None:
    """A foreign call without an id gets one, since clients need it for the result."""
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


def test_several_foreign_thinking_parts_are_joined_by_newlines() -> None:
    """Several thinking parts are written to the one field, separated by newlines."""
    events: list[Event] = [ELSEWHERE, PartStart(0, Thinking("One.")), PartStart(1, Text("a")),
              PartStart(2, Thinking("")), PartDelta(2, "T"), PartDelta(2, "wo."),
              ChoiceFinish(FinishReason.STOP), ResponseEnd()]  # fmt: skip
    decoder, _ = decoded([encoded(events)])
    assert decoder.response.message.thinking == "One.\nTwo."


def test_each_event_is_written_immediately() -> None:
    """Each delta is in the bytes of its event, and nothing follows the end (G3)."""
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


def test_foreign_error_ends_the_stream() -> None:
    """An error is written once, in this dialect's form, and without `[DONE]`."""
    encoder = DIALECT.stream_encoder()
    written = encoder.feed(ELSEWHERE) + encoder.feed(StreamError("busy", status=529))
    assert chunks_of(written)[-1] == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "529"}
    }
    assert encoder.close() == b""


def test_empty_stream_ends_in_an_error() -> None:
    """A stream without any event is encoded as an error."""
    (only,) = chunks_of(DIALECT.stream_encoder().close())
    assert only["error"]["code"] == "stream_interrupted"


def test_foreign_opaque_events_are_left_out() -> None:
    """Another dialect's opaque events are left out and reported once."""
    encoder = DIALECT.stream_encoder()
    assert [encoder.feed(OpaqueEvent("anthropic", {"type": "ping"})) for _ in "ab"] == [b"", b""]
    assert len(encoder.losses) == 1
