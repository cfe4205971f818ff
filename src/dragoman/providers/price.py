"""What a model's tokens cost, and what a turn cost by that."""

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
"""Money, as people write it down: `Decimal("1.25")`, `"1.25"`, `1.25`, `3`."""

_MILLION = 1_000_000
_MOST = 10**9  # more is a slip, and would not fit into sums
_FIELDS = ("input", "output", "cache_read", "cache_write", "cache_write_hour")


@dataclass(frozen=True, slots=True, init=False)
class Price:
    """US dollars for a million tokens; thinking is billed as output everywhere.

    >>> Price("1.25", 10).cost(Usage(input=1_000, output=200, thinking=300))
    Decimal('0.00625')
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal
    """Prompt tokens read from a cache; as `input` where nothing else is said."""
    cache_write: Decimal
    """Prompt tokens written to a cache; as `input` where nothing else is said."""
    cache_write_hour: Decimal
    """Those of them that are kept for an hour (Anthropic); as `cache_write` otherwise."""
    above: int | None
    """The length of prompts beyond which everything in the request is billed as `beyond` says."""
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
            msg = "Price.above and Price.beyond go together: give both or none"
            raise InvalidInputError(msg)

    @property
    def is_free(self) -> bool:
        """Whether it costs nothing, however much is used."""
        is_nothing = not any(getattr(self, name) for name in _FIELDS)
        return is_nothing and (self.beyond is None or self.beyond.is_free)

    def cost(self, usage: Usage) -> Decimal:
        """What one request cost, in US dollars."""
        if self.above is not None and self.beyond is not None and usage.total_input > self.above:
            return self.beyond.cost(usage)
        total = usage.input * self.input + usage.total_output * self.output
        if usage.cache_read:
            total += usage.cache_read * self.cache_read
        if usage.cache_write:
            hour = min(_kept_for_an_hour(usage), usage.cache_write)
            total += (usage.cache_write - hour) * self.cache_write + hour * self.cache_write_hour
        return total / _MILLION


def price_of(given: Price | Mapping[str, Any]) -> Price:
    """A price, or the mapping that has its fields as one."""
    expect(given, (Price, Mapping), "a price")
    if isinstance(given, Price):
        return given
    known = (*_FIELDS, "above", "beyond")
    if "input" not in given or any(name not in known for name in given):
        msg = f"a price has input and may have {', '.join(known[1:])}, and nothing else"
        raise InvalidInputError(msg)
    return Price(**given)


def dollars(amount: Amount, what: str) -> Decimal:
    """An amount of money, checked; `what` names it where it is none."""
    if isinstance(amount, bool) or not isinstance(amount, (Decimal, int, float, str)):
        msg = f"{what} must be a number of US dollars, not {type(amount).__name__}"
        raise InvalidInputError(msg)
    try:
        found = Decimal(str(amount) if isinstance(amount, float) else amount)
    except (InvalidOperation, ValueError):
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found <= _MOST:
        msg = f"{what} must be a number of US dollars, zero or more"
        raise InvalidInputError(msg)
    return found


def _length(above: int | None) -> int | None:
    if above is not None and (type(above) is not int or above < 0):
        msg = "Price.above must be a whole number of tokens, zero or more"
        raise InvalidInputError(msg)
    return above


def _kept_for_an_hour(usage: Usage) -> int:
    """The tokens that Anthropic says were written to its cache for an hour (W61)."""
    if (told := usage.details.get("cache_write_1h", 0)) > 0:
        return told
    written = usage.extras.get("anthropic", EMPTY)  # as earlier versions stored it
    detail = written.get("cache_creation") if isinstance(written, Mapping) else None
    count = detail.get("ephemeral_1h_input_tokens") if isinstance(detail, Mapping) else None
    return count if type(count) is int and count > 0 else 0
