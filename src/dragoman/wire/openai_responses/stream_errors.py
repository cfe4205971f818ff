"""Errors in mid-stream: the `error` event, and the error of a response that failed."""

from __future__ import annotations

from typing import Any

from dragoman.model.events import StreamError
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.overlay import rest

_STATUS = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
}
_CODES = {429: "rate_limit_exceeded"}
_OTHER = "server_error"

INTERRUPTED = StreamError("the answer broke off before it was complete", _OTHER)
"""What to say of a stream that ended early (G1)."""
UNEXPLAINED = StreamError("the model failed while it answered", _OTHER)
"""What to say of an answer that ended in an error which nobody told."""


def decode_stream_error(wire: dict[str, Any]) -> StreamError:
    """The error in an `error` event; its fields are in it, or in its `error`."""
    inner = wire.get("error")
    fields = inner if isinstance(inner, dict) else wire
    return _error(fields, rest(wire, ("type", "sequence_number"), NAME))


def decode_failure(response: dict[str, Any]) -> StreamError:
    """The error of a response that failed, which keeps the details itself."""
    error = response.get("error")
    return _error(error if isinstance(error, dict) else {}, {})


def _error(fields: dict[str, Any], extras: Any) -> StreamError:
    message, code = fields.get("message"), fields.get("code") or fields.get("type")
    code = code if type(code) is str and code != "error" else None
    return StreamError(
        message if type(message) is str else "",
        code,
        None if code is None else _STATUS.get(code),
        extras,
    )


def encode_failure(error: StreamError) -> dict[str, str]:
    """The error of a response that fails; of others' errors the status tells most."""
    code = error.code if error.code in _STATUS else None
    return {"code": code or _CODES.get(error.status or 0, _OTHER), "message": error.message}
