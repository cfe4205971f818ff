"""Anthropic's streams: plain and streamed pairs, split, truncated and mutated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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
)
from dragoman.model.json_progress import is_beginning
from dragoman.model.media import Audio
from dragoman.model.parts import (
    Citation,
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call
from dragoman.model.usage import FinishReason
from dragoman.wire.anthropic.codec import DIALECT
from dragoman.wire.anthropic.stream_arguments import JsonObjectPrefix
from dragoman.wire.lane import switch
from dragoman.wire.losses import Note
from tests.wire.anthropic.stream_grammar import check_stream
from tests.wire.anthropic.streams import (
    BODIES,
    STREAMS,
    decoded,
    encoded,
    events_of,
    plain,
    said,
    written,
)
from tests.wire.streams import END, START


def elsewhere(*events: Event) -> tuple[list[Any], dict[str, Any], list[str]]:
    """Encodes another provider's events; returns content, message, losses and repairs."""
    encoder, stream = encoded([START, *events, *END])
    assert check_stream(stream).state == "stopped"
    decoder, _ = decoded(stream)
    body = DIALECT.encode_response(decoder.response).body
    notes: list[Note] = [*encoder.losses, *encoder.repairs]
    return body["content"], body, [note.reason for note in notes]


def test_odd_usage_at_the_start_breaks_no_stream() -> None:
    """The end of a stream replaces usage that can't be read, however deep it is."""
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    usage = {"input_tokens": deep, "output_tokens": 1}
    decoder = DIALECT.stream_decoder()
    for frame in (
        {"type": "message_start", "message": {"id": "m", "usage": usage}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 2, "output_tokens": 3}},
    ):
        decoder.feed(f"data: {json.dumps(frame)}\n\n".encode())
    assert decoder.response.usage is not None
    assert decoder.response.usage.total_output == 3


@pytest.mark.parametrize("part", [Audio(data="aGk=", mime="audio/wav"), Thinking("Hm.")])
def test_a_failed_stream_reports_what_waited_for_its_end(part: Audio | Thinking) -> None:
    """A part that is only sent when it is complete is a loss if the response fails before."""
    encoder = DIALECT.stream_encoder()
    for event in (ResponseStart(id="r", model="m"), PartStart(0, part), StreamError("it failed")):
        encoder.feed(event)
    assert [loss.path for loss in encoder.losses] == ["choices[0].message.parts[0]"]


# --- reading


def test_truncated_call_keeps_its_partial_arguments() -> None:
    """Partial arguments are kept and invalid, in a message without a finish reason."""
    events = events_of(BODIES["parallel calls"])
    cut = next(i for i, e in enumerate(events) if e.get("index") == 1) + 4
    decoder, _ = decoded(written(events[:cut]))
    (call,) = decoder.response.tool_calls
    assert not call.has_valid_arguments
    assert call.raw == '{"cit'
    assert decoder.response.message.finish is None


def test_call_truncated_at_the_token_limit_round_trips() -> None:
    """Arguments that the provider truncated at the limit are written truncated."""
    body = plain({"type": "tool_use", "id": "t", "name": "n", "input": {"a": "bcdefgh"}},
                 stop_reason="max_tokens")  # fmt: skip
    events = events_of(body)
    del events[-5:-3]
    decoder, found = decoded(written(events))
    assert decoder.is_complete
    assert decoder.response.finish is FinishReason.LENGTH
    assert not decoder.response.tool_calls[0].has_valid_arguments
    _, stream = encoded(found)
    check_stream(stream, may_break_off=True)
    assert said(decoded(stream)[0].response) == said(decoder.response)


def test_unknown_events_and_fields_are_kept() -> None:
    """Unknown events, fields and deltas are kept; padding isn't (W18)."""
    events = events_of(BODIES["text"])
    events[1:1] = [{"type": "weather_report", "sky": "blue"}]
    events[4] |= {"obfuscation": "xxxx", "odd": 1}
    events[5]["delta"]["strange"] = 2
    events[6]["delta"] = {"type": "colour_delta", "colour": "red"}
    events[-2]["usage"]["cost"] = 0.25
    events[-2]["delta"]["mood"] = "good"
    events[-1]["metrics"] = {"latency": 5}
    decoder, found = decoded(written(events))
    payloads = [event.payload for event in found if isinstance(event, OpaqueEvent)]
    strange = {"type": "text_delta", "text": "", "strange": 2}
    extended = {"type": "content_block_delta", "delta": strange}
    assert payloads == [events[1], {"odd": 1}, extended, events[6]]
    response = decoder.response
    assert response.extras["anthropic"]["mood"] == "good"
    assert response.extras["anthropic"]["metrics"] == {"latency": 5}
    assert response.usage is not None
    assert response.usage.extras["anthropic"]["cost"] == 0.25
    encoder, stream = encoded(found)
    check_stream(stream)
    assert b"weather_report" in stream
    assert b"colour_delta" in stream
    assert b"strange" in stream
    assert len(encoder.losses) == 1
    assert said(decoded(stream)[0].response) == said(response)


