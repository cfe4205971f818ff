"""Errors as OpenAI writes them, in Chat Completions and in Responses alike."""

from __future__ import annotations

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
from dragoman.wire.reporting import form_of, reported, status_of

_REQUEST = "invalid_request_error"
# Status, type, and the code that clients look for.
_FORMS: dict[type[ProviderError], tuple[int, str, str | None]] = {
    AuthenticationError: (401, _REQUEST, "invalid_api_key"),
    PermissionDenied: (403, "permission_error", "permission_denied"),
    RateLimited: (429, "rate_limit_error", "rate_limit_exceeded"),
    QuotaExceeded: (429, "insufficient_quota", "insufficient_quota"),
    Overloaded: (503, "server_error", "service_unavailable"),
    ContextTooLong: (400, _REQUEST, "context_length_exceeded"),
    Refused: (400, _REQUEST, "content_filter"),
    InvalidRequest: (400, _REQUEST, None),
    ModelNotFound: (404, _REQUEST, "model_not_found"),
    ServerError: (500, "server_error", None),
}


def encode_failure(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with."""
    told = reported(error)
    usual, kind, code = form_of(told, _FORMS)
    said = told.code if code is None and told.code != kind else code
    body = {"message": str(told), "type": kind, "param": told.param, "code": said}
    return status_of(told, usual), {"error": body}
