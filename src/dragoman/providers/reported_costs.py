"""The cost of a request as reported by the provider together with the usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from dragoman.model.usage import Usage

REPORTING = frozenset({"openrouter", "perplexity"})
"""Providers that always report it; list prices are less accurate (hosts, searches, discounts)."""
_TICKS = 10_000_000_000  # xAI's ticks per dollar
_MAX_AMOUNT = 10**15


def may_report(provider: str) -> bool:
    """Whether some of a provider's usage has its cost."""
    return provider in _READERS


def reported_cost(usage: Usage | None, provider: str | None) -> Decimal | None:
    """The reported cost in US dollars; None if there is none."""
    reader = _READERS.get(provider or "")
    if reader is None or usage is None:
        return None
    for details in usage.extras.values():
        found = reader(details) if isinstance(details, Mapping) else None
        if found is not None:
            return found
    return None


def _openrouter(details: Mapping[str, Any]) -> Decimal | None:
    cost = _number(details.get("cost"))
    if cost is None or not details.get("is_byok"):
        return cost
    # With the user's own key at the host, the host's bill comes on top of OpenRouter's.
    deeper = details.get("cost_details")
    there = _number(deeper.get("upstream_inference_cost")) if isinstance(deeper, Mapping) else None
    return None if there is None else cost + there


def _perplexity(details: Mapping[str, Any]) -> Decimal | None:
    cost = details.get("cost")
    return _number(cost.get("total_cost")) if isinstance(cost, Mapping) else None


def _xai(details: Mapping[str, Any]) -> Decimal | None:
    ticks = _number(details.get("cost_in_usd_ticks"))
    return None if ticks is None else ticks / _TICKS


def _test(details: Mapping[str, Any]) -> Decimal | None:
    return _number(details.get("cost"))


def _number(value: Any) -> Decimal | None:
    if type(value) is not int and not (type(value) is float and isfinite(value)):
        return None
    return Decimal(str(value)) if 0 <= value < _MAX_AMOUNT else None


_READERS: dict[str, Callable[[Mapping[str, Any]], Decimal | None]] = {
    "openrouter": _openrouter,
    "perplexity": _perplexity,
    "test": _test,  # `TestModel(cost=…)`
    "xai": _xai,
}
