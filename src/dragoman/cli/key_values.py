"""Parses budgets and lifetimes, and formats key records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from dragoman.cli.costs import dollars
from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.cli.history.stores import moment
from dragoman.gateway.keys.amounts import day_of as day_at
from dragoman.gateway.keys.amounts import dollars_of, windows_of
from dragoman.gateway.keys.records import Budget, KeyRecord, Kind, UsageRow
from dragoman.gateway.keys.store import Standing

COLUMNS = ("id", "name", "state", "models", "limits", "budgets", "expires")
SUM_COLUMNS = ("requests", "tokens in", "tokens out", "cached", "reasoning", "cost")
_BUDGET = re.compile(r"\$?([0-9]+(?:\.[0-9]+)?)([kM]?)(?:/(day|month|total))?", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIMES = {"": 1, "k": 1000, "M": 1_000_000}


def budget_of(text: str, kind: Kind) -> Budget:
    """Parse a budget: 5/day, 200k/month, 10.

    >>> str(budget_of("2.50/day", "cost"))
    '$2.50 per day'
    """
    found = _BUDGET.fullmatch(text.strip())
    if found is None:
        example = "5/day or 0.50/month" if kind == "cost" else "200k/day or 5M"
        msg = f"a budget must be an amount, optionally per day or month, such as {example}"
        raise Ending(USAGE, msg)
    amount = Decimal(found[1]) * _TIMES[found[2]]
    return Budget(kind, amount, found[3] or "total")  # type: ignore[arg-type]  # one of three


def duration_of(text: str) -> float:
    """The number of seconds in 90s, 15m, 12h, 30d or 4w."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise Ending(USAGE, "a lifetime must be a number with s, m, h, d or w, such as 12h or 30d")
    return float(int(found[1]) * _SECONDS[found[2]])


def day_of(text: str) -> str:
    """Validate a day in ISO format."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        problem = "a day must be written as in 2026-11-01"
    raise Ending(USAGE, problem)


def described(record: KeyRecord, standing: Standing | None = None) -> dict[str, Any]:
    """A key as JSON."""
    return {
        "id": record.id,
        "name": record.name,
        "state": state_of(record),
        "models": list(record.models),
        "requests_per_minute": record.requests_per_minute,
        "tokens_per_minute": record.tokens_per_minute,
        "max_concurrent": record.max_concurrent,
        "budgets": [_budget(each, standing) for each in record.budgets],
        "created_at": _time(record.created_at),
        "expires_at": _time(record.expires_at),
        "revoked_at": _time(record.revoked_at),
        "is_admin": record.is_admin,
    }


def _budget(budget: Budget, standing: Standing | None) -> dict[str, Any]:
    shown = {"kind": budget.kind, "amount": f"{budget.amount:f}", "period": budget.period}
    if standing is not None:
        spent, reserved = _counted(budget, standing)
        shown |= {"spent": f"{spent:f}", "reserved": f"{reserved:f}"}
    return shown


def _counted(budget: Budget, standing: Standing) -> tuple[Decimal, Decimal]:
    """The spent and reserved amounts of a budget in its current period."""
    from time import time

    window = windows_of(day_at(time()))[budget.period]
    tokens, nanos = standing.spent.get(window, (0, 0))
    held = [each for each in standing.held if window == "total" or each.day.startswith(window)]
    if budget.kind == "tokens":
        return Decimal(tokens), Decimal(sum(each.tokens for each in held))
    return dollars_of(nanos), dollars_of(sum(each.nanos for each in held))


def cells_of(record: KeyRecord, standing: Standing | None = None) -> tuple[str, ...]:
    """A key as a table row."""
    limits = (
        (record.requests_per_minute, "requests/min"),
        (record.tokens_per_minute, "tokens/min"),
        (record.max_concurrent, "concurrent"),
    )
    shown = [f"{limit:,} {unit}" for limit, unit in limits if limit is not None]
    budgets = [_spent(each, standing) for each in record.budgets]
    return (
        record.id,
        record.name,
        state_of(record),
        ", ".join(record.models) or "all",
        ", ".join(shown) or "none",
        ", ".join(budgets) or "none",
        "never" if record.expires_at is None else moment(record.expires_at)[:10],
    )


def _spent(budget: Budget, standing: Standing | None) -> str:
    if standing is None:
        return str(budget)
    spent, _ = _counted(budget, standing)
    told = f"{spent:,f}" if budget.kind == "tokens" else dollars(spent)
    return f"{budget} ({told} spent)"


def state_of(record: KeyRecord) -> str:
    """The state of a key: active, revoked or expired; and whether it is an admin key."""
    from time import time

    if record.revoked_at is not None:
        return "revoked"
    if record.expires_at is not None and record.expires_at <= time():
        return "expired"
    return "active (admin)" if record.is_admin else "active"


def _time(at: float | None) -> str | None:
    return None if at is None else moment(at).replace(" ", "T") + "Z"


def sums_of(row: UsageRow, by: Sequence[str]) -> dict[str, Any]:
    """Usage as JSON; the cost is a string, so that it stays exact."""
    return {
        **{name: getattr(row, name) for name in by},
        "requests": row.requests,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "tokens_cached": row.tokens_cached,
        "tokens_reasoning": row.tokens_reasoning,
        "cost": f"{row.cost:f}",
        "requests_of_unknown_cost": row.unknown,
    }


def sum_cells(row: UsageRow, by: Sequence[str]) -> tuple[str, ...]:
    """Usage as a table row."""
    unknown = f" + {row.unknown:,} unknown" if row.unknown else ""
    counts = (
        row.requests, row.tokens_in, row.tokens_out, row.tokens_cached, row.tokens_reasoning,
    )  # fmt: skip
    return (
        *(getattr(row, name) for name in by),
        *(f"{count:,}" for count in counts),
        f"{dollars(row.cost)}{unknown}",
    )