def test_gateway_variations_are_accepted() -> None:
    """`[DONE]`, comments and missing event names are accepted."""
    stream = STREAMS["text"].replace(b"event: content_block_delta\n", b": hello\n")
    decoder, _ = decoded(stream + b"event: data\ndata: [DONE]\n\n")
    assert decoder.is_complete
    assert said(decoder.response) == said(decoded(STREAMS["text"])[0].response)


def test_restarted_stream_is_not_complete() -> None:
    """A stream that contains the start of a second message is an error."""
    events = events_of(BODIES["text"])
    decoder, found = decoded(written([*events[:5], *events]))
    assert not decoder.is_complete
    assert [type(event) for event in found if isinstance(event, StreamError)] == [StreamError]


def test_message_after_the_end_is_ignored() -> None:
    """A second message after the end is kept as opaque events and changes nothing."""
    decoder, found = decoded(STREAMS["text"] + STREAMS["thinking"])
    assert decoder.is_complete
    assert said(decoder.response) == said(DIALECT.decode_response(BODIES["text"]))
    encoder, stream = encoded(found)
    assert check_stream(stream).state == "stopped"
    assert len(encoder.losses) == 1


def test_incomplete_events_are_tolerated() -> None:
    """Content in the start, and missing indexes, block starts and stops are tolerated."""
    message = {**BODIES["stop sequence"], "content": [{"type": "text", "text": "Hel"}]}
    stream = written([
        {"type": "message_start", "message": message},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_start", "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "?"}},
        {"type": "content_block_delta", "delta": "?"},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "signature_delta"}},
        {"type": "content_block_start", "index": 7, "content_block": {"type": "tool_use",
         "id": "t", "name": "n", "input": None}},
        {"type": "content_block_stop", "index": 11},
        {"type": "message_stop"},
    ])  # fmt: skip
    decoder, found = decoded(stream)
    assert decoder.is_complete
    assert decoder.response.finish is FinishReason.STOP
    parts = decoder.response.message.parts
    assert parts == (Text("Hel"), Text("lo"), Thinking("hm"), ToolCall("t", "n", input={}))
    assert sum(isinstance(event, OpaqueEvent) for event in found) == 3
    assert check_stream(encoded(found)[1]).state == "stopped"


# --- writing


def test_each_event_is_written_immediately() -> None:
    """Each event is written as soon as it is fed, and nothing is buffered (G3)."""
    encoder = DIALECT.stream_encoder()
    assert b"message_start" in encoder.feed(START)
    assert b"content_block_start" in encoder.feed(PartStart(0, Text("")))
    assert b'"Hel"' in encoder.feed(PartDelta(0, "Hel"))
    assert b'"lo"' in encoder.feed(PartDelta(0, "lo"))
    assert b"content_block_stop" in encoder.feed(PartStop(0))


def test_interleaved_calls_are_written_sequentially() -> None:
    """Interleaved deltas of parallel calls are written call after call (W66)."""
    content, body, losses = elsewhere(
        ToolCallDelta(0, "call_a", "one", ""),
        ToolCallDelta(1, "call_b", "two", ""),
        ToolCallDelta(0, arguments_delta='{"x"'),
        ToolCallDelta(1, arguments_delta='{"y":'),
        ToolCallDelta(0, arguments_delta=": 1}"),
        ToolCallDelta(1, arguments_delta=" [2]}"),
        ToolCallDelta(2, "call_c", "three"),
    )
    assert content == [
        {"type": "tool_use", "id": "call_a", "name": "one", "input": {"x": 1}},
        {"type": "tool_use", "id": "call_b", "name": "two", "input": {"y": [2]}},
        {"type": "tool_use", "id": "call_c", "name": "three", "input": {}},
    ]
    assert body["stop_reason"] == "tool_use"  # whatever the source's finish reason: W11
    assert body["usage"] == {"input_tokens": 3, "output_tokens": 4}
    assert losses == []


