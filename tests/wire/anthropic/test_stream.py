"""Anthropic's streams: our own pairs of plain and streamed form, cut, broken off and mutated."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.codec import DIALECT
from dragoman.wire.anthropic.stream_arguments import JsonObjectPrefix
from dragoman.wire.lane import switch
from dragoman.wire.losses import Note
from dragoman.wire.stream_encoding import HELD_BACK, NO_USAGE
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

ELSEWHERE = Origin(dialect="openai-chat", model="gpt", response_id="chatcmpl-1")
START = ResponseStart(id="chatcmpl-1", model="gpt", origin=ELSEWHERE)
END: tuple[Event, ...] = (
    ChoiceFinish(FinishReason.STOP, "stop"),
    UsageUpdate(Usage(input=3, output=4)),
    ResponseEnd(),
)
names = st.sampled_from(sorted(BODIES))


def elsewhere(*events: Event) -> tuple[list[Any], dict[str, Any], list[str]]:
    """What the encoder makes of another provider's events: content, message, losses and repairs."""
    encoder, stream = encoded([START, *events, *END])
    assert check_stream(stream).state == "stopped"
    decoder, _ = decoded(stream)
    body = DIALECT.encode_response(decoder.response).body
    notes: list[Note] = [*encoder.losses, *encoder.repairs]
    return body["content"], body, [note.reason for note in notes]


# --- reading


@pytest.mark.parametrize("name", BODIES)
def test_a_stream_says_what_the_plain_form_says(name: str) -> None:
    """The folded stream equals the plain form in content, finish, usage, ids and extras."""
    decoder, _ = decoded(STREAMS[name])
    assert decoder.is_complete
    expected = DIALECT.decode_response(BODIES[name])
    assert decoder.response == expected
    assert said(decoder.response) == said(expected)
    assert DIALECT.encode_response(decoder.response).body == BODIES[name]


@given(name=names, data=st.data())
def test_cuts_make_no_difference(name: str, data: st.DataObject) -> None:
    """However the bytes are cut, the response is the same."""
    stream = STREAMS[name]
    cuts = data.draw(st.lists(st.integers(0, len(stream))))
    decoder, _ = decoded(stream, cuts)
    assert decoder.is_complete
    assert said(decoder.response) == said(decoded(stream)[0].response)


@pytest.mark.parametrize("name", BODIES)
def test_single_bytes_make_no_difference(name: str) -> None:
    """Byte by byte, the events are the same too."""
    stream = STREAMS[name]
    whole, events = decoded(stream)
    decoder, single = decoded(stream, range(len(stream)))
    assert said(decoder.response) == said(whole.response)
    assert [type(event) for event in single] == [type(event) for event in events]


@pytest.mark.parametrize("name", BODIES)
def test_an_early_end_is_never_complete(name: str) -> None:
    """Cut off after any event, there is no end, no matter what was said before."""
    events = events_of(BODIES[name])
    for count in range(len(events)):
        decoder, found = decoded(written(events[:count]))
        assert not decoder.is_complete
        assert not any(isinstance(event, ResponseEnd) for event in found)
        encoder, stream = encoded(found)
        assert check_stream(stream).state == "failed"
        assert {loss.reason for loss in encoder.losses} <= {HELD_BACK, NO_USAGE}
        if count < len(events) - 1:
            assert decoder.response.finish is None


@given(name=names, data=st.data())
def test_a_dropped_connection_is_never_complete(name: str, data: st.DataObject) -> None:
    """Cut off after any byte, in the middle of a frame too, nothing raises and nothing ends."""
    stream = STREAMS[name]
    cut = data.draw(st.integers(0, len(stream) - len("}\n\n")))
    decoder, events = decoded(stream[:cut])
    assert not decoder.is_complete
    assert check_stream(encoded(events)[1]).state == "failed"


def test_a_text_is_passed_on_as_it_comes() -> None:
    """Each piece of a text is an event of its own, after the part's start and before its stop."""
    _, events = decoded(written(events_of(plain({"type": "text", "text": "abcdefgh"}))))
    kinds = [type(event) for event in events]
    assert kinds == [ResponseStart, UsageUpdate, PartStart, PartDelta, PartDelta, PartStop,
                     ResponseStart, UsageUpdate, ChoiceFinish, ResponseEnd]  # fmt: skip
    assert [event.text for event in events if isinstance(event, PartDelta)] == ["abcde", "fgh"]


