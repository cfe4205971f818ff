"""Streams of the Responses API: plain and streamed pairs, split, truncated and mutated."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

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
from dragoman.model.media import Audio
from dragoman.model.parts import (
    Citation,
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from tests.wire.openai_responses.stream_grammar import Grammar, check_stream
from tests.wire.openai_responses.streams import (
    BODIES,
    STREAMS,
    Wire,
    call,
    decoded,
    encoded,
    events_of,
    message,
    numbered,
    plain,
    said,
    text,
    written,
)
from tests.wire.streams import ELSEWHERE, END, START


def elsewhere(*events: Event) -> tuple[list[Any], Grammar, list[str]]:
    """Encodes another provider's events; returns the output, the grammar and the losses."""
    encoder, stream = encoded([START, *events, *END])
    grammar = check_stream(stream)
    assert grammar.state == "completed"
    output = grammar.response["output"]
    assert len({item["id"] for item in output}) == len(output)
    return output, grammar, [loss.reason for loss in encoder.losses]


def kinds_of(stream: bytes) -> list[str]:
    """The types of a stream's events."""
    lines = stream.decode().splitlines()
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


# --- reading


@pytest.mark.parametrize("name", BODIES)
def test_our_streams_are_valid(name: str) -> None:
    """The stream grammar accepts the streams that we build for each body."""
    state = check_stream(STREAMS[name]).state
    assert state == BODIES[name]["status"]


def _without(*kinds: str) -> Callable[[Wire], Wire | None]:
    return lambda event: None if event["type"] in kinds else event


def _with(kind: str, **fields: Any) -> Callable[[Wire], Wire | None]:
    return lambda event: {**event, **fields} if event["type"] == kind else event


@pytest.mark.parametrize(
    "change",
    [
        _without("response.created"),
        _without("response.in_progress"),
        _without("response.output_item.added"),
        _without("response.content_part.added"),
        _without("response.content_part.done"),
        _without("response.function_call_arguments.delta"),
        _without("response.function_call_arguments.done"),
        _without("response.output_item.done"),
        _with("response.output_item.added", output_index=0),
        _with("response.output_text.delta", delta="x"),
        _with("response.output_text.delta", item_id="msg_x"),
        _with("response.output_text.delta", logprobs=None),
        _with("response.output_text.done", text="x"),
        _with("response.content_part.done", part=text("x")),
        _with("response.function_call_arguments.delta", output_index=0),
        _with("response.completed", response=plain()),
        _with("response.completed", response={**BODIES["parallel calls"], "status": "failed"}),
        _with("response.completed", response={**BODIES["parallel calls"], "id": "resp_2"}),
    ],
)
def test_grammar_rejects_invalid_streams(change: Callable[[Wire], Wire | None]) -> None:
    """A stream with a missing or contradictory event is rejected."""
    changed = [change(event) for event in events_of(BODIES["parallel calls"])]
    stream = written(numbered([event for event in changed if event is not None]))
    with pytest.raises((AssertionError, LookupError)):
        check_stream(stream)


def test_grammar_checks_numbers_names_and_the_end() -> None:
    """Wrong sequence numbers, wrong event names and events after the end are rejected."""
    events = events_of(BODIES["text"])
    for stream in (
        written([*events[:3], *events[4:]]),
        written(events).replace(b"event: response.output_text.delta", b"event: delta"),
        written([*events, {**events[-1], "sequence_number": len(events)}]),
    ):
        with pytest.raises(AssertionError):
            check_stream(stream)


