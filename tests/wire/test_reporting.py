"""The error that a gateway client gets if several models failed."""

from __future__ import annotations

import pytest

from dragoman.errors import (
    AllFailed,
    AuthenticationError,
    ConfigError,
    ConnectError,
    ContextTooLong,
    DragomanError,
    InvalidRequest,
    Overloaded,
    ProviderError,
    RateLimited,
    Refused,
    ServerError,
    StoreError,
)
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.error_reporting import reported

_BUSY = Overloaded("busy", status=529)
_LIMITED = RateLimited("slow", status=429, retry_after=7.0, provider="a", request_id="r")
_LONG = ContextTooLong("long", status=400)
_KEY = AuthenticationError("key", status=401)


def _all(*causes: DragomanError) -> AllFailed:
    return AllFailed("no model answered", causes=causes)


@pytest.mark.parametrize(
    ("causes", "kind", "status"),
    [
        ((_KEY, _LONG), ContextTooLong, 400),
        ((_LONG, _KEY), ContextTooLong, 400),
        ((_LONG, _BUSY), Overloaded, 529),
        ((_BUSY, ConnectError("gone")), Overloaded, 529),
        ((ConnectError("gone"), _LIMITED, _LONG), RateLimited, 429),
        ((_BUSY, _LIMITED), RateLimited, 429),
        ((_LIMITED, _BUSY), Overloaded, 529),
        ((_KEY, ConnectError("gone")), ServerError, 502),
        ((InvalidRequest("bad", status=422), Refused("no", status=400)), Refused, 400),
        ((_KEY, ConfigError("no key")), ServerError, 500),
        ((ConfigError("no key"), _KEY), AuthenticationError, 401),
        ((_KEY, _all(_LONG, _all(_BUSY))), Overloaded, 529),
        ((StoreError("full"),), ServerError, 500),
        ((), ServerError, 500),
    ],
)
def test_the_most_relevant_cause_is_reported(
    causes: tuple[DragomanError, ...], kind: type[ProviderError], status: int
) -> None:
    """Retryable causes first, then client errors; the last one of the same kind."""
    found = reported(_all(*causes))
    assert (type(found), found.status) == (kind, status)


def test_the_shortest_wait_is_reported() -> None:
    """The earliest retry time is used with any cause; its other details are kept."""
    found = reported(_all(_LIMITED, RateLimited("slow", retry_after=30.0, request_id="other")))
    assert (found.retry_after, found.request_id, found.retryable) == (7.0, "other", True)
    assert reported(_all(_BUSY, _LIMITED)) is _LIMITED
    assert reported(_all(_LIMITED, _BUSY)).retry_after == 7.0


def test_internal_errors_are_not_disclosed() -> None:
    """A missing key or a full store is not reported to the client."""
    found = reported(_all(ConfigError("hush"), StoreError("hush")))
    assert "hush" not in str(found)
    assert not found.retryable


@pytest.mark.parametrize("name", dialects())
def test_every_dialect_can_encode_it(name: str) -> None:
    """The body has the status of the reported cause, and decodes to its class."""
    status, body = dialect(name).encode_error(_all(_KEY, _LIMITED))
    assert status == 429
    assert isinstance(dialect(name).decode_error(status, body), RateLimited)