def test_an_error_in_mid_stream_is_an_event() -> None:
    """The provider's error is told, kept whole, and the answer is not complete."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"},
             "request_id": "req_1"}  # fmt: skip
    events = events_of(BODIES["text"])
    stream = written([*events[:4], error, *events[4:]])
    decoder, found = decoded(stream)
    (told,) = (event for event in found if isinstance(event, StreamError))
    assert (told.message, told.code, told.status) == ("Overloaded", "overloaded_error", 529)
    assert not decoder.is_complete
    _, again = encoded(found)
    assert check_stream(again).state == "failed"
    assert json.dumps(error, separators=(",", ":")).encode() in again


@pytest.mark.parametrize("error", [{"error": "boom"}, {"type": "error"}, {"error": {"type": 7}}])
def test_an_error_of_any_shape_is_an_event(error: dict[str, Any]) -> None:
    """Errors without a message, a type or an object are errors all the same."""
    decoder, events = decoded(f"event: error\ndata: {json.dumps(error)}\n\n".encode())
    assert [type(event) for event in events] == [StreamError]
    assert not decoder.is_complete


def test_a_call_that_was_cut_off_stays_recognisable() -> None:
    """Arguments that broke off are kept as they came, in a message that never finished."""
    events = events_of(BODIES["parallel calls"])
    cut = next(i for i, e in enumerate(events) if e.get("index") == 1) + 4
    decoder, _ = decoded(written(events[:cut]))
    (call,) = decoder.response.tool_calls
    assert not call.has_valid_arguments
    assert call.raw == '{"cit'
    assert decoder.response.message.finish is None


def test_a_call_cut_off_at_the_limit_comes_through_as_it_was() -> None:
    """Where the provider itself ends inside of the arguments, so does the stream we write."""
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


def test_what_nobody_knows_is_carried() -> None:
    """Unknown events, fields and deltas are kept; padding is not (W18)."""
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


def test_gateways_say_goodbye_in_openai_s_words() -> None:
    """`[DONE]` after the end, comments, names of events left out: all fine."""
    stream = STREAMS["text"].replace(b"event: content_block_delta\n", b": hello\n")
    decoder, _ = decoded(stream + b"event: data\ndata: [DONE]\n\n")
    assert decoder.is_complete
    assert said(decoder.response) == said(decoded(STREAMS["text"])[0].response)


def test_a_stream_that_starts_over_is_not_complete() -> None:
    """Two answers spliced into one are not an answer."""
    events = events_of(BODIES["text"])
    decoder, found = decoded(written([*events[:5], *events]))
    assert not decoder.is_complete
    assert [type(event) for event in found if isinstance(event, StreamError)] == [StreamError]


def test_what_comes_after_the_end_is_another_answer() -> None:
    """A second message after the first one's end is carried, and changes nothing."""
    decoder, found = decoded(STREAMS["text"] + STREAMS["thinking"])
    assert decoder.is_complete
    assert said(decoder.response) == said(DIALECT.decode_response(BODIES["text"]))
    encoder, stream = encoded(found)
    assert check_stream(stream).state == "stopped"
    assert len(encoder.losses) == 1


def test_sloppy_servers_are_understood() -> None:
    """Content in the start, blocks without number, announcement, body or stop, a finish at once."""
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


@pytest.mark.parametrize(
    "data", ["{", "[1]", "null", '"a"', "nonsense", '{"type": "x"} {}', "1e999"]
)
def test_garbage_is_a_wire_error(data: str) -> None:
    """A frame that is not a JSON object is refused without being quoted."""
    with pytest.raises(WireError) as caught:
        decoded(f"data: {data}\n\n".encode())
    assert caught.value.dialect == "anthropic"
    assert "nonsense" not in str(caught.value)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just(1e300),
              st.sampled_from(["text", "tool_use", "thinking", "text_delta", "error", "\ud800"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "text", "index", "delta", "input", "usage", "x"]), inner,
        max_size=4),
    max_leaves=8,
)  # fmt: skip


