"""Formats tokens and cost on one line."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.model.usage import Usage


def token_line(usage: Usage | None) -> str:
    """The tokens of an answer."""
    if usage is None:
        return "tokens: not reported by the provider"
    counts = {
        "in": usage.input,
        "read from cache": usage.cache_read,
        "written to cache": usage.cache_write,
        "thinking": usage.thinking,
        "out": usage.output,
    }
    always = {"in", "out"}
    told = [f"{count:,} {name}" for name, count in counts.items() if count or name in always]
    estimated = usage.extras.get("dragoman", {}).get("estimated")
    return f"tokens: {', '.join(told)}{' (estimated)' if estimated else ''}"


def dollars(cost: Decimal | None) -> str:
    """An amount for display; None is unknown.

    >>> dollars(Decimal("0.00234"))
    '$0.0023'
    """
    if cost is None:
        return "unknown"
    return "$0" if not cost else f"${cost:.4f}" if cost >= Decimal("0.0001") else "under $0.0001"


def usage_line(usage: Usage | None, cost: Decimal | None) -> str:
    """Tokens and cost of an answer."""
    return f"{token_line(usage)} · cost: {dollars(cost)}"
