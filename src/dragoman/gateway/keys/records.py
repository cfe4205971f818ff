"""Virtual keys, budgets, reservations and usage as values."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.gateway.keys.amounts import (
    MAX_DOLLARS,
    MAX_TOKENS,
    clipped_cost,
    clipped_tokens,
    dollars_of,
    expect_tokens,
    is_amount,
    nanos_of,
)

if TYPE_CHECKING:
    from dragoman.model.usage import Usage

Kind = Literal["tokens", "cost"]
Period = Literal["total", "day", "month"]
MAX_NAME_LENGTH = 200
_MAX_PATTERNS = 100
_MAX_PER_MINUTE = 10**9
_MAX_CONCURRENT = 1_000_000
_USUAL_TOKENS = 10**9  # no more than `expect_tokens` allows
_WHOLE = {int}
_MAX_BATCH_NANOS = 10**15  # a million dollars, as for a request


class Budget(msgspec.Struct, frozen=True):
    """A limit on what a key may spend per UTC day, per UTC month, or in total."""

    kind: Kind
    amount: Decimal
    """Tokens, or dollars."""
    period: Period = "total"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.period not in get_args(Period):
            _refuse("a budget's kind must be tokens or cost, and its period total, day or month")
        if not is_amount(self.amount):
            _refuse("a budget's amount must be a number from 0")
        if self.amount > (MAX_DOLLARS if self.kind == "cost" else MAX_TOKENS):
            _refuse(f"a budget may be at most {MAX_DOLLARS:,} dollars or {MAX_TOKENS:,} tokens")
        if self.kind == "tokens" and self.amount != self.amount.to_integral_value():
            _refuse("a token budget must be a whole number")

    @property
    def units(self) -> int:
        """The amount in tokens or nano-dollars."""
        return int(self.amount) if self.kind == "tokens" else nanos_of(self.amount, MAX_DOLLARS)

    def __str__(self) -> str:
        amount = f"{self.amount:,f}"
        what = f"${amount}" if self.kind == "cost" else f"{amount} tokens"
        return f"{what} in total" if self.period == "total" else f"{what} per {self.period}"


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored key, without its secret, of which only a hash is stored."""

    id: str
    name: str = ""
    models: tuple[str, ...] = ()
    """Patterns of allowed models, in which `*` matches any text; empty: all models."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_concurrent: int | None = None
    budgets: tuple[Budget, ...] = ()
    expires_at: float | None = None
    created_at: float = 0.0
    revoked_at: float | None = None
    is_admin: bool = False

    def __post_init__(self) -> None:
        _expect_text(self.name, "a key's name")
        if type(self.models) is not tuple or len(self.models) > _MAX_PATTERNS:
            _refuse(f"models must be a tuple of at most {_MAX_PATTERNS} patterns")
        for pattern in self.models:
            _expect_text(pattern, "a model's pattern")
            if not pattern:
                _refuse("a model's pattern must not be empty; omit it to allow all models")
        _expect_limit(self.requests_per_minute, "requests_per_minute", _MAX_PER_MINUTE)
        _expect_limit(self.tokens_per_minute, "tokens_per_minute", _MAX_PER_MINUTE)
        _expect_limit(self.max_concurrent, "max_concurrent", _MAX_CONCURRENT)
        if len({(each.kind, each.period) for each in self.budgets}) != len(self.budgets):
            _refuse("a key can have only one budget of each kind and period")

    @property
    def is_limited(self) -> bool:
        """Whether requests have to be admitted by the store."""
        return bool(
            self.budgets
            or self.requests_per_minute is not None
            or self.tokens_per_minute is not None
            or self.max_concurrent is not None
        )

    @property
    def has_cost_budget(self) -> bool:
        """Whether the cost of a request must be known before it is admitted."""
        return any(each.kind == "cost" for each in self.budgets)


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a request used. Only `tokens_in` and `tokens_out` count against token limits."""

    tokens_in: int = 0
    """All input tokens, including cached ones and those billed besides (`separate_input`)."""
    tokens_out: int = 0
    """All output tokens, including reasoning."""
    tokens_cached: int = 0
    """The part of `tokens_in` that was read from a cache."""
    tokens_reasoning: int = 0
    """The part of `tokens_out` that was reasoning."""
    cost: Decimal | None = None
    """Cost in dollars; None: the price is unknown."""
    model: str = ""
    route: str = ""

    def __post_init__(self) -> None:
        counts = (self.tokens_in, self.tokens_out, self.tokens_cached, self.tokens_reasoning)
        if set(map(type, counts)) == _WHOLE and min(counts) >= 0 and max(counts) <= _USUAL_TOKENS:
            return
        for name in ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning"):
            expect_tokens(getattr(self, name), name)

    @classmethod
    def of(cls, usage: Usage, cost: Decimal | None, *, model: str, route: str) -> Spent:
        """Convert a `Usage`, whose counts do not overlap; absurd ones become the largest."""
        return cls(
            tokens_in=clipped_tokens(usage.total_input + usage.separate_input),
            tokens_out=clipped_tokens(usage.total_output + usage.separate_output),
            tokens_cached=clipped_tokens(usage.cache_read),
            tokens_reasoning=clipped_tokens(usage.thinking),
            cost=clipped_cost(cost), model=model, route=route,
        )  # fmt: skip


class BatchSpent(msgspec.Struct, kw_only=True):
    """What the results of a batch used, for one model."""

    model: str
    route: str
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    nanos: int = 0
    unknown: int = 0
    """The number of results whose cost is unknown."""

    def add(self, spent: Spent) -> None:
        """Add one result."""
        self.requests += 1
        self.tokens_in = clipped_tokens(self.tokens_in + spent.tokens_in)
        self.tokens_out = clipped_tokens(self.tokens_out + spent.tokens_out)
        self.tokens_cached = clipped_tokens(self.tokens_cached + spent.tokens_cached)
        self.tokens_reasoning = clipped_tokens(self.tokens_reasoning + spent.tokens_reasoning)
        nanos = 0 if spent.cost is None else nanos_of(spent.cost)
        self.nanos = min(self.nanos + nanos, _MAX_BATCH_NANOS)
        self.unknown += spent.cost is None


class Reservation(msgspec.Struct, kw_only=True):
    """An admitted request, to be settled with what it used, or released."""

    id: str
    """Empty if nothing is reserved in the store, as for keys without limits."""
    key: KeyRecord
    tokens: int
    nanos: int
    """The estimated cost, in nano-dollars."""
    day: str
    """The UTC day of its admission, to which it is charged."""
    is_done: bool = False


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a key, by day, model and route."""

    key: str
    day: str
    model: str
    route: str
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    nanos: int = 0
    unknown: int = 0
    """The number of requests whose cost is unknown."""

    @property
    def cost(self) -> Decimal:
        """Dollars charged: known costs, and estimates charged to budgets."""
        return dollars_of(self.nanos)


SUMS = ("requests", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "nanos",
        "unknown")  # fmt: skip
"""The fields of a `UsageRow` that are summed."""


def _expect_limit(value: int | None, name: str, most: int) -> None:
    if value is not None and (type(value) is not int or not 1 <= value <= most):
        _refuse(f"{name} must be a whole number from 1 to {most:,}")


def _expect_text(text: object, what: str) -> None:
    if not isinstance(text, str) or len(text) > MAX_NAME_LENGTH or not text.isprintable():
        _refuse(f"{what} must have at most {MAX_NAME_LENGTH} printable characters")


def _refuse(problem: str) -> None:
    raise InvalidInputError(problem)
