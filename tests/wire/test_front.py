"""Responses, streams and errors for clients of each dialect, checked against the vendors' types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given

import dragoman
from dragoman import errors
from dragoman.errors import DragomanError, ProviderError, WireError
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
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.answers import events_of as told_events
from dragoman.wire.codec import Codec
from dragoman.wire.front import Front
from tests.corpus import Corpus, Recording
from tests.model import strategies
from tests.sdk_types.streams import events_of
from tests.wire.front_types import check_body, check_stream, request_to
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY
from tests.wire.streamed import Script, scripts

FRONTS = tuple(SPOKEN_BY)
_MOST, _LEAST = 70, 15
# Bodies that hosts sent in the front's own dialect are passed on unchanged, even where they don't
# match the vendor's types.
_AS_IT_CAME = (
    "apply_patch", "fallback", "file_annotation", "include_raw_annotations", "mistral_v1",
    "mistral-reasoning", "mistral-stream-reasoning", "model_armor", "openrouter", "openai-error",
    "openai-web-search", "opentelemetry-python-contrib", "service_tier", "snowflake", "together",
    "unknown-finish-reason", "verbosity", "web_search_tool_stream", "xai",
)  # fmt: skip
# Outdated types: the chunks of OpenAI's SDK have no custom tools; and an image that was truncated
# by hand.
_FAULTY = ("test_custom_tool", "openai-image-generation-tool.1")


def picked(corpus: Corpus, home: str) -> Iterator[Recording]:
    """Some recordings of a dialect, spread over the corpus."""
    listed = list(corpus.select(provider_api=SPOKEN_BY[home], status=200, tier="core"))
    for recording in listed[:: len(listed) // _MOST + 1]:
        is_faulty = any(word in recording.row.file for word in _FAULTY)
        if not is_faulty and ENDPOINTS[home].search(recording.request_path.partition("?")[0]):
            yield recording


def answered(recording: Recording, home: str) -> Response | list[Event] | None:
    """The recorded answer: a response, or the events of a stream."""
    speaker = dragoman.dialect(home)
    stream, body = recording.response_stream, recording.response_body
    if stream is not None:
        decoder = speaker.stream_decoder()
        try:
            return decoder.feed(stream) + decoder.close()
        except WireError:
            return None
    if isinstance(body, dict) and not body.get("error"):
        return speaker.decode_response(body)
    return None


def _asked(recording: Recording, home: str, front: str) -> Request:
    if home == front and isinstance(recording.request_body, dict):
        path = recording.request_path
        return dragoman.dialect(home).decode_request(recording.request_body, path=path)
    return request_to(front)


def _streamed(front: Front, events: list[Event]) -> bytes:
    encoder = front.stream()
    return b"".join([*map(encoder.feed, events), encoder.close()])


@pytest.mark.parametrize("home", ["openai-chat", "anthropic", "openai-responses"])
def test_a_server_completes_an_answer(home: str) -> None:
    """Plain and streamed answers get an id, item ids and the fields that servers set."""
    told = Response(
        choices=(Choice(0, Message.assistant("Hello"), FinishReason.STOP),), id="resp_other",
        model="m", usage=Usage(),
    ).replace(extras={home: {}})  # fmt: skip
    said = {"store": True, "previous_response_id": "resp_before"}
    front = Front(
        "openai-responses",
        request_to("openai-responses"),
        response_id="resp_1f",
        response_fields=said,
    )
    whole = front.response(told).body
    frames = _streamed(front, list(told_events(told)))
    streamed = json.loads(frames.rpartition(b"data: ")[2])["response"]
    for body in (whole, streamed):
        assert body["id"] == "resp_1f"
        assert body.items() >= said.items()
        assert body["output"][0]["id"] == "msg_1f_0"
    assert b"resp_other" not in frames


@pytest.mark.corpus
@pytest.mark.parametrize("home", FRONTS)
def test_recorded_answers_are_complete_behind_every_front(corpus: Corpus, home: str) -> None:
    """They have all fields that the vendor's types require, and one id, time and model."""
    count = 0
    for recording in picked(corpus, home):
        answer = answered(recording, home)
        if answer is None:
            continue
        count += 1
        is_odd = any(word in recording.row.file for word in _AS_IT_CAME)
        for name in FRONTS:
            if name == home and is_odd:
                continue
            front = Front(name, _asked(recording, home, name))
            try:
                if isinstance(answer, Response):
                    check_body(name, front.response(answer).to_bytes())
                else:
                    check_stream(name, _streamed(front, answer))
            except Exception as error:
                error.add_note(f"{recording.row.file}, behind {name}")
                raise
    assert count >= _LEAST


