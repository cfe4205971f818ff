"""Errors in mid-stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.events import StreamError
from dragoman.wire.gemini.errors import STATUSES, name_of
from dragoman.wire.gemini.trace import NAME
from dragoman.wire.overlay import laid_over, rest

_INTERNAL = 500
_ERRORS = range(400, 600)  # what HTTP calls errors

INTERRUPTED = StreamError("the answer broke off before it was complete", "INTERNAL", _INTERNAL)
"""What to say of a stream that ended early (G1)."""


def decode_stream_error(wire: Mapping[str, Any]) -> StreamError:
    """The error that stands where a chunk was expected."""
    error = wire.get("error")
    fields = error if isinstance(error, dict) else {"message": error}
    message, status, name = fields.get("message"), fields.get("code"), fields.get("status")
    return StreamError(
        message if type(message) is str else "",
        name if type(name) is str else None,
        status if type(status) is int else None,
        rest(wire, (), NAME),
    )


def encode_stream_error(error: StreamError) -> dict[str, Any]:
    """The chunk for an error. The SDK wants `error` to come first, and a number for its code."""
    name = error.code if error.code in STATUSES else None
    status = error.status if error.status in _ERRORS else STATUSES.get(name or "", _INTERNAL)
    if name is None:
        name = name_of(status or _INTERNAL)
    body: dict[str, Any] = {"error": {"code": status, "message": error.message, "status": name}}
    return laid_over(body, error.extras, NAME)
