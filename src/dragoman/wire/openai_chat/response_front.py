"""Fields that Chat clients expect in responses: id, time, model and finish reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.events import StreamError
from dragoman.model.responses import Response
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import AgentForm, Front, FrontForm
from dragoman.wire.json_values import is_integer
from dragoman.wire.openai_chat.dialect import NAME, chunk_fields
from dragoman.wire.openai_chat.request import asks_for_usage
from dragoman.wire.openai_chat.stream_encoder import StreamEncoder
from dragoman.wire.openai_chat.usage_frames import WithoutUsage


def complete(encoded: Encoded, _response: Response, front: Front) -> None:
    """Fill in the fields that a response lacks."""
    body = encoded.body
    stamp = {"id": front.id, "object": "chat.completion", "created": int(front.began),
             "model": front.request.model or ""}  # fmt: skip
    for key, value in stamp.items():
        if not body.get(key):
            body[key] = value
    if isinstance(usage := body.get("usage"), Mapping):
        body["usage"] = _complete_usage(usage)
    field = "reasoning" if front.agent is _REASONING else None
    body["choices"] = [
        _complete_choice(choice, place, field) if isinstance(choice, Mapping) else choice
        for place, choice in enumerate(body["choices"])
    ]


# What a provider sent in an odd form stands in the body as it was kept: frozen. So these copy.


def _complete_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in usage.items() if value is not None}
    prompt, completion = (made.setdefault(f"{name}_tokens", 0) for name in ("prompt", "completion"))
    if is_integer(prompt) and is_integer(completion):
        made.setdefault("total_tokens", prompt + completion)
    return made


def _complete_choice(
    choice: Mapping[str, Any], place: int, thinking_field: str | None
) -> dict[str, Any]:
    made = {**choice}
    made.setdefault("index", place)
    if made.get("finish_reason") is None:
        made["finish_reason"] = "stop"
    message = made.get("message", {})
    if isinstance(message, Mapping):
        made["message"] = written = _complete_message(message)
        if thinking_field is not None and "reasoning_content" in written:
            written[thinking_field] = written.pop("reasoning_content")
    return made


def _complete_message(message: Mapping[str, Any]) -> dict[str, Any]:
    made = {**message}
    made.setdefault("role", "assistant")
    made.setdefault("content", None)
    calls = made.get("tool_calls")
    if isinstance(calls, list):
        made["tool_calls"] = [_complete_call(call) for call in calls]
    return made


def _complete_call(call: Any) -> Any:
    if isinstance(call, Mapping) and "function" in call and "type" not in call:
        return {**call, "type": "function"}
    return call


def stream_error(body: Mapping[str, Any], status: int, message: str) -> StreamError:
    """The error of a chunk, with the fields of an error body."""
    error = {**body["error"], "message": message}
    return StreamError(message, error["code"], status, extras={NAME: error})


_MISTRAL = AgentForm(
    name="mistral",
    takes_pieces=False,  # its SDK refuses deltas of a call without a name
    stream_fields={
        "stream_options": b'{"include_usage":true}'
    },  # Mistral's streams always include it
    state_fields=chunk_fields,
    stream_encoder=lambda _front: StreamEncoder(include_usage=True, has_null_usage=False),
    takes_own=False,  # it has no `reasoning_content`
)
_REASONING = AgentForm(  # they read thinking from `reasoning` alone, as Groq and OpenRouter have it
    name="reasoning",
    stream_encoder=lambda front: StreamEncoder(
        include_usage=asks_for_usage(front.request), thinking_field="reasoning"
    ),
)
FRONT_FORM = FrontForm(
    id_prefix="chatcmpl-",
    has_time=True,
    complete=complete,
    stream_error=stream_error,
    content=("choices", b"[]"),
    passing_filter=lambda request: None if asks_for_usage(request) else WithoutUsage(),
    agents={
        b"mistral-client": _MISTRAL,
        b"@mistralai/mistralai": _MISTRAL,
        b"Agents/JavaScript": _REASONING,
        b"Groq/": _REASONING,
        b"pydantic-ai/": _REASONING,
    },
)
