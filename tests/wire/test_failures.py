"""Errors in both directions: classified, without quotes, and encoded in the client's dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import errors
from dragoman.errors import DragomanError, ProviderError
from dragoman.wire.error_bodies import retry_after, safe_path
from dragoman.wire.error_classification import decode_failure
from tests.wire.test_hostile import json_values

pytestmark = pytest.mark.whole

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
NOW = 1_700_000_000.0
PROVIDER_ERRORS = [
    kind
    for kind in (getattr(errors, name) for name in errors.__all__)
    if issubclass(kind, ProviderError) and kind is not ProviderError
]


def _speaker(dialect: str) -> Any:
    return dragoman.dialect(dialect)


def _chat(message: str, code: str | int | None = None, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _google(code: int | None, status: str, message: str, **details: Any) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message, "status": status}
    listed = [{"@type": f"type.googleapis.com/google.rpc.{k}", **v} for k, v in details.items()]
    return {"error": {**error, "details": listed} if listed else error}


def _quota(quota: str, **fields: Any) -> dict[str, Any]:
    return {"violations": [{"quotaMetric": "m"}, {"quotaId": quota, **fields}]}


_PER_MINUTE = _quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", quotaValue="10")
_PER_DAY = _quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", quotaValue="250")
_NONE = _quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", quotaValue="0")
_EXCEEDED = "You exceeded your current quota, please check your plan and billing details."
_WAIT = {"retryDelay": "34.4s"}

CASES: list[tuple[int | None, Any, str]] = [
    (401, "", "AuthenticationError"),
    (400, _chat("Incorrect API key provided: sk-1."), "AuthenticationError"),
    (None, _anthropic("authentication_error", "invalid x-api-key"), "AuthenticationError"),
    (403, _anthropic("permission_error", "no"), "PermissionDenied"),
    (403, _chat("no", "unsupported_country_region_territory"), "PermissionDenied"),
    (None, _anthropic("permission_error", "no"), "PermissionDenied"),
    (429, b"<html>Too many</html>", "RateLimited"),
    (429, _chat("Limit reached, try again in 2s", "rate_limit_exceeded"), "RateLimited"),
    (429, _chat("You exceeded your current quota. Please retry in 3s."), "RateLimited"),
    (429, _chat("You exceeded your current quota, check your plan."), "QuotaExceeded"),
    (429, _chat("", "insufficient_quota", "insufficient_quota"), "QuotaExceeded"),
    (402, _chat("Insufficient Balance", "invalid_request_error"), "QuotaExceeded"),
    (
        400,
        _anthropic("invalid_request_error", "Your credit balance is too low to access"),
        "QuotaExceeded",
    ),
    (529, _anthropic("overloaded_error", "Overloaded"), "Overloaded"),
    (None, _anthropic("overloaded_error", "Overloaded"), "Overloaded"),
    (503, "", "Overloaded"),
    (
        429,
        _chat("The engine is currently overloaded", None, "engine_overloaded_error"),
        "Overloaded",
    ),
    (
        400,
        _anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8"),
        "ContextTooLong",
    ),
    (
        400,
        _anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit"),
        "ContextTooLong",
    ),
    (400, _chat("This model's maximum context length is 8 tokens."), "ContextTooLong"),
    (400, _chat("", "context_length_exceeded"), "ContextTooLong"),
    (
        400,
        {"error": {"message": "x", "type": "too_many_prompt_tokens", "code": 400}},
        "ContextTooLong",
    ),  # Perplexity
    (502, _chat("upstream: prompt is too long"), "ContextTooLong"),
    (413, _chat("Request too large for model `m`", "rate_limit_exceeded"), "ContextTooLong"),
    (413, _anthropic("request_too_large", "Request exceeds the maximum size"), "ContextTooLong"),
    (400, _chat("", "content_filter"), "Refused"),
    (200, {"error": {"code": "content_filter", "status": 400}}, "Refused"),
    (
        400,
        _anthropic("invalid_request_error", "Output blocked by content filtering policy"),
        "Refused",
    ),
    (
        403,
        _chat("Your chosen model requires moderation and your input was flagged for x"),
        "Refused",
    ),
    (400, _anthropic("invalid_request_error", "max_tokens: Field required"), "InvalidRequest"),
    (422, {"detail": [{"loc": ["body", "messages", 0], "msg": "x"}]}, "InvalidRequest"),
    (404, _chat("Invalid URL (POST /v1/chat)"), "InvalidRequest"),
    (418, None, "InvalidRequest"),
    (None, _chat("x", None, "invalid_request_error"), "InvalidRequest"),
    (404, _anthropic("not_found_error", "model: claude-9"), "ModelNotFound"),
    (404, _chat("The model `m` does not exist", "model_not_found"), "ModelNotFound"),
    (
        400,
        {"message": "Invalid model: m", "type": "invalid_model", "code": "1500"},
        "ModelNotFound",
    ),
    (500, _anthropic("api_error", "Internal server error"), "ServerError"),
    (504, _anthropic("timeout_error", "x"), "ServerError"),
    (400, _chat("Failed to call a function", "tool_use_failed"), "ServerError"),
    # the errors of recorded streams: Groq's, and OpenRouter's beside choices
    (
        None,
        {"error": {"message": "x", "code": "tool_use_failed", "status_code": 400}},
        "ServerError",
    ),
    (
        None,
        {"choices": [], "error": {"code": 400, "message": "Token limit reached"}},
        "InvalidRequest",
    ),
    (None, {"message": "x", "type": "server_error"}, "ServerError"),
    (None, _anthropic("api_error", "x"), "ServerError"),
    (None, None, "ServerError"),
    (None, {"error": {"code": 429, "message": "Provider returned error"}}, "RateLimited"),
    (
        200,
        [{"error": {"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}}],
        "InvalidRequest",
    ),
    # Google's: in a body, and in mid-stream
    (
        400,
        _google(400, "INVALID_ARGUMENT", "x", ErrorInfo={"reason": "API_KEY_INVALID"}),
        "AuthenticationError",
    ),
    (400, _google(400, "INVALID_ARGUMENT", "API key not valid."), "AuthenticationError"),
    (401, _google(401, "UNAUTHENTICATED", "Expected OAuth 2 access token"), "AuthenticationError"),
    (403, _google(403, "PERMISSION_DENIED", "no"), "PermissionDenied"),
    (429, _google(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Try later."), "RateLimited"),
    (
        429,
        _google(429, "RESOURCE_EXHAUSTED", _EXCEEDED, QuotaFailure=_PER_MINUTE, RetryInfo=_WAIT),
        "RateLimited",
    ),
    (
        429,
        _google(429, "RESOURCE_EXHAUSTED", _EXCEEDED, QuotaFailure=_PER_DAY, RetryInfo=_WAIT),
        "QuotaExceeded",
    ),
    (
        None,
        _google(None, "RESOURCE_EXHAUSTED", "x", QuotaFailure=_NONE, RetryInfo=_WAIT),
        "QuotaExceeded",
    ),
    (None, _google(None, "RESOURCE_EXHAUSTED", "x"), "RateLimited"),
    (503, _google(503, "UNAVAILABLE", "The model is overloaded."), "Overloaded"),
    (None, _google(None, "UNAVAILABLE", "x"), "Overloaded"),
    (
        400,
        _google(
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        ),
        "ContextTooLong",
    ),
    (400, _google(400, "FAILED_PRECONDITION", "User location is odd"), "InvalidRequest"),
    (None, _google(None, "FAILED_PRECONDITION", "x"), "InvalidRequest"),
    (
        404,
        _google(404, "NOT_FOUND", "models/x is not found for API version v1beta"),
        "ModelNotFound",
    ),
    (404, _google(404, "NOT_FOUND", "Requested entity was not found."), "InvalidRequest"),
    (None, _google(None, "NOT_FOUND", "x"), "InvalidRequest"),
    (500, _google(500, "INTERNAL", "An internal error has occurred."), "ServerError"),
    (504, _google(504, "DEADLINE_EXCEEDED", "x"), "ServerError"),
    (None, _google(None, "DEADLINE_EXCEEDED", "x"), "ServerError"),
    (200, [_google(429, "RESOURCE_EXHAUSTED", "x")], "RateLimited"),
]


@pytest.mark.parametrize(("status", "body", "kind"), CASES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_are_classified(dialect: str, status: int, body: Any, kind: str) -> None:
    """Code, message and status decide, for parsed bodies and for text."""
    assert type(_speaker(dialect).decode_error(status, body)).__name__ == kind
    raw = json.dumps(body) if isinstance(body, (dict, list)) else body
    assert type(_speaker(dialect).decode_error(status, raw)).__name__ == kind


def test_an_error_has_details() -> None:
    """Status, code, path and request id are attributes and in the message."""
    body = _chat("Invalid schema", "invalid_function_parameters", "invalid_request_error")
    body["error"]["param"] = "tools[0].function.parameters.properties.secret_plan"
    error = _speaker("openai-chat").decode_error(400, body, {"X-Request-Id": "req_1"})
    assert (error.status, error.code) == (400, "invalid_function_parameters")
    assert error.param == "tools[0].function.parameters.properties"
    assert (error.request_id, error.retryable, error.retry_after) == ("req_1", False, None)
    assert str(error) == (
        "the provider rejected the request as invalid (status 400, invalid_function_parameters, "
        "at tools[0].function.parameters.properties)"
    )


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        ("messages.0.content.1.text", "messages[0].content[1].text"),
        ("messages[3]", "messages[3]"),
        (
            "tools.0.custom.input_schema.properties.diagnosis",
            "tools[0].custom.input_schema.properties",
        ),
        ("messages[0].Hello there", "messages[0]"),
        ("my_password", None),
        ("", None),
    ],
)
def test_paths_name_only_the_dialects_fields(path: str, safe: str | None) -> None:
    """A path is cut where user-defined names begin."""
    assert safe_path(path) == safe


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "20"}, "", 20.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, "", 30.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "9" * 400}, "", None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, "", 360.0),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, "", None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, "", 0.02),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2023-11-14T22:14:20Z",
            },
            "",
            60.0,
        ),
        ({"x-ratelimit-reset": str(int(NOW + 7))}, "", 7.0),
        ({"x-ratelimit-reset": str(int(NOW + 7) * 1000)}, "", 7.0),
        ({}, "Rate limit reached. Please try again in 1m2.5s. Thanks", 62.5),
        ({}, "retry in 12 seconds", 12.0),
        ({}, "", None),
    ],
)
def test_retry_after_is_parsed(headers: dict[str, str], text: str, seconds: float | None) -> None:
    """All spellings of a wait that providers use are parsed, including malformed ones."""
    assert retry_after(headers, text, now=NOW) == pytest.approx(seconds)


def test_waits_are_read_only_where_they_apply() -> None:
    """Rate limit headers count for rate limits only; a 529 has no wait (W73)."""
    headers = {"x-ratelimit-reset": "5", "x-should-retry": "true"}
    assert decode_failure(429, "", headers).retry_after == 5
    assert decode_failure(400, "", headers).retry_after is None
    assert decode_failure(529, "", {"retry-after": "5"}).retry_after is None
    assert decode_failure(500, "", {"retry-after": "5"}).retry_after == 5


def test_the_provider_decides_about_retries() -> None:
    """`x-should-retry` and some statuses override the class."""
    assert decode_failure(500, "").retryable
    assert not decode_failure(500, "", {"X-Should-Retry": "false"}).retryable
    assert decode_failure(400, "", {"x-should-retry": "true"}).retryable
    assert decode_failure(409, "").retryable


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", PROVIDER_ERRORS)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_class_survives_a_gateway(
    dialect: str, kind: type[ProviderError], streamed: bool
) -> None:
    """Encoded and decoded, plain and in mid-stream, an error has the same class (G6)."""
    speaker = _speaker(dialect)
    status, body = speaker.encode_error(kind("it failed", request_id="req_1"))
    assert 400 <= status < 600
    assert type(speaker.decode_error(None if streamed else status, body)) is kind


@pytest.mark.parametrize("source", DIALECTS)
@pytest.mark.parametrize("target", DIALECTS)
def test_errors_are_translated_between_dialects(source: str, target: str) -> None:
    """An error of one dialect has the same class in the other."""
    for status, body, kind in CASES:
        error = _speaker(source).decode_error(status, body)
        told = _speaker(target).decode_error(*_speaker(target).encode_error(error))
        assert type(told).__name__ == kind, (status, body)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", [getattr(errors, name) for name in errors.__all__])
def test_every_error_can_be_encoded(dialect: str, kind: type[DragomanError]) -> None:
    """All of our errors have a status and a body, without internal details."""
    status, body = _speaker(dialect).encode_error(kind("the text"))
    assert json.dumps(body)
    assert 400 <= status < 600
    inside = issubclass(kind, (errors.ConfigError, errors.ToolError, errors.StoreError))
    if inside and kind is not errors.ContextTooSmall:
        assert status == 500
        assert "the text" not in json.dumps(body)


def test_statuses_are_kept_if_they_fit_the_class() -> None:
    """A provider's status is passed on unless it means another class."""
    speaker = _speaker("anthropic")
    assert speaker.encode_error(errors.InvalidRequest("x", status=422))[0] == 422
    assert speaker.encode_error(errors.InvalidRequest("x", status=429))[0] == 400
    assert speaker.encode_error(errors.ServerError("x", status=400))[0] == 500
    status, body = speaker.encode_error(errors.TimeoutError("x"))
    assert (status, body["error"]["type"]) == (504, "timeout_error")
    assert speaker.encode_error(errors.ConnectError("x"))[0] == 502


