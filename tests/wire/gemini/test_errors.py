"""Google's errors: their details, and our errors in Google's format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import errors
from dragoman.errors import DragomanError, ProviderError
from dragoman.wire.gemini.codec import DIALECT

_RPC = "type.googleapis.com/google.rpc."


def _body(code: int, status: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no", "status": status, "details": list(details)}}


def _retry(delay: Any) -> dict[str, Any]:
    return {"@type": f"{_RPC}RetryInfo", "retryDelay": delay}


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [("34.4s", 34.4), ("0s", 0.0), ("34.074824224s", 34.074824224), ("soon", None), (7, None)],
)
@pytest.mark.parametrize(("code", "status"), [(429, "RESOURCE_EXHAUSTED"), (503, "UNAVAILABLE")])
def test_retry_delay_is_read_from_the_details(
    code: int, status: str, delay: Any, seconds: float | None
) -> None:
    """The delay in `RetryInfo` is read; a `Retry-After` header overrides it."""
    body = _body(code, status, {"@type": f"{_RPC}Help"}, _retry(delay))
    assert DIALECT.decode_error(code, body).retry_after == pytest.approx(seconds)
    assert DIALECT.decode_error(code, [body]).retry_after == pytest.approx(seconds)
    assert DIALECT.decode_error(code, body, {"Retry-After": "9"}).retry_after == 9


def test_daily_quota_is_not_retried() -> None:
    """A daily quota isn't retried, even though Google gives a short retry delay."""
    quota = {"@type": f"{_RPC}QuotaFailure",
             "violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}  # fmt: skip
    error = DIALECT.decode_error(429, _body(429, "RESOURCE_EXHAUSTED", quota, _retry("3s")))
    assert type(error) is errors.QuotaExceeded
    assert (error.retryable, error.retry_after) == (False, None)


def test_error_has_code_and_request_id() -> None:
    """The code is the most specific reason; the request id is read from the details."""
    reason = {"@type": f"{_RPC}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
    request = {"@type": f"{_RPC}RequestInfo", "requestId": "req_1"}
    error = DIALECT.decode_error(400, _body(400, "INVALID_ARGUMENT", reason, request))
    assert type(error) is errors.AuthenticationError
    assert (error.status, error.code, error.request_id) == (400, "API_KEY_INVALID", "req_1")
    assert DIALECT.decode_error(404, _body(404, "NOT_FOUND")).code == "NOT_FOUND"
    assert DIALECT.decode_error(None, _body(404, "NOT_FOUND")).status == 404


@pytest.mark.parametrize(
    "details",
    [None, {}, "x", [None, 7, []], [{"@type": 7}], [{"@type": f"{_RPC}QuotaFailure"}],
     [{"@type": f"{_RPC}QuotaFailure", "violations": [None, {"quotaId": 7}]}],
     [{"@type": f"{_RPC}ErrorInfo", "reason": {}}]],
)  # fmt: skip
def test_malformed_details_are_ignored(details: Any) -> None:
    """With malformed details, the class and the code follow status and name."""
    body = {"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED",
                      "details": details}}  # fmt: skip
    error = DIALECT.decode_error(429, body)
    assert type(error) is errors.RateLimited
    assert error.code == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (errors.InvalidRequest("x", status=404), 404, "NOT_FOUND"),
        (errors.InvalidRequest("x", status=409), 409, "ABORTED"),
        (errors.InvalidRequest("x", status=422), 422, "INVALID_ARGUMENT"),
        (errors.InvalidRequest("x", status=429), 400, "INVALID_ARGUMENT"),
        (errors.ServerError("x", status=502), 502, "INTERNAL"),
        (errors.ServerError("x", status=501), 501, "UNIMPLEMENTED"),
        (errors.Overloaded("x", status=529), 503, "UNAVAILABLE"),
        (errors.TimeoutError("x"), 504, "DEADLINE_EXCEEDED"),
        (errors.WireError("x"), 400, "INVALID_ARGUMENT"),
        (errors.ConfigError("x"), 500, "INTERNAL"),
    ],
)
def test_encoded_status_name_matches_the_status(
    error: DragomanError, status: int, name: str
) -> None:
    """A provider's status is kept if it fits, and each status has Google's name."""
    told, body = DIALECT.encode_error(error)
    assert (told, body["error"]["code"], body["error"]["status"]) == (status, status, name)


@pytest.mark.parametrize("kind", [errors.RateLimited, errors.Overloaded])
@pytest.mark.parametrize("seconds", [None, 0.0, 0.25, 34.4, 3600.0, 1e6])
def test_retry_delay_round_trips(kind: type[ProviderError], seconds: float | None) -> None:
    """The retry delay and the request id are written to the details and read again."""
    error = kind("busy", retry_after=seconds, request_id="req_1")
    status, body = DIALECT.encode_error(error)
    again = DIALECT.decode_error(status, json.dumps(body))
    assert type(again) is kind
    assert (again.retry_after, again.request_id) == (seconds, "req_1")