def test_partial_content_is_in_the_response_before_the_end() -> None:
    """The response of a truncated stream has the partial texts, thinking and calls."""
    body = plain(
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hmmmm"}]},
        message(text("Right"), phase="commentary"),
        call("1", "weather", '{"city": "Basel"}'),
    )
    events = events_of(body)
    cut = next(n for n, e in enumerate(events) if e["type"].endswith("arguments.delta")) + 1
    decoder, _ = decoded(written(events[:cut]))
    thought, words, begun = decoder.response.message.parts
    assert isinstance(begun, ToolCall)
    assert (thought, words) == (Thinking("hmmmm", form="summary"), Text("Right"))
    assert (begun.id, begun.name, begun.raw) == ("call_1", "weather", '{"cit')
    assert not begun.has_valid_arguments
    assert decoder.response.message.finish is None


def test_partial_server_tool_code_is_in_the_response() -> None:
    """The response of a truncated stream has the code received so far for a server tool."""
    events = events_of(BODIES["server tools"])
    cut = next(n for n, e in enumerate(events) if e["type"].endswith("call_code.delta")) + 1
    decoder, _ = decoded(written(events[:cut]))
    (*_, program) = decoder.response.message.parts
    assert isinstance(program, ServerToolCall)
    assert program.input["code"] == "1 + 1"
    assert program.extras == {"openai-responses": {"status": "in_progress"}}


def test_encrypted_reasoning_is_read_from_the_done_event() -> None:
    """Encrypted content is read from `output_item.done`, since the added item may lack it (W26)."""
    events = events_of(BODIES["summaries"])
    done = next(n for n, e in enumerate(events) if e["type"] == "response.output_item.done")
    before, _ = decoded(written(events[:done]))
    after, found = decoded(written(events[: done + 1]))
    assert [part.data for part in before.response.message.parts] == [None, None]  # type: ignore[union-attr]  # thinking
    assert [part.data for part in after.response.message.parts] == ["c2VhbGVk", None]  # type: ignore[union-attr]  # thinking
    assert isinstance(found[-1], PartStop)
    _, again = encoded(decoded(STREAMS["summaries"])[1])
    assert b"c2VhbGVk" not in again.partition(b"output_item.done")[0]


def test_final_response_overrides_earlier_items() -> None:
    """If the last event contradicts an item's own done event, the last event wins."""
    events = events_of(BODIES["summaries"])
    last = json.loads(json.dumps(events[-1]))
    last["response"]["output"][0]["encrypted_content"] = "YW5vdGhlcg=="
    last["response"]["output"].append(message(text("And."), id="msg_2"))
    decoder, found = decoded(written([*events[:-1], last]))
    expected = DIALECT.decode_response(last["response"])
    assert said(decoder.response) == said(expected)
    _, stream = encoded(found)
    assert check_stream(stream).state == "completed"
    assert said(decoded(stream)[0].response) == said(expected)


@pytest.mark.parametrize("output", [[], None, "gone"])
def test_empty_final_output_keeps_the_streamed_items(output: Any) -> None:
    """If the final output is empty, as from the Codex backend, the streamed items are kept."""
    events = events_of(BODIES["parallel calls"])
    events[-1] = {**events[-1], "response": {**events[-1]["response"], "output": output}}
    decoder, _ = decoded(written(events))
    assert decoder.is_complete
    expected = DIALECT.decode_response(BODIES["parallel calls"])
    assert decoder.response.message == expected.message
    assert decoder.response.finish is FinishReason.TOOL_CALLS


def test_interleaved_items_keep_their_order() -> None:
    """Parts of interleaved items are in the same order as in the plain form."""
    body = plain(message(text("First.")), call("1", "now", "{}"))
    events = events_of(body)
    begins = [n for n, e in enumerate(events) if e["type"] == "response.output_item.added"]
    late = events[begins[1]]
    mixed = [*events[: begins[0] + 1], late, *events[begins[0] + 1 : begins[1]],
             *events[begins[1] + 1 :]]  # fmt: skip
    decoder, _ = decoded(written(mixed))
    assert said(decoder.response) == said(DIALECT.decode_response(body))


