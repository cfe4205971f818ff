"""Fields that Chat clients expect in responses: id, time, model and finish reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.events import StreamError
from dragoman.model.responses import Response
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import AgentForm, Front, FrontForm
from dragoman.wire.openai_chat.dialect import NAME, chunk_fields
from dragoman.wire.openai_chat.request import asks_for_usage
from dragoman.wire.openai_chat.usage_frames import WithoutUsage

_NO_COUNTS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def complete(encoded: Encoded, _response: Response, front: Front) -> None:
    """Fill in the fields that a response lacks."""
    body = encoded.body
    stamp = {"id": front.id, "object": "chat.completion", "created": int(front.began),
             "model": front.request.model or ""}  # fmt: skip
    for key, value in stamp.items():
        if not body.get(key):
            body[key] = value
    if isinstance(usage := body.get("usage"), Mapping):
        body["usage"] = {**_NO_COUNTS, **{k: v for k, v in usage.items() if v is not None}}
    for place, choice in enumerate(body["choices"]):
        if isinstance(choice, dict):
            _complete_choice(choice, place)


def _complete_choice(choice: dict[str, Any], place: int) -> None:
    choice.setdefault("index", place)
    if choice.get("finish_reason") is None:
        choice["finish_reason"] = "stop"
    message = choice.setdefault("message", {})
    if isinstance(message, dict):
        message.setdefault("role", "assistant")
        message.setdefault("content", None)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and "function" in call:
                call.setdefault("type", "function")


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
    takes_own=False,  # it has no `reasoning_content`
)
FRONT_FORM = FrontForm(
    id_prefix="chatcmpl-",
    has_time=True,
    complete=complete,
    stream_error=stream_error,
    content=("choices", b"[]"),
    passing_filter=lambda request: None if asks_for_usage(request) else WithoutUsage(),
    agents={b"mistral-client": _MISTRAL},
)