# --- id, time and model

BARE = Response(choices=(Choice(0, dragoman.Message.assistant("Hello"), FinishReason.STOP),))
HELLO: list[Event] = [
    ResponseStart(),
    PartStart(0, Text("")),
    PartDelta(0, "Hel"),
    PartDelta(0, "lo"),
    PartStop(0),
    UsageUpdate(Usage(input=1, output=2)),
    ChoiceFinish(FinishReason.STOP),
    ResponseEnd(),
]


class _Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


@pytest.mark.parametrize("name", FRONTS)
def test_start_events_without_names_are_completed(name: str) -> None:
    """However many start events come, every frame has an id, time and model."""
    front = Front(name, request_to(name))
    check_stream(name, _streamed(front, [ResponseStart(), ResponseStart(), *HELLO]))


@pytest.mark.parametrize("name", FRONTS)
def test_an_answer_without_names_is_completed(name: str) -> None:
    """It gets the requested model, an id and the time, the same ones on every call."""
    front = Front(name, request_to(name), clock=_Clock())
    body = check_body(name, front.response(BARE).to_bytes())
    assert "asked-for" in (body.get("model"), body.get("modelVersion"))
    again = check_body(name, front.response(BARE).to_bytes())
    for key in ("id", "created", "created_at", "responseId"):
        assert body.get(key) == again.get(key)


@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("skipped", [0, 1])
def test_a_stream_without_names_is_completed(name: str, skipped: int) -> None:
    """It gets id, time and model, even without a start event."""
    front = Front(name, request_to(name), clock=_Clock())
    frames = check_stream(name, _streamed(front, HELLO[skipped:]))
    assert "asked-for" in str(frames)


@pytest.mark.parametrize("name", FRONTS)
def test_the_answer_s_own_names_are_kept(name: str) -> None:
    """The answer's own id, model and time are kept."""
    front = Front(name, request_to(name))
    named = BARE.replace(id="abc", model="another", created_at=1_750_000_000.0)
    body = check_body(name, front.response(named).to_bytes())
    assert "another" in (body.get("model"), body.get("modelVersion"))
    assert name == "ollama" or "abc" in (body.get("id"), body.get("responseId"))
    start = ResponseStart(id="abc", model="another", created_at=1_750_000_000.0)
    late = ResponseStart(id="late", model="late", created_at=1_760_000_000.0)
    stream = _streamed(front, [start, HELLO[1], late, *HELLO[2:]])
    check_stream(name, stream)
    assert b"another" in stream
    assert b"late" not in stream


def test_a_preamble_without_names_is_held_back() -> None:
    """Azure's first chunk has no id; it is held until the next chunk names one."""
    stream = _streamed(
        Front("openai-chat", request_to("openai-chat")),
        [ResponseStart(), ResponseStart(id="abc", model="another"), *HELLO[1:]],
    )
    frames = check_stream("openai-chat", stream)
    assert {frame["id"] for frame in frames} == {"abc"}


# --- echoed request settings

ASKED: dict[str, Any] = {
    "model": "gpt-5",
    "input": "Hi",
    "instructions": "Be brief.",
    "tools": [
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "function", "name": "f"},
    "parallel_tool_calls": False,
    "temperature": 0.3,
    "top_p": 0.9,
    "text": {"verbosity": "low"},
    "reasoning": {"effort": "high"},
    "max_output_tokens": 99,
    "max_tool_calls": 3,
    "metadata": {"a": "b"},
    "previous_response_id": "resp_before",
    "conversation": "conv_1",
    "service_tier": "flex",
    "store": True,
    "truncation": "auto",
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "top_logprobs": 2,
}
ECHOED = {
    **{key: value for key, value in ASKED.items() if key not in {"model", "input"}},
    "tools": [{"description": None, **ASKED["tools"][0]}, ASKED["tools"][1]],
    "conversation": {"id": "conv_1"},
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "reasoning": {"effort": "high", "summary": None},
}