def test_deltas_carry_their_log_probabilities() -> None:
    """Each delta has its own log probabilities, and the whole text has all of them."""
    decoder, events = decoded(STREAMS["log probabilities"])
    told = [e.extras for e in events if isinstance(e, PartDelta) and e.extras]
    assert told == [{"openai-responses": {"logprobs": _logprobs()}}]
    _, stream = encoded(events)
    assert stream.count(b'"logprobs":[{') == 5  # delta, text, part, item, response
    assert said(decoded(stream)[0].response) == said(decoder.response)


def _logprobs() -> Any:
    return BODIES["log probabilities"]["output"][0]["content"][0]["logprobs"]


# --- errors


@pytest.mark.parametrize("has_event", [False, True])
def test_failed_response_is_an_error(has_event: bool) -> None:
    """A failed response isn't complete, gives one `StreamError`, and is written again as failed."""
    failure = {"code": "server_error", "message": "Something broke"}
    body = plain(message(text("Half an")), status="failed", error=failure, usage=None)
    events = events_of(body)
    if has_event:
        events.insert(-1, {"type": "error", "error": {"type": "server_error", **failure}})
    decoder, found = decoded(written(events))
    assert not decoder.is_complete
    assert sum(isinstance(event, StreamError) for event in found) == 1
    assert said(decoder.response) == said(DIALECT.decode_response(body))
    _, stream = encoded(found)
    grammar = check_stream(stream)
    assert grammar.state == "failed"
    assert grammar.response["error"] == failure
    assert said(decoded(stream)[0].response) == said(decoder.response)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StreamError("slow down", "rate_limit_error", 429), "rate_limit_exceeded"),
        (StreamError("busy", None, 503), "server_error"),
        (StreamError("no", "invalid_prompt"), "invalid_prompt"),
    ],
)
def test_foreign_errors_become_failed_responses(error: StreamError, code: str) -> None:
    """Another provider's error ends in `response.failed`, with the content received so far."""
    _, stream = encoded([START, PartStart(0, Text("")), PartDelta(0, "Half"), error])
    grammar = check_stream(stream)
    assert grammar.state == "failed"
    assert grammar.response["error"] == {"code": code, "message": error.message}
    assert grammar.response["output"][0]["content"][0]["text"] == "Half"
    (told,) = (e for e in decoded(stream)[1] if isinstance(e, StreamError))
    assert (told.message, told.code) == (error.message, code)


def test_truncated_events_are_written_as_a_failure() -> None:
    """Without a `ResponseEnd`, the written stream ends in a failure, even after a finish (G1)."""
    for events in ([], [START], [START, PartStart(0, Text("")), END[0]]):
        _, stream = encoded(events)
        assert check_stream(stream).state == "failed"
        assert kinds_of(stream)[:2] == ["response.created", "response.in_progress"]


# --- what other servers do


def test_unknown_events_and_fields_are_kept() -> None:
    """Unknown events and fields are kept; padding and sequence numbers aren't (W18)."""
    events = events_of(BODIES["text"])
    events[2:2] = [{"type": "response.weather", "sky": "blue", "sequence_number": 2}]
    events[5] |= {"odd": 1}
    events[-1] |= {"cost": 2}
    decoder, found = decoded(written(events))
    payloads = [event.payload for event in found if isinstance(event, OpaqueEvent)]
    assert payloads == [{"type": "response.weather", "sky": "blue"}, {"odd": 1}, {"cost": 2}]
    encoder, stream = encoded(found)
    check_stream(stream)
    assert b'"response.weather","sky":"blue"' in stream
    assert len(encoder.losses) == 1
    assert said(decoded(stream)[0].response) == said(decoder.response)


def test_server_tool_progress_is_kept() -> None:
    """Progress events of server tools are written again, at their item's index."""
    kinds = kinds_of(STREAMS["server tools"])
    _, found = decoded(STREAMS["server tools"])
    _, stream = encoded(found)
    check_stream(stream)
    assert sorted(kinds_of(stream)) == sorted(kinds)
    news: Event = OpaqueEvent("openai-responses", {"type": "response.x_call.y", "item_id": "x"})
    encoder, _ = encoded([*found[:2], news])
    assert [loss.path for loss in encoder.losses] == ["events"]


