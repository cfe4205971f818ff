"""Errors in mid-stream."""

from __future__ import annotations

from dragoman.model.events import StreamError
from dragoman.wire.anthropic.context import NAME, Block
from dragoman.wire.overlay import laid_over, rest

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TYPES = {status: kind for kind, status in _STATUS.items()} | {503: "overloaded_error"}

INTERRUPTED = StreamError("the answer broke off before it was complete", "api_error")
"""What to say of a stream that ended early (G1)."""


def decode_stream_error(wire: Block) -> StreamError:
    """The error in an `error` event."""
    error = wire.get("error")
    fields = error if isinstance(error, dict) else {"message": error}
    message, kind = fields.get("message"), fields.get("type")
    kind = kind if type(kind) is str else None
    return StreamError(
        message if type(message) is str else "",
        kind,
        _STATUS.get(kind) if kind is not None else None,
        rest(wire, ("type",), NAME),
    )


def encode_stream_error(error: StreamError) -> Block:
    """The fields of an `error` event, its type aside. Of others' errors the status tells most."""
    kind = error.code if error.code in _STATUS or NAME in error.extras else None
    if kind is None:
        kind = _TYPES.get(error.status or 0, "api_error")
    body: Block = {"error": {"type": kind, "message": error.message}}
    return laid_over(body, error.extras, NAME)