def test_responses_echo_what_the_client_asked_for() -> None:
    """The request's settings are in plain answers and in every event that has a response."""
    front = Front("openai-responses", dragoman.dialect("openai-responses").decode_request(ASKED))
    body = check_body("openai-responses", front.response(BARE).to_bytes())
    assert {key: body[key] for key in ECHOED} == ECHOED
    frames = check_stream("openai-responses", _streamed(front, HELLO))
    bodies = [frame["response"] for frame in frames if "response" in frame]
    assert len(bodies) == 3
    for body in bodies:
        assert {key: body[key] for key in ECHOED} == ECHOED
    assert [body["completed_at"] is None for body in bodies] == [True, True, False]
    assert bodies[-1]["usage"]["total_tokens"] == 3


@pytest.mark.parametrize("odd", [[], "x", 7, {}, [[1]], True], ids=repr)
def test_settings_of_any_type_are_answered(odd: Any) -> None:
    """A setting of the wrong type, which the provider ignored, doesn't prevent the answer."""
    speaker = dragoman.dialect("openai-responses")
    for name in (*ASKED, *ECHOED):
        if name in {"model", "input", "stream"}:
            continue
        try:
            asked = speaker.decode_request({**ASKED, name: odd})
        except DragomanError:
            continue
        front = Front("openai-responses", asked)
        assert speaker.decode_response(front.response(BARE).to_bytes()).message.text == "Hello"
        assert b"response.completed" in _streamed(front, HELLO)


def test_a_response_in_the_front_s_dialect_keeps_its_settings() -> None:
    """The provider's own values are not overwritten by the request's."""
    speaker = dragoman.dialect("openai-responses")
    body = {"id": "resp_1", "object": "response", "output": [], "temperature": 1.0, "tools": []}
    front = Front("openai-responses", speaker.decode_request(ASKED))
    told = check_body("openai-responses", front.response(speaker.decode_response(body)).to_bytes())
    assert (told["temperature"], told["tools"]) == (1.0, [])
    assert told["top_p"] == 0.9


def test_bodies_share_no_mutable_state() -> None:
    """Changing one body changes no other."""
    front = Front("openai-responses", request_to("openai-responses"))
    front.response(BARE).body["metadata"]["a"] = "b"
    front.response(BARE).body["text"]["format"]["type"] = "json_object"
    body = Front("openai-responses").response(BARE).body
    assert body["metadata"] == {}
    assert body["text"]["format"] == {"type": "text"}


def test_chat_streams_send_usage_only_on_request() -> None:
    """Usage is sent with `stream_options`, and never otherwise (W9)."""
    speaker = dragoman.dialect("openai-chat")
    asked: dict[str, Any] = {"model": "m", "messages": [], "stream": True}
    plain = Front("openai-chat", speaker.decode_request(asked))
    assert b"usage" not in _streamed(plain, HELLO)
    asked["stream_options"] = {"include_usage": True}
    told = Front("openai-chat", speaker.decode_request(asked))
    frames = check_stream("openai-chat", _streamed(told, HELLO))
    assert frames[-1]["usage"]["total_tokens"] == 3
    assert frames[-1]["choices"] == []


@pytest.mark.parametrize("name", ["anthropic", "openai-responses"])
def test_other_dialects_always_stream_usage(name: str) -> None:
    """Usage is at the end of every stream."""
    stream = _streamed(Front(name, request_to(name)), HELLO)
    assert b'"output_tokens":2' in stream


def test_ollama_reports_durations() -> None:
    """Durations are in nanoseconds at the end, and the parts sum up to the total."""
    front = Front("ollama", request_to("ollama"), clock=_Clock())
    *lines, last = check_stream("ollama", _streamed(front, HELLO))
    assert not any("total_duration" in line for line in lines)
    assert last["total_duration"] == 500_000_000
    assert last["prompt_eval_duration"] == last["eval_duration"] == 250_000_000
    assert front.response(BARE).body["total_duration"] > 0


@pytest.mark.parametrize(
    ("query", "kind"), [("?alt=sse", "text/event-stream"), ("", "application/json")]
)
def test_gemini_streams_in_the_form_that_was_asked_for(query: str, kind: str) -> None:
    """Gemini streams are SSE with `alt=sse`, and a JSON array otherwise (W120)."""
    path = f"/v1beta/models/asked-for:streamGenerateContent{query}"
    front = Front("gemini", request_to("gemini"), path=path)
    encoder = front.stream()
    assert encoder.headers == {"content-type": kind}
    written = b"".join([*map(encoder.feed, HELLO), encoder.close()])
    if query:
        assert len(check_stream("gemini", written)) >= 3
    else:
        assert all("responseId" in chunk for chunk in msgspec.json.decode(written))