def _mutated(value: Any, data: st.DataObject) -> Any:
    """A value in which one thing, at some depth, is another."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
        key = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 5)):
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _mutated(value[key], data)}
    return data.draw(values)


@given(name=names, data=st.data())
def test_a_stream_with_things_wrong_is_events_or_a_wire_error(
    name: str, data: st.DataObject
) -> None:
    """Frames lost, doubled, swapped or changed: nothing but a `WireError` gets out, both ways."""
    events = events_of(BODIES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(events) - 1))
        what = data.draw(st.sampled_from(["drop", "double", "swap", "change"]))
        if what == "drop" and len(events) > 1:
            del events[at]
        elif what == "double":
            events.insert(data.draw(st.integers(0, len(events))), events[at])
        elif what == "swap":
            events[at], events[0] = events[0], events[at]
        else:
            events[at] = _mutated(events[at], data)
    stream = b"".join(b"event: e\ndata: " + json.dumps(e).encode() + b"\n\n" for e in events)
    with suppress(WireError):
        decoder, found = decoded(stream)
        DIALECT.encode_response(decoder.response).to_bytes()
        _, again = encoded(found)
        if not any(isinstance(event, OpaqueEvent) for event in found):  # those go back as they came
            check_stream(again, may_break_off=True)


@given(name=names, cut=st.integers(0, 2000), junk=st.binary(max_size=30))
def test_junk_in_the_bytes_is_events_or_a_wire_error(name: str, cut: int, junk: bytes) -> None:
    """Bytes put in anywhere do no harm."""
    stream = STREAMS[name]
    with suppress(WireError):
        decoded(stream[:cut] + junk + stream[cut:])


# --- writing


@pytest.mark.parametrize("name", BODIES)
def test_a_stream_written_again_says_the_same(name: str) -> None:
    """Decoded, encoded and decoded again, the response is equal, and nothing was lost."""
    decoder, events = decoded(STREAMS[name])
    encoder, stream = encoded(events)
    assert check_stream(stream).state == "stopped"
    assert said(decoded(stream)[0].response) == said(decoder.response)
    assert encoder.losses == []


def test_each_event_is_written_at_once() -> None:
    """The message starts with the response, and every piece of text goes out as it comes (G3)."""
    encoder = DIALECT.stream_encoder()
    assert b"message_start" in encoder.feed(START)
    assert b"content_block_start" in encoder.feed(PartStart(0, Text("")))
    assert b'"Hel"' in encoder.feed(PartDelta(0, "Hel"))
    assert b'"lo"' in encoder.feed(PartDelta(0, "lo"))
    assert b"content_block_stop" in encoder.feed(PartStop(0))


def test_interleaved_calls_are_written_one_after_the_other() -> None:
    """Parallel calls whose pieces come mixed up come out whole and in order (W66)."""
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
    assert body["stop_reason"] == "tool_use"  # whatever the other side called it: W11
    assert body["usage"] == {"input_tokens": 3, "output_tokens": 4}
    assert losses == []


def test_a_call_goes_out_while_it_is_written() -> None:
    """The second call is live as soon as the first one's arguments are whole."""
    encoder = DIALECT.stream_encoder()
    encoder.feed(START)
    assert encoder.feed(ToolCallDelta(0, "a", "one")) == b""  # its name may go on
    assert b'"name":"one"' in encoder.feed(ToolCallDelta(0, arguments_delta="{"))
    assert b"content_block_stop" not in encoder.feed(ToolCallDelta(0, arguments_delta="}"))
    assert b"content_block_stop" in encoder.feed(ToolCallDelta(1, "b", "two"))
    assert b'"name":"two"' in encoder.feed(ToolCallDelta(1, arguments_delta='{"a'))


def test_the_heads_of_calls_may_come_in_pieces() -> None:
    """Late ids, names in pieces, no ids, the same id twice: each call gets one id and one name."""
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


def test_a_text_ends_where_another_part_begins() -> None:
    """Nobody waits for the stop of a text; more of it goes into a block of its own."""
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