def test_code_is_complete_before_it_runs() -> None:
    """The `interpreting` event is written after the code's done event."""
    item = BODIES["server tools"]["output"][1]
    events = events_of(plain(item))
    done = next(n for n, e in enumerate(events) if e["type"] == "response.output_item.done")
    runs = {"type": "response.code_interpreter_call.interpreting", "item_id": "ci_1",
            "output_index": 0}  # fmt: skip
    _, found = decoded(written([*events[:done], runs, *events[done:]]))
    kinds = kinds_of(encoded(found)[1])
    at = kinds.index("response.code_interpreter_call.interpreting")
    assert kinds[at - 1] == "response.code_interpreter_call_code.done"
    assert kinds[at + 1] == "response.output_item.done"


def test_gateway_variations_are_accepted() -> None:
    """`[DONE]`, comments, keep-alives and missing event names are accepted."""
    stream = STREAMS["text"].replace(b"event: response.output_text.delta\n", b": hello\n")
    stream = b'data: {"type": "keepalive"}\n\n' + stream + b"data: [DONE]\n\n"
    decoder, _ = decoded(stream)
    assert decoder.is_complete
    assert said(decoder.response) == said(decoded(STREAMS["text"])[0].response)


def test_changing_item_ids_are_accepted() -> None:
    """If ids differ in each event, as from GitHub's gateway, items are matched by index."""
    events = json.loads(json.dumps(events_of(BODIES["summaries"])))
    for number, event in enumerate(events):
        for wire in (event, event.get("item", {}), event.get("response", {})):
            for key in {"id", "item_id"} & wire.keys():
                wire[key] = f"id_{number}"
    decoder, found = decoded(written(events))
    assert decoder.is_complete
    assert decoder.response.message == DIALECT.decode_response(BODIES["summaries"]).message
    assert check_stream(encoded(found)[1]).state == "completed"
    assert decoder.response.id == "id_0"


def test_restarted_stream_is_not_complete() -> None:
    """A stream that contains the start of a second response is an error."""
    events = events_of(BODIES["text"])
    other = {**events[0], "response": {**events[0]["response"], "id": "resp_2"}}
    decoder, found = decoded(written([*events[:5], other, *events[1:]]))
    assert not decoder.is_complete
    assert [type(event) for event in found if isinstance(event, StreamError)] == [StreamError]


def test_response_after_the_end_is_ignored() -> None:
    """A second response after the end is kept as opaque events and changes nothing."""
    decoder, found = decoded(STREAMS["text"] + STREAMS["summaries"])
    assert decoder.is_complete
    assert said(decoder.response) == said(DIALECT.decode_response(BODIES["text"]))
    encoder, stream = encoded(found)
    assert check_stream(stream).state == "completed"
    assert len(encoder.losses) == 1