# --- Anthropic's content blocks

DRAWN = Response(
    choices=(
        Choice(
            0,
            dragoman.Message(
                "assistant",
                (
                    Thinking("Hm.", origin=Origin(dialect="openai-chat")),
                    Image(data="iVBORw0KGgo=", mime="image/png"),
                    Text("There."),
                ),
                origin=Origin(dialect="openai-chat"),
            ),
            FinishReason.STOP,
        ),
    )
)


def test_images_are_a_loss_for_anthropic_clients() -> None:
    """Anthropic's answers have no image blocks."""
    front = Front("anthropic", request_to("anthropic"))
    encoded = front.response(DRAWN)
    body = check_body("anthropic", encoded.to_bytes())
    assert [block["type"] for block in body["content"]] == ["thinking", "text"]
    assert [loss.path for loss in encoded.losses] == ["choices[0].message.parts[1]"]
    encoder = front.stream()
    thinking, image, text = DRAWN.message.parts
    events: list[Event] = [
        ResponseStart(origin=DRAWN.message.origin),
        *(PartStart(0, thinking), PartStop(0)),
        *(PartStart(1, image), PartDelta(1, data="AAAA"), PartStop(1)),
        *(PartStart(2, text), PartStop(2)),
        *HELLO[-2:],
    ]
    written = b"".join([*map(encoder.feed, events), encoder.close()])
    frames = check_stream("anthropic", written)
    begun = [frame["content_block"]["type"] for frame in frames if "content_block" in frame]
    assert begun == ["thinking", "text"]
    assert [loss.path for loss in encoder.losses] == ["choices[0].message.parts[1]"]


def test_a_failed_answer_has_an_error_in_responses() -> None:
    """The status is `failed`, with an error."""
    failed = Response(choices=(Choice(0, BARE.message, FinishReason.ERROR),))
    front = Front("openai-responses", request_to("openai-responses"))
    body = check_body("openai-responses", front.response(failed).to_bytes())
    assert body["status"] == "failed"
    assert body["error"]["code"] == "server_error"
    assert body["completed_at"] is None


# --- errors

OVERLOADED = {
    "anthropic": (529, "overloaded_error"),
    "gemini": (503, "UNAVAILABLE"),
    "ollama": (503, "server busy"),
    "openai-chat": (503, "service_unavailable"),
    "openai-responses": (503, "service_unavailable"),
}
REQUEST_IDS = {
    "anthropic": "request-id",
    "openai-chat": "x-request-id",
    "openai-responses": "x-request-id",
}


@pytest.mark.parametrize("name", FRONTS)
def test_errors_have_their_status_and_headers(name: str) -> None:
    """Errors have a status, a retry header and the request id."""
    front = Front(name, request_to(name))
    answer = front.error(errors.Overloaded("busy", retry_after=2.5, request_id="req_9"))
    status, word = OVERLOADED[name]
    assert answer.status == status
    assert word in answer.to_bytes().decode()
    assert answer.headers["retry-after"] == "3"
    if name in REQUEST_IDS:
        assert answer.headers[REQUEST_IDS[name]] == "req_9"
        other = front.error(errors.Refused("no"))
        assert other.headers[REQUEST_IDS[name]] == front.request_id
        assert "retry-after" not in other.headers
    assert repr(answer) == f"ErrorAnswer({status})"


@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("kind", [errors.ContextTooLong, errors.InvalidRequest])
def test_413_stays_413(name: str, kind: type[errors.ProviderError]) -> None:
    """A 413 keeps its status, and clients read the same error class from it."""
    answer = Front(name, request_to(name)).error(kind("too large", status=413))
    assert answer.status == 413
    told = dragoman.dialect(name).decode_error(answer.status, answer.body)
    assert type(told) is errors.ContextTooLong


def test_anthropic_errors_name_the_request() -> None:
    """The request id is in the body and in the header."""
    front = Front("anthropic", request_to("anthropic"))
    given = errors.ContextTooLong("too large", status=413)
    body = front.error(given).body
    assert body["request_id"] == front.request_id
    assert body["error"]["type"] == "request_too_large"
    assert given.request_id is None


STREAM_ERRORS: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error"}},
    "gemini": {"error": {"code": 503, "status": "UNAVAILABLE"}},
    "ollama": {},
    "openai-chat": {"error": {"type": "server_error", "code": "service_unavailable"}},
    "openai-responses": {"type": "response.failed"},
}


