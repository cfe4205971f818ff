"""OpenAI's error format, shared by Chat Completions and Responses."""

from __future__ import annotations

from typing import Any

from dragoman import errors
from dragoman.errors import DragomanError
from dragoman.wire.error_reporting import Forms, client_message, form_of, reported, status_of

_REQUEST = "invalid_request_error"
# Status, type, and the code that clients look for.
_FORMS: Forms[tuple[int, str, str | None]] = {
    errors.AuthenticationError: (401, _REQUEST, "invalid_api_key"),
    errors.PermissionDenied: (403, "permission_error", "permission_denied"),
    errors.RateLimited: (429, "rate_limit_error", "rate_limit_exceeded"),
    errors.QuotaExceeded: (429, "insufficient_quota", "insufficient_quota"),
    errors.Overloaded: (503, "server_error", "service_unavailable"),
    errors.ContextTooLong: (400, _REQUEST, "context_length_exceeded"),
    errors.Refused: (400, _REQUEST, "content_filter"),
    errors.InvalidRequest: (400, _REQUEST, None),
    errors.ModelNotFound: (404, _REQUEST, "model_not_found"),
    errors.ServerError: (500, "server_error", None),
}


def encode_failure(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and body to return to a client."""
    told = reported(error)
    usual, kind, code = form_of(told, _FORMS)
    said = told.code if code is None and told.code != kind else code
    body = {"message": client_message(told), "type": kind, "param": told.param, "code": said}
    return status_of(told, usual), {"error": body}
