"""Decides whether a request is admitted, from what the store has counted for its key.

Rate limits are token buckets for one minute, stored as a single number: the time at which the
bucket is full again (GCRA). A request moves it forward by its share of a minute, and is admitted as
long as that time is at most a minute from now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from dragoman.errors import (
    AuthenticationError,
    DragomanError,
    InvalidRequest,
    QuotaExceeded,
    RateLimited,
)
from dragoman.gateway.keys.amounts import seconds_left, windows_of
from dragoman.gateway.keys.records import KeyRecord, Reservation

MINUTE = 60.0
SET_BACK = 600.0
"""If a bucket takes longer than this to fill, the clock was set back, and the bucket is reset.
Requests can't cause it, since overdrafts are limited to `OVERDRAFT`."""
OVERDRAFT = 540.0
SOON = 1.0
"""Seconds after which requests in progress may have ended, for `Retry-After`."""


class Rates(NamedTuple):
    """The times at which the request and token buckets are full again."""

    requests_at: float = 0.0
    tokens_at: float = 0.0


class Held(NamedTuple):
    """The sums of one day's live reservations."""

    day: str
    requests: int
    tokens: int
    nanos: int


class Meter(NamedTuple):
    """The counts of a key: tokens and nano-dollars spent by window, reservations and rates."""

    spent: Mapping[str, tuple[int, int]]
    held: Sequence[Held]
    rates: Rates


class Refusal(NamedTuple):
    """Why a request is refused."""

    reason: Literal["revoked", "budget", "reserved", "requests", "tokens", "concurrent"]
    wait: float = 0.0
    budget: int = 0
    """The index of the exceeded budget in the key's `budgets`."""


def decide(reservation: Reservation, meter: Meter, now: float) -> Rates | Refusal:
    """Return the new rates if the request is admitted, otherwise the refusal."""
    return _budget_refusal(reservation, meter) or _check_rates(reservation, meter, now)


def _budget_refusal(reservation: Reservation, meter: Meter) -> Refusal | None:
    refused: Refusal | None = None
    windows = windows_of(reservation.day)
    for position, budget in enumerate(reservation.key.budgets):
        window = windows[budget.period]
        tokens, nanos = meter.spent.get(window, (0, 0))
        within = [each for each in meter.held if _is_within(each.day, window)]
        if budget.kind == "tokens":
            own, spent, held = reservation.tokens, tokens, sum(each.tokens for each in within)
        else:
            own, spent, held = reservation.nanos, nanos, sum(each.nanos for each in within)
        if spent + own > budget.units:
            return Refusal("budget", budget=position)  # waiting for others does not help
        if spent + held + own > budget.units:
            refused = refused or Refusal("reserved", SOON, position)
    return refused


def _is_within(day: str, window: str) -> bool:
    return window == "total" or day.startswith(window)


def _check_rates(reservation: Reservation, meter: Meter, now: float) -> Rates | Refusal:
    key, rates = reservation.key, meter.rates
    requests_at, wait = _take_from_bucket(rates.requests_at, now, 1, key.requests_per_minute)
    if wait > 0:
        return Refusal("requests", wait)
    tokens_at, wait = _take_from_bucket(
        rates.tokens_at, now, reservation.tokens, key.tokens_per_minute
    )
    if wait > 0:
        return Refusal("tokens", wait)
    if key.max_concurrent is not None:
        count = sum(each.requests for each in meter.held)
        if count >= key.max_concurrent:
            return Refusal("concurrent", SOON)
    return Rates(requests_at, tokens_at)


def _take_from_bucket(
    full_at: float, now: float, amount: int, per_minute: int | None
) -> tuple[float, float]:
    """When the bucket is full again after taking the amount, and how long to wait before that."""
    if per_minute is None:
        return full_at, 0.0
    begins = now if full_at > now + SET_BACK else max(full_at, now)
    after = begins + amount * MINUTE / per_minute
    # Fractions of a minute are not exact in binary: 60 times 1/60 must still fit into a minute.
    return after, max(0.0, after - now - MINUTE - 1e-6)


def corrected(tokens_at: float, now: float, more: int, per_minute: int) -> float:
    """The token bucket after a request used `more` tokens than reserved (negative: fewer)."""
    return min(tokens_at + more * MINUTE / per_minute, now + OVERDRAFT)


def expect_possible(key: KeyRecord, tokens: int) -> None:
    """Raise if a request needs more tokens than the limit per minute: it could never be sent."""
    limit = key.tokens_per_minute
    if limit is not None and tokens > limit:
        msg = (
            f"the request may use {tokens:,} tokens, but the key allows {limit:,} per minute: send"
            " less, or lower max_tokens"
        )
        raise InvalidRequest(msg, status=413, code="tokens_per_minute_exceeded")


def error_of(refusal: Refusal, key: KeyRecord, now: float) -> DragomanError:
    """The error for a refusal."""
    match refusal.reason:
        case "revoked":
            return AuthenticationError(REVOKED, status=401, code="invalid_api_key")
        case "budget":
            budget = key.budgets[refusal.budget]
            left = seconds_left(budget.period, now)
            when = "" if left is None else f"; the next {budget.period} begins at midnight UTC"
            if budget.period == "month":
                when = "; the next month begins at midnight UTC of its first day"
            return QuotaExceeded(
                f"the key's budget of {budget} is used up, or too little is left for this request;"
                f" a smaller max_tokens reserves less{when}",
                status=429, code="insufficient_quota", retry_after=left,
            )  # fmt: skip
        case "reserved":
            msg = (
                f"the rest of the key's budget of {key.budgets[refusal.budget]} is reserved by"
                " requests in progress; try again soon"
            )
        case "requests":
            msg = f"the key allows {key.requests_per_minute:,} requests per minute"
        case "tokens":
            msg = f"the key allows {key.tokens_per_minute:,} tokens per minute"
        case "concurrent":
            msg = f"the key allows {key.max_concurrent:,} concurrent requests"
    return RateLimited(msg, status=429, code="rate_limit_exceeded", retry_after=refusal.wait)


REVOKED = "the key was revoked"