def test_incomplete_events_are_tolerated() -> None:
    """Missing start events, indexes, ids and item ends are tolerated."""
    stream = written([
        {"type": "response.output_text.delta", "delta": "Hel"},
        {"type": "response.output_text.delta", "delta": "lo"},
        {"type": "response.output_item.added", "item": {"type": "reasoning", "summary": [
            {"type": "summary_text", "text": "hm"}]}},
        {"type": "response.reasoning_summary_text.delta", "delta": "m"},
        {"type": "response.reasoning_text.delta", "content_index": 0, "delta": "so"},
        {"type": "response.output_item.added", "output_index": 7, "item": {
            "type": "function_call", "call_id": "c", "name": "n"}},
        {"type": "response.function_call_arguments.delta", "output_index": 7, "delta": "{}"},
        {"type": "response.output_item.done", "item": message(text("Done."), id="msg_9")},
        {"type": "response.completed"},
    ])  # fmt: skip
    decoder, found = decoded(stream)
    assert decoder.is_complete
    assert decoder.response.finish is FinishReason.TOOL_CALLS
    assert decoder.response.message.parts == (
        Text("Hello"), Thinking("hmm", form="summary"), Thinking("so"),
        ToolCall("c", "n", raw="{}"), Text("Done."),
    )  # fmt: skip
    assert not any(isinstance(event, OpaqueEvent) for event in found)
    assert check_stream(encoded(found)[1]).state == "completed"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": 7},
        {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "no"},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{"},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_x", "delta": "{"},
        {"type": "response.content_part.added", "output_index": 5, "part": {}},
        {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": 1},
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "part": {}},
        {"type": "response.output_item.added", "output_index": 1, "item": None},
        {"type": "response.output_item.done", "output_index": 1, "item": "x"},
        {"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 9},
        {"type": "response.in_progress", "response": []},
        {"type": "response.audio.delta", "delta": "AAAA"},
    ],
)
def test_inconsistent_events_are_kept_as_opaque(event: dict[str, Any]) -> None:
    """An event that doesn't match its item changes nothing and is kept as an opaque event."""
    events = events_of(BODIES["text"])
    decoder, found = decoded(written([*events[:5], event, *events[5:]]))
    assert decoder.is_complete
    assert [e.payload for e in found if isinstance(e, OpaqueEvent)] == [event]
    assert said(decoder.response) == said(DIALECT.decode_response(BODIES["text"]))
    assert check_stream(encoded(found)[1]).state == "completed"


def test_items_with_the_same_index_and_id_are_both_kept() -> None:
    """A second item with the index and id of the first doesn't replace it."""
    events = [*events_of(plain(message(text("One."))))[:-1],
              *events_of(plain(message(text("Two."))))[2:-1]]  # fmt: skip
    decoder, found = decoded(written([*events, {"type": "response.completed"}]))
    assert [part.text for part in decoder.response.message.parts] == ["One.", "Two."]  # type: ignore[union-attr]  # texts
    _, stream = encoded(found)
    assert check_stream(stream).state == "completed"
    assert decoded(stream)[0].response.text == "One.Two."


# --- writing


@pytest.mark.parametrize("name", BODIES)
def test_the_last_event_has_the_whole_response(name: str) -> None:
    """It has the plain body, and its type the body's status."""
    grammar = check_stream(encoded(decoded(STREAMS[name])[1])[1])
    assert grammar.state == BODIES[name]["status"]
    assert grammar.response == BODIES[name]


def test_text_is_written_with_all_its_events() -> None:
    """A text is written with every event that clients expect, in order (W34)."""
    _, stream = encoded([START, PartStart(0, Text("")), PartDelta(0, "Hi"), PartStop(0), *END])
    assert kinds_of(stream) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    response = check_stream(stream).response
    assert (response["id"], response["model"], response["created_at"]) == ("chatcmpl-1", "gpt", 7)
    assert response["usage"]["total_tokens"] == 7


def test_each_event_is_written_immediately() -> None:
    """Each event is written as soon as it is fed (G3); an item's end, when it is known how."""
    encoder = StreamEncoder()
    assert b"response.in_progress" in encoder.feed(START)
    assert b"response.content_part.added" in encoder.feed(PartStart(0, Text("")))
    assert b'"Hel"' in encoder.feed(PartDelta(0, "Hel"))
    assert b'"lo"' in encoder.feed(PartDelta(0, "lo"))
    assert b"response.output_text.done" in encoder.feed(PartStop(0))
    assert b"response.output_item.done" in encoder.feed(PartStart(1, Thinking("Hm.")))