def test_the_final_word_on_a_part_is_completed() -> None:
    """What a part's stop says beyond its deltas is still written (W26)."""
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
        (['{"a": [1, {"b": -'], {"a": [1, {"b": -0}], "input": '{"a": [1, {"b": -'}),
        (['{"a": {"b": 1,'], {"a": {"b": 1, "": None}, "input": '{"a": {"b": 1,'}),
        (['{"a', '"'], {"a": None, "input": '{"a"'}),
        (['{"a":'], {"a": None, "input": '{"a":'}),
        (['{"a": "x\ny"}'], {"a": "x", "input": '{"a": "x\ny"}'}),
        (['{"a": 1}', '{"a": 2}'], {"a": 1}),
        (['{"a": 1.5e', '+3 , "b" : null}'], {"a": 1500.0, "b": None}),
    ],
)
def test_arguments_are_an_object_in_the_end(pieces: list[str], arguments: Any) -> None:
    """Whatever another provider's model wrote, the pieces add up to JSON (W67, I6)."""
    content, _, losses = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="")),
        *(PartDelta(0, piece) for piece in pieces),
        PartStop(0),
    )
    assert content[0]["input"] == arguments
    assert bool(losses) == ("input" in arguments or len(arguments) == 1)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6),
              st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)  # fmt: skip


@given(value=st.dictionaries(st.text(max_size=4), json_values), data=st.data())
def test_a_json_object_is_followed_to_its_end(value: dict[str, Any], data: st.DataObject) -> None:
    """Every object is taken whole; cut anywhere and closed, it is an object still."""
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
def test_runs_are_taken_as_their_characters_are(begun: str, text: str) -> None:
    """A text in one piece and the same one in single characters are taken just as far."""
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
def test_runs_of_arguments_are_sent_as_single_pieces_are(pieces: list[str], begun: str) -> None:
    """What is sent of arguments, broken or not, does not depend on the shorter way."""
    told: list[Event] = [PartStart(0, ToolCall("a", "f", raw=""))]
    told += [PartDelta(0, piece) for piece in (begun, *pieces) if piece]
    with switch.off():
        expected = elsewhere(*told)
    assert elsewhere(*told) == expected


@given(pieces=st.lists(st.text('{}[]",:\\u0tfn-1. a\n', max_size=6), max_size=8))
def test_any_arguments_are_an_object_in_the_end(pieces: list[str]) -> None:
    """Nothing that can be written into arguments comes out as anything but an object."""
    content, _, _ = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="")), *(PartDelta(0, piece) for piece in pieces)
    )
    assert isinstance(content[0]["input"], dict)


@pytest.mark.parametrize("text", ['{"a": ' + "[" * 9999, '{"a": ' + "7" * 9999])
def test_arguments_without_measure_are_text(text: str) -> None:
    """What nests too deeply, or is no number that anybody means, is given up in time."""
    content, _, losses = elsewhere(PartStart(0, make_call("a", "f", raw=text)), PartStop(0))
    assert content[0]["input"]["input"] == text
    assert len(losses) == 1


def test_what_comes_too_late_is_a_loss() -> None:
    """Arguments after their call's end and citations after their text's are reported."""
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


def test_thinking_goes_on_after_something_else() -> None:
    """As a text, thinking that was interrupted goes on in a block of its own."""
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


def test_a_custom_call_s_text_is_its_argument() -> None:
    """Free text goes out as it comes, as one string argument."""
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


def test_what_can_t_be_said_is_a_loss() -> None:
    """Others' events, choices and log probabilities are left out and reported.

    Their thinking, sources and searches are shown; what we don't know goes in an envelope.
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


def test_thinking_of_unknown_origin_goes_out_if_it_is_signed() -> None:
    """Without an origin only the signature, which comes last, tells whether it may (W54)."""
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


def test_a_refusal_stands_beside_the_content() -> None:
    """The words of another provider's refusal end up where the plain form has them (I15)."""
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
def test_others_errors_are_told_in_our_words(error: StreamError, kind: str) -> None:
    """A foreign error becomes an `error` event of the nearest type, and ends the stream."""
    _, stream = encoded([START, PartStart(0, Text("")), error])
    assert check_stream(stream).state == "failed"
    (told,) = (e for e in decoded(stream)[1] if isinstance(e, StreamError))
    assert (told.message, told.code) == (error.message, kind)


def test_a_stream_that_broke_off_is_no_clean_finish() -> None:
    """Without the response's end there is an error event, even after the finish (G1)."""
    for events in ([], [START], [START, PartStart(0, Text("")), END[0]]):
        _, stream = encoded(events)
        assert check_stream(stream).state == "failed"
        assert b"message_stop" not in stream
