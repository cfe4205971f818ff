"""Errors: a text, in a body with a status or in a line of a stream."""

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

# Status, and words by which the class is known where the status leaves it open: the server's own,
# where it has any, for a body has no codes.
_FORMS: dict[type[ProviderError], tuple[int, str]] = {
    AuthenticationError: (401, "unauthorized"),
    PermissionDenied: (403, ""),
    RateLimited: (429, ""),
    QuotaExceeded: (402, ""),
    Overloaded: (503, "server busy, please try again"),
    ContextTooLong: (400, "the input length exceeds the context length"),
    Refused: (400, "refused by the content policy"),
    InvalidRequest: (400, ""),
    ModelNotFound: (404, "model not found"),
    ServerError: (500, ""),
}


def decode_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error in a body, or in a line (without a status); never raises."""
    return decode_failure(status, body, headers)


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with; in mid-stream the body is the line."""
    told = reported(error)
    usual, words = form_of(told, _FORMS)
    text = f"{words}: {told}" if words else str(told)
    return status_of(told, usual), {"error": text}