def test_interleaved_calls_are_written_at_their_own_index() -> None:
    """Interleaved deltas of parallel calls are written to their own items (W35)."""
    output, grammar, losses = elsewhere(
        ToolCallDelta(0, "call_a", "one", ""),
        ToolCallDelta(1, "call_b", "two", ""),
        ToolCallDelta(0, arguments_delta='{"x"'),
        ToolCallDelta(1, arguments_delta='{"y":'),
        ToolCallDelta(0, arguments_delta=": 1}"),
        ToolCallDelta(1, arguments_delta=" [2]}"),
        ToolCallDelta(2, "call_c", "three"),
    )
    assert [(item["call_id"], item["name"], item["arguments"]) for item in output] == [
        ("call_a", "one", '{"x": 1}'),
        ("call_b", "two", '{"y": [2]}'),
        ("call_c", "three", "{}"),
    ]
    assert [item.arguments for item in grammar.items] == ['{"x": 1}', '{"y": [2]}', "{}"]
    assert grammar.response["usage"]["input_tokens"] == 3
    assert losses == []


def test_call_deltas_are_written_immediately() -> None:
    """Only the start of a call is held back, since more of its name may follow."""
    encoder = StreamEncoder()
    encoder.feed(START)
    assert encoder.feed(ToolCallDelta(0, "a", "one")) == b""
    assert b'"name":"one"' in encoder.feed(ToolCallDelta(0, arguments_delta="{"))
    assert b'"delta":"}"' in encoder.feed(ToolCallDelta(0, arguments_delta="}"))
    assert encoder.feed(ToolCallDelta(1, "b", "two")) == b""
    assert b'"name":"two"' in encoder.feed(ToolCallDelta(1, arguments_delta='{"a'))


def test_call_ids_and_names_may_come_in_pieces() -> None:
    """Late, missing and repeated ids and split names give one unique id and one name per call."""
    output, _, _ = elsewhere(
        ToolCallDelta(0, None, "we"),
        ToolCallDelta(0, "late", "ather"),
        ToolCallDelta(0, arguments_delta="{}"),
        ToolCallDelta(1, "late", "other", "{}"),
        ToolCallDelta(2, None, "third", "{}"),
    )
    assert [item["name"] for item in output] == ["weather", "other", "third"]
    assert output[0]["call_id"] == "late"
    assert len({item["call_id"] for item in output}) == 3


def test_text_ends_when_another_part_starts() -> None:
    """A text item is done before the call after it; later text goes into a new item."""
    output, _, losses = elsewhere(
        PartStart(0, Text("")),
        PartDelta(0, "one"),
        ToolCallDelta(0, "a", "f", "{}"),
        PartDelta(0, "two"),
        PartStop(0, Text("onetwo")),
    )
    assert [item["type"] for item in output] == ["message", "function_call", "message"]
    assert [item["content"][0]["text"] for item in (output[0], output[2])] == ["one", "two"]
    assert losses == []
    encoder = StreamEncoder()
    for event in (START, PartStart(0, Text("")), PartDelta(0, "one")):
        encoder.feed(event)
    assert b"response.output_item.done" in encoder.feed(ToolCallDelta(0, "a", "f", "{}"))


@pytest.mark.parametrize("kind", [Refusal, Thinking])
def test_interrupted_parts_continue_in_a_new_item(kind: type[Refusal | Thinking]) -> None:
    """Like text, an interrupted refusal or thinking continues in a new item."""
    output, _, _ = elsewhere(
        PartStart(0, kind("one")), PartStart(1, Text("x")), PartDelta(0, "two"), PartStop(0)
    )
    assert len(output) == 3
    assert output[0]["type"] == output[2]["type"]
    assert "two" in json.dumps(output[2])


