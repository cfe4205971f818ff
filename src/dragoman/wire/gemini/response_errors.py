"""Errors as bodies and as stream chunks: Google's `{"error": {code, message, status}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import errors
from dragoman.errors import DragomanError, ProviderError
from dragoman.model import events
from dragoman.wire.error_reporting import Forms, client_message, form_of, reported, status_of
from dragoman.wire.gemini.dialect import NAME
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.stream_decoding import stream_error

_TYPE = "type.googleapis.com/google.rpc."
_SERVER = 500
# The first name of an HTTP status is the one that we send.
_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""HTTP status by Google's status name."""
_STATUS_NAMES = {status: name for name, status in reversed(_STATUSES.items())}

# Status, and the message prefix that distinguishes errors of one status.
_FORMS: Forms[tuple[int, str]] = {
    errors.AuthenticationError: (401, ""),
    errors.PermissionDenied: (403, ""),
    errors.RateLimited: (429, ""),
    errors.QuotaExceeded: (429, "You exceeded your current quota: "),
    errors.Overloaded: (503, ""),
    errors.ContextTooLong: (
        400,
        "The input token count exceeds the maximum number of tokens allowed: ",
    ),
    errors.Refused: (400, "The prompt was blocked by the content filter: "),
    errors.InvalidRequest: (400, ""),
    errors.ModelNotFound: (404, "The model is not found: "),
    errors.ServerError: (500, ""),
}


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and body for an error; mid-stream, the body is the chunk."""
    failure = reported(error)
    usual, words = form_of(failure, _FORMS)
    status = status_of(failure, usual)
    body: dict[str, Any] = {"code": status, "message": f"{words}{client_message(failure)}"}
    body["status"] = _name_of(status)
    if details := _details(failure):
        body["details"] = details
    return status, {"error": body}


def _name_of(status: int) -> str:
    """Google's name for an HTTP status."""
    return _STATUS_NAMES.get(status) or ("INVALID_ARGUMENT" if status < _SERVER else "INTERNAL")


def _details(error: ProviderError) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = []
    if error.retry_after is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{error.retry_after:.9g}s"})
    if error.request_id is not None:
        details.append({"@type": f"{_TYPE}RequestInfo", "requestId": error.request_id})
    return details


# --- mid-stream errors

_ERRORS = range(400, 600)  # HTTP error statuses


def decode_stream_error(wire: Mapping[str, Any]) -> events.StreamError:
    """Decode an error sent in place of a chunk."""
    error = wire.get("error")
    fields = error if isinstance(error, dict) else {"message": error}
    name, status = fields.get("status"), fields.get("code")
    return stream_error(fields.get("message"), name, status, overlay_of(wire, (), NAME))


def encode_stream_error(error: events.StreamError) -> dict[str, Any]:
    """Encode an error as a chunk. The SDK requires `error` first, and a number as its code."""
    name = error.code if error.code in _STATUSES else None
    status = error.status if error.status in _ERRORS else _STATUSES.get(name or "", _SERVER)
    if name is None:
        name = _name_of(status or _SERVER)
    body: dict[str, Any] = {"error": {"code": status, "message": error.message, "status": name}}
    return with_overlay(body, error.extras, NAME)
