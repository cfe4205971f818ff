"""Fields of responses that only another dialect has are reported as losses (I14)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman import Message, Text
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason, Usage
from tests.wire.streamed import written

_ODD: dict[str, Any] = {"elsewhere": {"odd": 1, "type": "x", "gone": None, "empty": {"a": None}}}
_THERE = Origin(dialect="elsewhere")
_EVENTS: list[Event] = [
    ResponseStart(id="r", model="m", origin=_THERE, extras=_ODD),
    PartStart(0, Text("")), PartDelta(0, "Hi"), PartDelta(0, " all", extras=_ODD), PartStop(0),
    UsageUpdate(Usage(input=1, output=2, cache_read=3, cache_write=4, thinking=5, extras=_ODD)),
    ChoiceFinish(FinishReason.OTHER, "odd_reason", extras=_ODD, message_extras=_ODD),
    ResponseEnd(),
]  # fmt: skip
_LEFT = {
    "extras.odd", "usage.extras.odd", "choices[0].extras.odd", "choices[0].message.extras.odd",
    "choices[0].message.parts[0].extras.odd", "choices[0].finish_raw",
}  # fmt: skip
_UNCOUNTED = {"ollama": {"usage.cache_read", "usage.cache_write", "usage.thinking"},
              "gemini": {"usage.cache_write"}}  # fmt: skip


def _response(dialect: str, extras: dict[str, Any]) -> Response:
    origin = Origin(dialect=dialect, model="m")
    message = Message.assistant(Text("Hi", extras=extras)).replace(origin=origin, extras=extras)
    usage = Usage(input=1, output=2, cache_read=3, cache_write=4, thinking=5, extras=extras)
    choice = Choice(0, message, FinishReason.OTHER, "odd_reason", None, extras)
    return Response(choices=(choice,), usage=usage, model="m", id="r", extras=extras)


@pytest.mark.parametrize("name", dragoman.dialects())
def test_unsupported_response_fields_are_reported(name: str) -> None:
    """Each non-empty field, at any depth, is a loss, plain and streamed alike."""
    encoded = dragoman.dialect(name).encode_response(_response("elsewhere", _ODD))
    told = {loss.path for loss in encoded.losses}
    assert _LEFT | _UNCOUNTED.get(name, set()) <= told
    assert not any("gone" in path or "type" in path or "empty" in path for path in told)
    _, losses = written(name, _EVENTS)
    assert _LEFT | _UNCOUNTED.get(name, set()) <= {loss.path for loss in losses}


@pytest.mark.parametrize("name", dragoman.dialects())
def test_supported_fields_are_not_reported(name: str) -> None:
    """A dialect's own fields round-trip without losses."""
    encoded = dragoman.dialect(name).encode_response(_response(name, {name: {"odd": 1}}))
    assert not any("extras" in loss.path for loss in encoded.losses)
    assert "odd" in encoded.to_bytes().decode()


def test_sealed_state_is_not_reported() -> None:
    """A call's state is returned through the client, so it is not lost."""
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_sequence": None,
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {},
                         "caller": {"type": "direct", "odd": 1}}]}  # fmt: skip
    response = dragoman.dialect("anthropic").decode_response(body)
    assert dragoman.dialect("openai-chat").encode_response(response).losses == ()
    told = {loss.path for loss in dragoman.dialect("ollama").encode_response(response).losses}
    assert "choices[0].message.parts[0].extras.caller" in told


@pytest.mark.parametrize("name", dragoman.dialects())
def test_the_fields_of_an_error_are_reported(name: str) -> None:
    """A mid-stream error has its message; the provider's other fields are losses."""
    error = StreamError("it failed", extras=_ODD)
    _, losses = written(name, [*_EVENTS[:2], error])
    assert "error.extras.odd" in {loss.path for loss in losses}


@pytest.mark.parametrize("name", [name for name in dragoman.dialects() if name != "gemini"])
def test_signatures_of_texts_and_calls_are_reported(name: str) -> None:
    """Gemini's signatures are a loss for providers without a field for them."""
    sign = {"thoughtSignature": "c2ln"}
    body = {"contents": [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"text": "a", **sign},
                                    {"functionCall": {"name": "f", "args": {}}, **sign}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
    ]}  # fmt: skip
    encoded = dragoman.translate(body, source="gemini", target=name)
    told = {loss.path.removesuffix(".signature") for loss in encoded.losses}
    assert {"messages[1].parts[0]", "messages[1].parts[1]"} <= told


def test_a_result_in_an_assistant_message_is_moved_and_reported() -> None:
    """The result follows its call, once, in a user turn."""
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    body = {"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "q"}, {"role": "assistant", "content": [use]},
        {"role": "assistant", "content": [result]}, {"role": "user", "content": "And?"},
    ]}  # fmt: skip
    speaker = dragoman.dialect("anthropic")
    encoded = speaker.encode_request(speaker.decode_request(body), speaker.target)
    assert json.dumps(encoded.body).count('"tool_result"') == 1
    assert [(each.path, each.action) for each in encoded.repairs] == [
        ("messages[2].parts[0]", "moved")
    ]


def test_refused_settings_are_kept_for_an_unnamed_target() -> None:
    """Without a named target, they are sent unchanged and nothing is reported."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    body = {"model": "m", "max_tokens": 9, "temperature": 1.5, "top_k": 3,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "messages": [{"role": "user", "content": "q"},
                         {"role": "assistant", "content": [thought]}]}  # fmt: skip
    speaker = dragoman.dialect("anthropic")
    encoded = speaker.encode_request(speaker.decode_request(body))
    assert (json.loads(encoded.to_bytes()), encoded.losses, encoded.repairs) == (body, (), ())


def test_audio_in_the_content_stays_there() -> None:
    """Mistral's answers may have audio in the content; only spoken answers are `audio`."""
    delta = {"role": "assistant", "content": [{"type": "input_audio", "input_audio": "AAAA"}]}
    choice = {"index": 0, "finish_reason": "stop", "delta": delta}
    chunk = {"id": "c", "model": "m", "choices": [choice]}
    decoder = dragoman.dialect("openai-chat").stream_decoder()
    stream = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    events = [*decoder.feed(stream), *decoder.close()]
    output, _ = written("openai-chat", events)
    assert b'"input_audio":"AAAA"' in output
    assert b'"created"' not in output  # it came without one
