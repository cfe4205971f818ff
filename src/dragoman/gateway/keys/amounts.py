"""Amounts of money as integer nano-dollars, and the UTC days and months of budgets.

Prices are in dollars per million tokens: $0.075 per million is 75 nano-dollars per token, which
micro-dollars could not represent. Fractions of a nano-dollar are rounded up, so that charges never
add up to less than what was spent.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal

from dragoman.errors import InvalidInputError

MAX_DOLLARS = Decimal(1_000_000_000)
"""The largest budget; in nano-dollars it fits into 64 bits with room for sums."""
MAX_TOKENS = 10**15
_REQUEST_DOLLARS = Decimal(1_000_000)
_REQUEST_TOKENS = 10**12
_UNIT = 9
_EXACT = Context(prec=60, rounding=ROUND_CEILING)  # the default context may have fewer digits
TOTAL = "total"


def nanos_of(cost: Decimal, most: Decimal = _REQUEST_DOLLARS) -> int:
    """Convert dollars to nano-dollars, rounded up.

    >>> nanos_of(Decimal("0.0000000001"))
    1
    """
    if not is_amount(cost) or cost > most:
        msg = f"a cost must be a Decimal from 0 to {most:,} dollars"
        raise InvalidInputError(msg)
    return int(cost.scaleb(_UNIT, _EXACT).to_integral_value(ROUND_CEILING, _EXACT))


def is_amount(value: object) -> bool:
    """Whether a value is a finite Decimal of at least 0; floats are not."""
    return isinstance(value, Decimal) and value.is_finite() and value >= 0


def dollars_of(nanos: int) -> Decimal:
    """Convert nano-dollars to dollars, exactly.

    >>> dollars_of(1_500_000_000)
    Decimal('1.5')
    """
    whole, rest = divmod(nanos, 10**_UNIT)
    digits = f"{rest:09d}".rstrip("0")
    return Decimal(f"{whole}.{digits}") if digits else Decimal(whole)


def expect_tokens(count: int, name: str = "tokens") -> int:
    """Return the count; raise unless it is a valid token count of a request."""
    if type(count) is not int or not 0 <= count <= _REQUEST_TOKENS:
        msg = f"{name} must be a whole number from 0 to {_REQUEST_TOKENS:,}"
        raise InvalidInputError(msg)
    return count


def clipped_tokens(count: int) -> int:
    """The nearest valid token count: servers may report any number, and clients ask for any."""
    return max(0, min(count, _REQUEST_TOKENS))


def clipped_cost(cost: Decimal | None) -> Decimal | None:
    """The nearest valid cost of a request."""
    return None if cost is None else max(Decimal(0), min(cost, _REQUEST_DOLLARS))


def day_of(at: float) -> str:
    """The UTC day of a timestamp: "2026-11-17"."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def windows_of(day: str) -> dict[str, str]:
    """The windows in which a day's spending is counted, by budget period.

    >>> windows_of("2026-11-17")
    {'total': 'total', 'month': '2026-11', 'day': '2026-11-17'}
    """
    return {"total": TOTAL, "month": day[:7], "day": day}


def seconds_left(period: str, at: float) -> float | None:
    """Seconds until a period ends; None for `total`, which never ends."""
    now = datetime.fromtimestamp(at, UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "day":
        return (midnight + timedelta(days=1) - now).total_seconds()
    if period == "month":
        following = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
        return (following - now).total_seconds()
    return None