def test_call_deltas_are_written_immediately() -> None:
    """The second call is streamed as soon as the first one's arguments are complete."""
    encoder = DIALECT.stream_encoder()
    encoder.feed(START)
    assert encoder.feed(ToolCallDelta(0, "a", "one")) == b""  # more of its name may follow
    assert b'"name":"one"' in encoder.feed(ToolCallDelta(0, arguments_delta="{"))
    assert b"content_block_stop" not in encoder.feed(ToolCallDelta(0, arguments_delta="}"))
    assert b"content_block_stop" in encoder.feed(ToolCallDelta(1, "b", "two"))
    assert b'"name":"two"' in encoder.feed(ToolCallDelta(1, arguments_delta='{"a'))


def test_call_ids_and_names_may_come_in_pieces() -> None:
    """Late, missing and repeated ids and split names give one unique id and one name per call."""
    content, _, _ = elsewhere(
        ToolCallDelta(0, None, "we"),
        ToolCallDelta(0, "late", "ather"),
        ToolCallDelta(0, arguments_delta="{}"),
        ToolCallDelta(1, "late", "other", "{}"),
        ToolCallDelta(2, None, "third", "{}"),
    )
    assert [block["name"] for block in content] == ["weather", "other", "third"]
    assert content[0]["id"] == "late"
    assert len({block["id"] for block in content}) == 3


def test_text_ends_when_another_part_starts() -> None:
    """A text block is closed when a call starts; later text goes into a new block."""
    content, _, losses = elsewhere(
        PartStart(0, Text("")),
        PartDelta(0, "one"),
        ToolCallDelta(0, "a", "f", "{}"),
        PartDelta(0, "two"),
        PartStop(0),
    )
    assert [block["type"] for block in content] == ["text", "tool_use", "text"]
    assert [block.get("text") for block in content] == ["one", None, "two"]
    assert losses == []


def test_part_stop_content_is_written() -> None:
    """Content in a part's stop that its deltas didn't have is still written (W26)."""
    call = ToolCall("a", "f", raw='{"x": 1}')
    content, _, _ = elsewhere(
        PartStart(0, Text("")),
        PartDelta(0, "on"),
        PartStop(0, Text("only")),
        PartStart(1, ToolCall("a", "f", raw="")),
        PartStop(1, call),
        PartStop(2, Text("unannounced")),
        PartDelta(3, "nor this"),
    )
    assert [block.get("text") for block in content] == ["only", None, "unannounced", "nor this"]
    assert content[1]["input"] == {"x": 1}


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (["{}"], {}),
        ([""], {}),
        ([" ", "\n"], {}),
        (["not ", "JSON"], {"input": "not JSON"}),
        (["[1]"], {"input": "[1]"}),
        (["{'a': 1}"], {"input": "{'a': 1}"}),
        (['{"a": tr', "oo}"], {"a": True, "input": '{"a": troo}'}),
        (['{"a": "b', "\\", 'q"}'], {"a": "b\\", "input": '{"a": "b\\q"}'}),
        (['{"a": "\\u00', 'z"}'], {"a": "\0", "input": '{"a": "\\u00z"}'}),
        (['{"a": "x\ny"}'], {"a": "x", "input": '{"a": "x\ny"}'}),
        (['{"a": 1}', '{"a": 2}'], {"a": 1}),
        (['{"a": 1.5e', '+3 , "b" : null}'], {"a": 1500.0, "b": None}),
    ],
)
def test_streamed_arguments_become_an_object(pieces: list[str], arguments: Any) -> None:
    """Whatever another provider's model wrote, the deltas form a JSON object (W67, I6)."""
    content, _, losses = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="")),
        *(PartDelta(0, piece) for piece in pieces),
        PartStop(0),
    )
    assert content[0]["input"] == arguments
    assert bool(losses) == ("input" in arguments or len(arguments) == 1)


@pytest.mark.parametrize("text", ['{"a": [1, {"b": -', '{"a": {"b": 1,', '{"a"', '{"a":'])
def test_arguments_that_were_cut_off_are_no_call(text: str) -> None:
    """They stay as they came; closed, they would be an object that the client runs (I7)."""
    content, body, _ = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="")), PartDelta(0, text), PartStop(0)
    )
    assert content == []
    assert body["stop_reason"] == "max_tokens"


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6),
              st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)  # fmt: skip