@pytest.mark.parametrize("final", [Text(""), Text("no"), Thinking(""), Thinking("no")])
@pytest.mark.parametrize("is_interrupted", [True, False])
def test_retracted_thinking_keeps_its_items(final: Text | Thinking, is_interrupted: bool) -> None:
    """The final event has as many items as the stream; what can't be retracted is a loss."""
    interruption = [PartStart(1, Text("x"))] if is_interrupted else []
    encoder, stream = encoded(
        [
            ResponseStart(id="r1", model="m"),
            PartStart(0, Thinking("one")),
            *interruption,
            PartDelta(0, "two"),
            PartStop(0, final),
            ChoiceFinish(FinishReason.STOP),
            ResponseEnd(),
        ]
    )
    grammar = check_stream(stream, may_contradict=True)
    assert len(grammar.response["output"]) == (3 if is_interrupted else 1)
    if is_interrupted or final != Thinking("no"):  # otherwise the final event has the new text
        assert [loss.path for loss in encoder.losses] == ["choices[0].message.parts[0]"]


def test_loss_paths_after_an_interruption_name_the_right_part() -> None:
    """Items added for an interrupted part don't shift the part index in loss paths."""
    encoder, _ = encoded(
        [
            START,
            PartStart(0, Text("one")),
            PartStart(1, Text("x")),
            PartDelta(0, "two"),
            PartStart(2, Audio(data="AAAA", mime="audio/wav")),
            ResponseEnd(),
        ]
    )
    assert [loss.path for loss in encoder.losses] == ["choices[0].message.parts[2]"]


def test_part_stop_content_is_written() -> None:
    """Content in a part's stop that its deltas didn't have is still written (W26)."""
    output, grammar, _ = elsewhere(
        PartStart(0, Text("")),
        PartDelta(0, "on"),
        PartStop(0, Text("only")),
        PartStart(1, ToolCall("a", "f", raw="")),
        PartStop(1, ToolCall("a", "f", raw='{"x": 1}')),
        PartStop(2, Text("unannounced")),
        PartDelta(3, "nor this"),
        PartStop(9),
    )
    words = [item["content"][0]["text"] for item in output if item["type"] == "message"]
    assert words == ["only", "unannounced", "nor this"]
    assert grammar.items[1].arguments == '{"x": 1}'


def test_foreign_thinking_is_written_as_reasoning() -> None:
    """Foreign thinking and summaries become one reasoning item; empty thinking is left out."""
    output, grammar, losses = elsewhere(
        PartStart(0, Thinking("")),
        PartStop(0),
        PartStart(1, Thinking("", form="summary")),
        PartDelta(1, "In short."),
        PartStop(1),
        PartStart(2, Thinking("At length.")),
        PartStop(2),
        PartStart(3, Text("So.")),
    )
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert output[0]["summary"] == [{"type": "summary_text", "text": "In short."}]
    assert output[0]["content"] == [{"type": "reasoning_text", "text": "At length."}]
    assert output[0]["id"].startswith("rs_")
    assert set(grammar.items[0].parts) == {("summary", 0), ("content", 0)}
    assert losses == []


def test_citations_are_written() -> None:
    """Each citation is written as an annotation event, from a delta or from the stop."""
    source = Citation(kind="url_citation", url="https://example.com", title="E", start=0, end=2)
    _, grammar, losses = elsewhere(
        PartStart(0, Text("")),
        PartDelta(0, "Hi", citations=(source,)),
        PartDelta(0, citations=(Citation(kind="page"),)),
        PartStop(0, Text("Hi", (source, source, Citation(kind="page")))),
    )
    part = grammar.items[0].parts["content", 0]
    assert [found["url"] for found in part.annotations] == ["https://example.com"] * 2
    assert len(losses) == 1


def test_custom_calls_are_written_as_custom_calls() -> None:
    """The input of a custom call is written as free text, even if empty."""
    output, _, losses = elsewhere(
        ToolCallDelta(0, "a", "shell", "ls \n", kind="custom"),
        ToolCallDelta(0, arguments_delta='"x"', kind="custom"),
        PartStart(5, ToolCall("b", "shell", raw="", kind="custom")),
        PartStop(5),
    )
    assert [(item["type"], item["input"]) for item in output] == [
        ("custom_tool_call", 'ls \n"x"'),
        ("custom_tool_call", ""),
    ]
    assert losses == []


