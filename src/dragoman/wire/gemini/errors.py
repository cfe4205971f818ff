"""Errors, as bodies and in the place of a chunk: Google's `{"error": {code, message, status}}`."""

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

_TYPE = "type.googleapis.com/google.rpc."
_SERVER = 500

# The first name of a status is the one to say.
STATUSES = {
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
"""Google's names of what went wrong, and the HTTP status that each goes with."""
_NAMES = {status: name for name, status in reversed(STATUSES.items())}

# Status, and the words that tell errors of one status apart.
_FORMS: dict[type[ProviderError], tuple[int, str]] = {
    AuthenticationError: (401, ""),
    PermissionDenied: (403, ""),
    RateLimited: (429, ""),
    QuotaExceeded: (429, "You exceeded your current quota: "),
    Overloaded: (503, ""),
    ContextTooLong: (400, "The input token count exceeds the maximum number of tokens allowed: "),
    Refused: (400, "The prompt was blocked by the content filter: "),
    InvalidRequest: (400, ""),
    ModelNotFound: (404, "The model is not found: "),
    ServerError: (500, ""),
}


def decode_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error in a body, or in a chunk (without a status); never raises."""
    return decode_failure(status, body, headers)


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with; in mid-stream the body is the chunk."""
    told = reported(error)
    usual, words = form_of(told, _FORMS)
    status = status_of(told, usual)
    body: dict[str, Any] = {
        "code": status,
        "message": f"{words}{told}",
        "status": name_of(status),
    }
    if details := _details(told):
        body["details"] = details
    return status, {"error": body}


def name_of(status: int) -> str:
    """Google's name for an HTTP status."""
    return _NAMES.get(status) or ("INVALID_ARGUMENT" if status < _SERVER else "INTERNAL")


def _details(error: ProviderError) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = []
    if error.retry_after is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{error.retry_after:.9g}s"})
    if error.request_id is not None:
        details.append({"@type": f"{_TYPE}RequestInfo", "requestId": error.request_id})
    return details