@given(value=st.dictionaries(st.text(max_size=4), json_values), data=st.data())
def test_json_object_prefix_follows_any_object(value: dict[str, Any], data: st.DataObject) -> None:
    """Any object is consumed whole; truncated anywhere and closed, it is valid JSON."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()),
                      indent=data.draw(st.sampled_from([None, 1])))  # fmt: skip
    cut = data.draw(st.integers(1, len(text)))
    prefix = JsonObjectPrefix()
    assert prefix.feed(text[:cut]) == cut
    if cut < len(text):
        begun = JsonObjectPrefix()
        begun.feed(text[:cut])
        assert json.loads(text[:cut] + begun.closing('"input":1'))["input"] == 1
    assert prefix.feed(text[cut:]) == len(text) - cut
    assert prefix.is_closed
    assert not prefix.is_broken


@given(
    begun=st.sampled_from(["", '{"a":', '{"a":[', '{"a":"', '{"a":1', '{"a":{', '{"a":[1e']),
    text=st.text('{}[]",:\\u0truefalsn-+1.eE a\n', max_size=30) | json_values.map(json.dumps),
)
@example(begun='{"a":', text="1" * 999 + "}")
@example(begun='{"a":', text="1" * 1001)
def test_json_object_prefix_does_not_depend_on_chunking(begun: str, text: str) -> None:
    """A text in one chunk and in single characters is consumed equally far."""
    whole, single = JsonObjectPrefix(), JsonObjectPrefix()
    whole.feed(begun)
    single.feed(begun)
    taken = whole.feed(text)
    assert taken == sum(single.feed(mark) for mark in text if not single.is_broken)
    assert (whole.is_broken, whole.is_closed) == (single.is_broken, single.is_closed)
    if whole.is_begun and not whole.is_closed:
        assert whole.closing('"input":1') == single.closing('"input":1')


@given(
    pieces=st.lists(st.text('{}",:\\u0 abcdef\n\ud800', min_size=1, max_size=4), max_size=12),
    begun=st.sampled_from(["", '{"a":"', '{"a":']),
)
@example(pieces=["a", "b", "c", "\n", "d", "e"], begun='{"a":"')
def test_argument_deltas_do_not_depend_on_the_fast_path(pieces: list[str], begun: str) -> None:
    """The arguments sent, valid or not, are the same without the fast path."""
    told: list[Event] = [PartStart(0, ToolCall("a", "f", raw=""))]
    told += [PartDelta(0, piece) for piece in (begun, *pieces) if piece]
    with switch.off():
        expected = elsewhere(*told)
    assert elsewhere(*told) == expected


@given(pieces=st.lists(st.text('{}[]",:\\u0tfn-1. a\n', max_size=6), max_size=8))
def test_any_arguments_become_an_object(pieces: list[str]) -> None:
    """Any text in the arguments gives an object; a call that was cut off in them is left out."""
    content, _, _ = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="")), *(PartDelta(0, piece) for piece in pieces)
    )
    assert content or is_beginning("".join(pieces))
    assert all(isinstance(block["input"], dict) for block in content)


@pytest.mark.parametrize("text", ['{"a": ' + "[" * 9999, '{"a": ' + "7" * 9999])
def test_excessive_arguments_are_sent_as_text(text: str) -> None:
    """Arguments nested too deeply, or with huge numbers, are sent as text."""
    content, _, losses = elsewhere(PartStart(0, make_call("a", "f", raw=text)), PartStop(0))
    assert content[0]["input"]["input"] == text
    assert len(losses) == 1


def test_content_after_a_part_ended_is_a_loss() -> None:
    """Arguments and citations that arrive after their part ended are losses."""
    source = Citation(kind="odd", extras={"anthropic": {"x": 1}})
    content, _, losses = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="{}")),
        PartStart(1, Text("")),
        PartDelta(0, "{}"),
        PartStart(2, Text("")),
        PartStop(1, Text("", (source,))),
        PartStop(9),
        PartStart(3, ServerToolCall("search", "ws_1", origin=Origin(dialect="anthropic"))),
        PartStop(3, ServerToolCall("search", "ws_1", {"q": 1}, origin=Origin(dialect="anthropic"))),
    )
    assert [block["type"] for block in content] == ["tool_use", "text", "text", "server_tool_use"]
    assert content[3]["input"] == {"q": 1}
    assert len(losses) == 2


def test_interrupted_thinking_continues_in_a_new_block() -> None:
    """Like text, interrupted thinking continues in a new block."""
    ours = Origin(dialect="anthropic")
    content, _, _ = elsewhere(
        PartStart(0, Thinking("hm", origin=ours)),
        PartStart(1, Text("a")),
        PartDelta(0, ", so"),
        PartDelta(0, signature="c2ln"),
        PartStop(0, Thinking("hm, so", signature="c2ln", origin=ours)),
    )
    assert [block["type"] for block in content] == ["thinking", "text", "thinking"]
    assert content[2] == {"type": "thinking", "thinking": ", so", "signature": "c2ln"}


def test_custom_call_input_is_one_string_argument() -> None:
    """Free text is streamed as one string argument."""
    content, _, losses = elsewhere(
        ToolCallDelta(0, "a", "shell", "ls \n", kind="custom"),
        ToolCallDelta(0, arguments_delta='"x"\ud83d', kind="custom"),
        ToolCallDelta(0, arguments_delta="\ude00", kind="custom"),
        PartStart(5, ToolCall("b", "shell", raw="", kind="custom")),
    )
    assert [block["input"] for block in content] == [
        {"input": 'ls \n"x"\U0001f600'},
        {"input": ""},
    ]
    assert len(losses) == 2


def test_unsupported_events_are_losses() -> None:
    """Foreign events, choices, audio and log probabilities are reported as losses.

    Foreign thinking, citations and searches are shown; unknown parts are sent in envelopes.
    """
    encoder, stream = encoded([
        START,
        OpaqueEvent("openai-chat", {"x": 1}),
        OpaqueEvent("openai-chat", {"x": 2}),
        PartStart(0, Thinking("")),
        PartDelta(0, "hm"),
        PartStop(0),
        PartStart(1, Text("", (Citation(kind="url_citation", url="https://example.com"),))),
        PartDelta(1, "hi"),
        PartStart(2, Audio(data="AAAA", mime="audio/wav")),
        PartStop(2),
        PartStart(3, ServerToolCall("search", "ws_1")),
        PartStart(4, ServerToolResult("search", "ws_1")),
        PartStart(5, Opaque("openai-responses", {})),
        PartStart(0, Text("no"), choice=1),
        ChoiceFinish(FinishReason.STOP, choice=1),
        ChoiceFinish(FinishReason.STOP, logprobs={"content": []}),
        ResponseEnd(),
    ])  # fmt: skip
    check_stream(stream)
    assert [loss.path for loss in encoder.losses] == [
        "events",
        "choices[0].message.parts[2]",
        "choices[1]",
        "choices[0].logprobs",
    ]
    message = decoded(stream)[0].response.message
    assert (message.text, message.thinking) == ("hi", "hm")
    assert [type(part) for part in message.parts] == [
        Thinking, Text, Thinking, ServerToolCall, Thinking, Thinking,
    ]  # fmt: skip


def test_thinking_of_unknown_origin_needs_a_signature() -> None:
    """Without an origin, thinking is written only if a signature follows (W54)."""
    signed: list[Event] = [
        PartStart(0, Thinking("")),
        PartDelta(0, "hm"),
        PartDelta(0, signature="c2ln"),
    ]
    _, stream = encoded([ResponseStart(id="x"), *signed, PartStop(0), *END])
    check_stream(stream)
    (part,) = decoded(stream)[0].response.message.parts
    assert part == Thinking("hm", signature="c2ln")
    encoder, stream = encoded([ResponseStart(id="x"), *signed[:2], PartStop(0), *END])
    assert decoded(stream)[0].response.message.parts == ()
    assert len(encoder.losses) == 1


def test_refusal_is_written_as_stop_details() -> None:
    """Another provider's refusal is written as stop reason and details (I15)."""
    content, body, losses = elsewhere(
        PartStart(0, Refusal("")), PartDelta(0, "I'd rather "), PartDelta(0, "not."), PartStop(0)
    )
    assert content == []
    assert body["stop_reason"] == "refusal"
    assert body["stop_details"] == {"type": "refusal", "explanation": "I'd rather not."}
    assert losses == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StreamError("slow down", "rate_limit_exceeded", 429), "rate_limit_error"),
        (StreamError("busy", None, 503), "overloaded_error"),
        (StreamError("broken", "server_error"), "api_error"),
    ],
)
def test_foreign_errors_become_error_events(error: StreamError, kind: str) -> None:
    """A foreign error becomes an `error` event of the nearest type, and ends the stream."""
    _, stream = encoded([START, PartStart(0, Text("")), error])
    assert check_stream(stream).state == "failed"
    (told,) = (e for e in decoded(stream)[1] if isinstance(e, StreamError))
    assert (told.message, told.code) == (error.message, kind)


def test_truncated_events_are_written_as_an_error() -> None:
    """Without a `ResponseEnd`, the written stream ends in an error, even after a finish (G1)."""
    for events in ([], [START], [START, PartStart(0, Text("")), END[0]]):
        _, stream = encoded(events)
        assert check_stream(stream).state == "failed"
        assert b"message_stop" not in stream