def test_content_after_a_part_ended_is_a_loss() -> None:
    """Arguments that arrive after their call ended are left out and reported."""
    output, _, losses = elsewhere(
        PartStart(0, ToolCall("a", "f", raw="{}")),
        PartStop(0),
        PartDelta(0, "{}"),
        PartStart(1, Text("a")),
        PartStop(1),
    )
    assert [item.get("arguments") for item in output] == ["{}", None]
    assert losses == ["content added to a part after its end is left out"]


def test_unsupported_events_are_losses() -> None:
    """Foreign events, media, further choices and log probabilities are reported as losses."""
    encoder, stream = encoded([
        START,
        OpaqueEvent("openai-chat", {"x": 1}),
        OpaqueEvent("openai-responses", {"x": 2}),
        OpaqueEvent("openai-responses", {"type": "response.output_text.delta", "delta": "x"}),
        OpaqueEvent("openai-responses", {"type": "a\nb"}),
        PartStart(0, Text("hi")),
        PartStart(1, Audio(data="AAAA", mime="audio/wav")),
        PartStop(1),
        PartStart(0, Text("no"), choice=1),
        ChoiceFinish(FinishReason.STOP, choice=1),
        ChoiceFinish(FinishReason.STOP, logprobs={"content": []}),
        ResponseEnd(),
        PartDelta(0, "late"),
    ])  # fmt: skip
    check_stream(stream)
    assert [loss.path for loss in encoder.losses] == [
        "events",
        "choices[0].message.parts[1]",
        "choices[1]",
        "choices[0].logprobs",
        "events",
    ]
    assert decoded(stream)[0].response.text == "hi"


@pytest.mark.parametrize(
    "part",
    [
        ServerToolCall("search", "ws_1", origin=Origin(dialect="anthropic")),
        Opaque("anthropic", {}),
        Thinking(data="c2VhbGVk", form="redacted", origin=Origin(dialect="anthropic")),
    ],
)
def test_foreign_sealed_state_is_a_loss(part: Any) -> None:
    """Another provider's sealed state isn't written as an item, and is a loss (W21)."""
    output, _, losses = elsewhere(PartStart(0, part), PartStop(0), PartStart(1, Text("hi")))
    assert [item["type"] for item in output] == ["message"]
    assert len(losses) == 1


@pytest.mark.parametrize(
    ("finish", "kind", "details"),
    [
        (FinishReason.STOP, "completed", None),
        (FinishReason.TOOL_CALLS, "completed", None),
        (FinishReason.LENGTH, "incomplete", {"reason": "max_output_tokens"}),
        (FinishReason.CONTENT_FILTER, "incomplete", {"reason": "content_filter"}),
        (FinishReason.CANCELLED, "incomplete", None),
    ],
)
def test_finish_reasons_set_the_final_event(finish: FinishReason, kind: str, details: Any) -> None:
    """Each finish reason gives the right final event and `incomplete_details` (W37)."""
    _, stream = encoded([START, PartStart(0, Text("1, 2")), ChoiceFinish(finish), ResponseEnd()])
    grammar = check_stream(stream)
    assert grammar.state == kind
    assert grammar.response.get("incomplete_details") == details


def test_start_without_id_or_model_is_held_back() -> None:
    """A start without id and model (Azure) is held back: clients keep the first values (W10)."""
    encoder = StreamEncoder()
    assert encoder.feed(ResponseStart(origin=ELSEWHERE)) == b""
    assert b'"id":"chatcmpl-1"' in encoder.feed(START)
    encoder = StreamEncoder()
    encoder.feed(ResponseStart(origin=ELSEWHERE))
    assert b'"id":"resp_' in encoder.feed(PartStart(0, Text("")))
