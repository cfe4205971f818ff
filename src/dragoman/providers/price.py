"""Prices per token, and the cost of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.usage import Usage
from dragoman.model.value import expect

Amount = Decimal | int | float | str
"""An amount of money: `Decimal("1.25")`, `"1.25"`, `1.25`, `3`."""

_MILLION = 1_000_000
_MAX_AMOUNT = 10**9  # more is a mistake, and would not fit into sums
_FIELDS = ("input", "output", "cache_read", "cache_write", "cache_write_hour")


@dataclass(frozen=True, slots=True, init=False)
class Price:
    """US dollars per million tokens. Thinking is billed as output.

    >>> Price("1.25", 10).cost(Usage(input=1_000, output=200, thinking=300))
    Decimal('0.00625')
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal
    """Prompt tokens read from a cache; the default is the price of `input`."""
    cache_write: Decimal
    """Prompt tokens written to a cache; the default is the price of `input`."""
    cache_write_hour: Decimal
    """Prompt tokens cached for an hour (Anthropic); the default is `cache_write`."""
    above: int | None
    """The prompt length above which the whole request is billed at the price `beyond`."""
    beyond: Price | None

    def __init__(
        self,
        input: Amount,  # noqa: A002 - as `Usage.input`, which it is the price of
        output: Amount = 0,
        *,
        cache_read: Amount | None = None,
        cache_write: Amount | None = None,
        cache_write_hour: Amount | None = None,
        above: int | None = None,
        beyond: Price | Mapping[str, Any] | None = None,
    ) -> None:
        cache_write = input if cache_write is None else cache_write
        hour = cache_write if cache_write_hour is None else cache_write_hour
        given = (input, output, input if cache_read is None else cache_read, cache_write, hour)
        for name, amount in zip(_FIELDS, given, strict=True):
            object.__setattr__(self, name, dollars(amount, f"Price.{name}"))
        object.__setattr__(self, "above", _length(above))
        object.__setattr__(self, "beyond", None if beyond is None else price_of(beyond))
        if (above is None) is not (beyond is None):
            msg = "Price.above and Price.beyond must be given together"
            raise InvalidInputError(msg)

    @property
    def is_free(self) -> bool:
        """Whether all prices are zero."""
        is_nothing = not any(getattr(self, name) for name in _FIELDS)
        return is_nothing and (self.beyond is None or self.beyond.is_free)

    def cost(self, usage: Usage) -> Decimal:
        """The cost of one request in US dollars."""
        if self.above is not None and self.beyond is not None and usage.total_input > self.above:
            return self.beyond.cost(usage)
        total = usage.input * self.input + usage.total_output * self.output
        if usage.cache_read:
            total += usage.cache_read * self.cache_read
        if usage.cache_write:
            hour = min(_hour_cache_tokens(usage), usage.cache_write)
            total += (usage.cache_write - hour) * self.cache_write + hour * self.cache_write_hour
        return total / _MILLION


def price_of(given: Price | Mapping[str, Any]) -> Price:
    """Convert a mapping of fields to a `Price`; a `Price` is returned unchanged."""
    expect(given, (Price, Mapping), "a price")
    if isinstance(given, Price):
        return given
    known = (*_FIELDS, "above", "beyond")
    if "input" not in given or any(name not in known for name in given):
        msg = f"a price must have input, and may only have {', '.join(known[1:])} besides"
        raise InvalidInputError(msg)
    return Price(**given)


def dollars(amount: Amount, what: str) -> Decimal:
    """Validate an amount of money; `what` names it in errors."""
    if isinstance(amount, bool) or not isinstance(amount, (Decimal, int, float, str)):
        msg = f"{what} must be a number of US dollars, not {type(amount).__name__}"
        raise InvalidInputError(msg)
    try:
        found = Decimal(str(amount) if isinstance(amount, float) else amount)
    except (InvalidOperation, ValueError):
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found <= _MAX_AMOUNT:
        msg = f"{what} must be a number of US dollars, zero or more"
        raise InvalidInputError(msg)
    return found


def _length(above: int | None) -> int | None:
    if above is not None and (type(above) is not int or above < 0):
        msg = "Price.above must be an integer number of tokens, zero or more"
        raise InvalidInputError(msg)
    return above


def _hour_cache_tokens(usage: Usage) -> int:
    """The tokens written to Anthropic's cache for an hour (W61)."""
    if (counted := usage.details.get("cache_write_1h", 0)) > 0:
        return counted
    written = usage.extras.get("anthropic", EMPTY)  # as earlier versions stored it
    detail = written.get("cache_creation") if isinstance(written, Mapping) else None
    count = detail.get("ephemeral_1h_input_tokens") if isinstance(detail, Mapping) else None
    return count if type(count) is int and count > 0 else 0
