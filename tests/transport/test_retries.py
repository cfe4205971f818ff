"""When to retry, and after how long."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.errors import (
    AuthenticationError,
    ConfigError,
    ConnectError,
    ContextTooLong,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    Overloaded,
    QuotaExceeded,
    RateLimited,
    ServerError,
    StreamInterrupted,
    TransportError,
    WireError,
)
from dragoman.transport.retries import Retries, is_passing, repeated


@given(st.integers(1, 5000), st.floats(0, 10), st.floats(0, 100))
def test_the_backoff_grows_within_bounds(attempt: int, first: float, more: float) -> None:
    """Each wait is between half of the backoff and all of it, and never above `max_delay`."""
    retries = Retries(attempts=6000, initial_delay=first, max_delay=first + more)
    wait = retries.wait(attempt, ConnectError("gone"))
    assert wait is not None
    longest = min(first * 2.0 ** min(attempt - 1, 30), first + more)
    assert longest / 2 <= wait <= longest or math.isclose(wait, longest)


def test_the_backoff_has_jitter() -> None:
    """Clients that failed together don't retry together."""
    waits = {Retries().wait(1, ConnectError("gone")) for _ in range(20)}
    assert len(waits) > 1


@pytest.mark.parametrize(("asked", "wait"), [(3.0, 3.0), (60.0, 60.0), (61.0, None), (1e9, None)])
def test_retry_after_is_obeyed_up_to_a_limit(asked: float, wait: float | None) -> None:
    """A longer wait ends the attempts: the caller decides."""
    assert Retries().wait(1, RateLimited("slow", retry_after=asked)) == wait


def test_retry_after_zero_still_waits() -> None:
    """It must not make us hammer a server that rejects requests."""
    wait = Retries().wait(1, RateLimited("slow", retry_after=0.0))
    assert wait is not None
    assert wait >= 0.25


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectError("x"), True),
        (ConnectError("x", retryable=False), False),
        (errors.TimeoutError("x"), True),
        (StreamInterrupted("x"), True),
        (RateLimited("x", status=429), True),
        (Overloaded("x", status=529), True),
        (ServerError("x", status=500), True),
        (InvalidRequest("x", status=409, retryable=True), True),
        (QuotaExceeded("x", status=429), False),
        (ContextTooLong("x", status=502), False),
        (ServerError("x", status=500, retryable=False), False),
        (AuthenticationError("x", status=401), False),
        (InvalidRequest("x", status=400), False),
        (TransportError("x"), False),
        (WireError("x"), False),
        (ConfigError("x"), False),
        (InvalidInputError("x"), False),
    ],
)
def test_only_temporary_failures_are_retried(error: DragomanError, passes: bool) -> None:
    """The provider's flag overrides the status."""
    assert is_passing(error) is passes
    assert (Retries().wait(1, error) is not None) is passes


async def test_attempts_end_with_the_last_error() -> None:
    """There is a wait after each failure but the last."""
    waits: list[float] = []
    failures = [ConnectError(str(number)) for number in range(5)]
    left = iter(failures)

    async def attempt() -> None:
        raise next(left)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with pytest.raises(ConnectError, match="2"):
        await repeated(attempt, Retries(attempts=3), sleep)
    assert len(waits) == 2
    assert waits[0] <= 0.5 <= waits[1] <= 1.0


async def test_raised_errors_have_no_context() -> None:
    """Earlier attempts are not in `__context__`."""

    async def attempt() -> None:
        msg = "gone"
        raise ConnectError(msg)

    async def sleep(_: float) -> None: ...

    with pytest.raises(ConnectError) as raised:
        await repeated(attempt, Retries(attempts=2), sleep)
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    "settings",
    [{"attempts": 0}, {"attempts": 1.5}, {"initial_delay": -1}, {"initial_delay": 9},
     {"max_delay": math.inf}, {"max_retry_after": -1}, {"initial_delay": "1"},
     {"initial_delay": math.nan}, {"max_retry_after": math.nan}],
)  # fmt: skip
def test_invalid_settings_are_rejected(settings: dict[str, object]) -> None:
    """When they are created, not at the first failure."""
    with pytest.raises(InvalidInputError):
        Retries(**cast("Any", settings))