def _holds(frame: Any, wanted: dict[str, Any]) -> bool:
    return all(
        _holds(frame[key], value) if isinstance(value, dict) else frame[key] == value
        for key, value in wanted.items()
    )


@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("status", [503, 529])
def test_overload_errors_keep_their_class_in_mid_stream(name: str, status: int) -> None:
    """Whichever provider is overloaded, the client reads an overload error."""
    front = Front(name, request_to(name))
    told = front.stream()
    begun = b"".join(map(told.feed, HELLO[:3]))
    begun += told.feed(StreamError("busy", None, status)) + told.close()
    raised = front.stream()
    written = b"".join(map(raised.feed, HELLO[:3])) + raised.fail(errors.Overloaded("busy"))
    assert raised.close() == b""
    for stream in (begun, written):
        last = events_of(stream, name)[-1]
        assert _holds(last, STREAM_ERRORS[name]), last
        assert "busy" in str(last)
        check_stream(name, stream)


@pytest.mark.parametrize("name", FRONTS)
def test_an_interrupted_stream_ends_in_an_error(name: str) -> None:
    """An interrupted stream ends in an error instead of a normal end (G1)."""
    assert "error" in str(check_stream(name, _streamed(Front(name, request_to(name)), HELLO[:3])))


# --- random responses and streams


@pytest.mark.parametrize("name", FRONTS)
@given(response=strategies.responses)
def test_any_response_is_written(name: str, response: Response) -> None:
    """Any response is written, or refused with one of our errors."""
    with suppress(DragomanError):
        Front(name, request_to(name)).response(response).to_bytes()


@pytest.mark.parametrize("name", FRONTS)
@given(request=strategies.requests, script=scripts())
def test_any_stream_is_written_for_any_request(name: str, request: Request, script: Script) -> None:
    """Any stream is written, or refused with one of our errors."""
    with suppress(DragomanError):
        _streamed(Front(name, request), script.events)


@pytest.mark.parametrize("name", FRONTS)
@given(script=scripts())
def test_any_stream_of_another_dialect_is_complete(name: str, script: Script) -> None:
    """Frames are complete, apart from content of this dialect or of unknown kinds."""
    origins = [script.origin, *(part.origin or script.origin for part in script.parts.values())]
    assume(all(origin is not None and origin.dialect != name for origin in origins))
    known = [event for event in script.events if not isinstance(event, OpaqueEvent)]
    events: list[Event] = [ResponseStart(origin=script.origin), *known]
    check_stream(name, _streamed(Front(name, request_to(name)), events))


def test_a_dialect_without_required_fields_is_unchanged() -> None:
    """External dialects may have nothing to fill in; the front's repr shows no content."""
    own = dragoman.dialect("openai-chat")
    assert isinstance(own, Codec)
    plain = Codec(own.description, own.target, own._functions._replace(front_form=None))
    front = Front(plain, request_to("openai-chat"))
    assert front.id is None
    assert front.response(BARE).body["model"] == "asked-for"
    assert repr(front) == "<front openai-chat>"
    assert b"asked-for" in _streamed(front, HELLO)
    assert events_of(front.stream().fail(errors.Overloaded("busy")), "openai-chat")[-1]["error"]


_FAILED = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "failed",
    "error": {"code": "server_error", "message": "it broke"}, "output": [],
}  # fmt: skip


@pytest.mark.parametrize("name", dragoman.dialects())
def test_a_failed_answer_is_an_error_behind_every_front(name: str) -> None:
    """If the dialect has no failed answers, an error is sent, never a normal end."""
    failed = dragoman.dialect("openai-responses").decode_response(_FAILED)
    front = Front(name, Request(model="m"))
    if name == "openai-responses":
        assert front.response(failed).body["status"] == "failed"
        return
    with pytest.raises(ProviderError) as caught:
        front.response(failed)
    answer = front.error(caught.value)
    assert answer.status >= 500
    assert "internal error" in json.dumps(answer.body)  # the provider's message is not passed on
    encoder, decoder = front.stream(), dragoman.dialect(name).stream_decoder()
    events: list[Event] = [
        ResponseStart(id="r", model="m"),
        ChoiceFinish(FinishReason.ERROR),
        ResponseEnd(),
    ]
    sent = b"".join(map(encoder.feed, events)) + encoder.close()
    told = [*decoder.feed(sent), *decoder.close()]
    assert any(isinstance(event, StreamError) for event in told)
    assert not decoder.is_complete
