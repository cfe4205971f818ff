"""Errors, as bodies and as the `error` event of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import (
    AuthenticationError,
    ContextTooLong,
    DragomanError,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    Refused,
    ServerError,
)
from dragoman.wire.failures import decode_failure
from dragoman.wire.reporting import form_of, reported, status_of

_REQUEST = "invalid_request_error"
_TIMEOUT = 504
# Status, type, and the words that clients look for where the type does not tell.
_FORMS: dict[type[ProviderError], tuple[int, str, str]] = {
    AuthenticationError: (401, "authentication_error", ""),
    PermissionDenied: (403, "permission_error", ""),
    RateLimited: (429, "rate_limit_error", ""),
    QuotaExceeded: (402, "billing_error", ""),
    Overloaded: (529, "overloaded_error", ""),
    ContextTooLong: (400, _REQUEST, "prompt is too long: "),
    Refused: (400, _REQUEST, "Output blocked by content filtering policy: "),
    InvalidRequest: (400, _REQUEST, ""),
    ModelNotFound: (404, "not_found_error", "model: not found: "),
    ServerError: (500, "api_error", ""),
}


def decode_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error in a body, or in an `error` event (without a status); never raises."""
    return decode_failure(status, body, headers)


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with; in mid-stream the body is the event's data."""
    told = reported(error)
    usual, kind, words = form_of(told, _FORMS)
    status = status_of(told, usual)
    if status == _TIMEOUT:
        kind = "timeout_error"
    body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": f"{words}{told}"}}
    if told.request_id is not None:
        body["request_id"] = told.request_id
    return status, body
