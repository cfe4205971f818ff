"""Ollama's errors: a text and a status."""

from __future__ import annotations

import pytest

from dragoman.errors import (
    AuthenticationError,
    ContextTooLong,
    ContextTooSmall,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    Refused,
    ServerError,
    StoreError,
)
from dragoman.wire.ollama.codec import DIALECT

# Status and text as the server sends them, and the error class.
RECEIVED: list[tuple[int | None, str, type[ProviderError]]] = [
    (404, "model 'llama9' not found", ModelNotFound),
    (404, 'model "llama9" not found, try pulling it first', ModelNotFound),
    (400, "model is required", InvalidRequest),
    (400, "missing request body", InvalidRequest),
    (400, "registry.ollama.ai/library/gemma:latest does not support tools", InvalidRequest),
    (400, '"gemma" does not support thinking', InvalidRequest),
    (400, "json: cannot unmarshal array into Go struct field Message.content", InvalidRequest),
    (400, "illegal base64 data at input byte 4", InvalidRequest),
    (400, 'option "stop" must be of type array', InvalidRequest),
    (400, "the input length exceeds the context length", ContextTooLong),
    (400, "the prompt is longer than the context length currently available to the model",
     ContextTooLong),
    (500, "input after truncation exceeds maximum context length", ContextTooLong),
    (401, "unauthorized", AuthenticationError),
    (403, "remote inference is unavailable", PermissionDenied),
    (429, "too many requests", RateLimited),
    (500, "llama runner process has terminated: exit status 2", ServerError),
    (500, "model requires more system memory (9.3 GiB) than is available (5.6 GiB)", ServerError),
    (503, "server busy, please try again.  maximum pending requests exceeded", Overloaded),
    (502, "upstream error", ServerError),
    (None, "an error was encountered while running the model: unexpected EOF", ServerError),
    (None, "the input length exceeds the context length", ContextTooLong),
]  # fmt: skip


@pytest.mark.parametrize(("status", "text", "kind"), RECEIVED)
def test_error_has_the_right_class(
    status: int | None, text: str, kind: type[ProviderError]
) -> None:
    """The class follows the status and the text; the text isn't quoted."""
    error = DIALECT.decode_error(status, {"error": text})
    assert type(error) is kind
    assert error.status == status
    assert text not in f"{error!s} {error!r} {vars(error)}"


@pytest.mark.parametrize("body", [b"", b"<html>", None, [], {"error": None}, {"error": {"a": 1}}])
def test_any_body_is_decoded_as_an_error(body: object) -> None:
    """Whatever body a proxy sends, it is decoded as an error."""
    assert isinstance(DIALECT.decode_error(500, body), ServerError)


@pytest.mark.parametrize(
    "kind",
    [AuthenticationError, PermissionDenied, RateLimited, QuotaExceeded, Overloaded, ContextTooLong,
     Refused, InvalidRequest, ModelNotFound, ServerError],
)  # fmt: skip
def test_error_class_round_trips(kind: type[ProviderError]) -> None:
    """Encoded and decoded again, every error has the same class."""
    status, body = DIALECT.encode_error(kind("it failed"))
    assert list(body) == ["error"]
    assert isinstance(body["error"], str)
    assert "it failed" in body["error"]
    assert type(DIALECT.decode_error(status, body)) is kind


@pytest.mark.parametrize(
    ("error", "status"),
    [(InvalidInputError("no"), 400), (ContextTooSmall("no"), 400), (StoreError("secret"), 500),
     (ServerError("no", status=502), 502), (InvalidRequest("no", status=422), 422)],
)  # fmt: skip
def test_our_own_errors_have_a_status(error: DragomanError, status: int) -> None:
    """Errors that the client can fix are described; internal ones aren't."""
    found, body = DIALECT.encode_error(error)
    assert found == status
    assert "secret" not in body["error"]