def test_openais_body_has_all_its_fields() -> None:
    """Clients read `code` and `param`."""
    error = errors.InvalidRequest("no", status=400, code="empty_array", param="messages")
    assert _speaker("openai-chat").encode_error(error) == (
        400,
        {
            "error": {
                "message": "no",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "empty_array",
            }
        },
    )


SECRET = "zqzq0123456789abcdef"
hiding_places = st.sampled_from(
    [
        _chat(SECRET, SECRET, SECRET),
        _anthropic(SECRET, SECRET),
        _anthropic("invalid_request_error", f"{SECRET}: {SECRET}"),
        _anthropic("invalid_request_error", f"messages.0.{SECRET}: {SECRET}"),
        {"error": {"param": SECRET, "code": f"a {SECRET}", "innererror": {"code": SECRET}}},
        {"error": SECRET, "code": SECRET, "message": SECRET},
        {"detail": [{"loc": ["body", SECRET], "msg": SECRET}]},
        {"detail": SECRET},
        {SECRET: SECRET},
        _google(
            429,
            SECRET,
            SECRET,
            ErrorInfo={"reason": SECRET},
            RetryInfo={"retryDelay": SECRET},
            QuotaFailure=_quota(SECRET),
        ),
        SECRET,
    ]
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(status=st.none() | st.integers(300, 600), body=hiding_places)
def test_provider_messages_are_not_quoted(dialect: str, status: int | None, body: Any) -> None:
    """Neither message nor attributes have the provider's text, nor what is encoded of them."""
    error = _speaker(dialect).decode_error(status, body)
    error.detail = None
    told = _speaker(dialect).encode_error(error)
    assert SECRET not in f"{error} {error!r} {error.args} {vars(error)} {told}"


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    status=json_values,
    body=json_values | st.binary(max_size=60),
    headers=st.none() | st.dictionaries(st.text(max_size=10), st.text(max_size=10)),
)
def test_any_body_is_decoded_to_an_error(
    dialect: str, status: Any, body: Any, headers: Any
) -> None:
    """For any input, `decode_error` returns one of the classes."""
    error = _speaker(dialect).decode_error(status, body, headers)
    assert type(error) in PROVIDER_ERRORS
    error = _speaker(dialect).decode_error(status, {"error": body}, headers)
    assert type(error) in PROVIDER_ERRORS


@given(value=st.text(max_size=40) | st.from_regex(r"[0-9:TZ. -]{1,30}", fullmatch=True))
def test_any_header_gives_a_wait_or_none(value: str) -> None:
    """Any date, number or duration is parsed without an exception."""
    names = ("retry-after", "retry-after-ms", "x-ratelimit-reset")
    for name in names:
        seconds = retry_after({name: value}, value)
        assert seconds is None or seconds >= 0
