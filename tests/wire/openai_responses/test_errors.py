"""Errors of the Responses API: bodies, events and failed responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import errors
from dragoman.wire.openai_responses.codec import DIALECT

SECRET = "zqzq0123456789abcdef"


def event(code: str | None, message: str = "It failed.") -> dict[str, Any]:
    """An `error` event."""
    return {"type": "error", "code": code, "message": message, "param": None, "sequence_number": 3}


def failed(code: str, message: str = "It failed.") -> dict[str, Any]:
    """A failed response."""
    error = {"code": code, "message": message}
    return {"id": "resp_1", "object": "response", "status": "failed", "error": error, "output": []}


CODES = [
    ("server_error", errors.ServerError),
    ("rate_limit_exceeded", errors.RateLimited),
    ("insufficient_quota", errors.QuotaExceeded),
    ("context_length_exceeded", errors.ContextTooLong),
    ("invalid_prompt", errors.Refused),
    ("bio_policy", errors.Refused),
    ("image_content_policy_violation", errors.Refused),
    ("vector_store_timeout", errors.ServerError),
    ("invalid_image_url", errors.InvalidRequest),
    ("failed_to_download_image", errors.InvalidRequest),
    ("previous_response_not_found", errors.InvalidRequest),
    ("invalid_encrypted_content", errors.InvalidRequest),
    ("something_new", errors.ServerError),
]


@pytest.mark.parametrize(("code", "kind"), CODES)
def test_mid_stream_error_has_the_right_class(code: str, kind: type[Exception]) -> None:
    """The error class is the same for error events, failed responses and lifecycle events."""
    response = failed(code)
    for body in (event(code), response, {"type": "response.failed", "response": response}):
        for form in (body, json.dumps(body), json.dumps(body).encode()):
            error = DIALECT.decode_error(None, form)
            assert type(error) is kind
            assert error.code == code


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "The requested model 'm' does not exist.",
                         "code": "model_not_found", "param": "model"}}, errors.ModelNotFound),
        (404, {"error": {"message": "Item with id 'rs_1' not found. Items are not persisted when"
                                    " 'store' is set to false", "param": "input"}},
         errors.InvalidRequest),
        (401, {"detail": "Could not parse your authentication token."},
         errors.AuthenticationError),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided."},
         errors.AuthenticationError),
        (502, b"<html>Bad Gateway</html>", errors.ServerError),
    ],
)  # fmt: skip
def test_error_body_has_the_right_class(status: int, body: Any, kind: type[Exception]) -> None:
    """Error bodies of OpenAI and compatible hosts map to the right class."""
    assert type(DIALECT.decode_error(status, body)) is kind


def test_provider_text_is_not_in_the_error() -> None:
    """No text from the provider appears in our error."""
    for body in (event(SECRET, SECRET), {"response": failed(SECRET, SECRET)}, failed("x", SECRET)):
        error = DIALECT.decode_error(None, body)
        assert SECRET not in f"{error} {error!r} {vars(error)}"


def test_error_is_encoded_in_openai_format() -> None:
    """The encoded error has message, type, param and code."""
    error = errors.InvalidRequest("no", status=400, code="empty_array", param="input")
    assert DIALECT.encode_error(error) == (
        400,
        {
            "error": {
                "message": "no",
                "type": "invalid_request_error",
                "param": "input",
                "code": "empty_array",
            }
        },
    )
