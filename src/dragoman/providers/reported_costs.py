"""What a request cost, where the provider itself says so beside the token counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from dragoman.model.usage import Usage

REPORTING = frozenset({"openrouter", "perplexity"})
"""Those that always do: no list says it better, as hosts, searches and discounts differ."""
_TICKS = 10_000_000_000  # xAI's, in a dollar
_MOST = 10**15


def reported_cost(usage: Usage | None, provider: str | None) -> Decimal | None:
    """The cost in US dollars that came along with the usage; None where none did."""
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
    # With one's own key at the host, its bill comes on top of OpenRouter's.
    deeper = details.get("cost_details")
    there = _number(deeper.get("upstream_inference_cost")) if isinstance(deeper, Mapping) else None
    return None if there is None else cost + there


def _perplexity(details: Mapping[str, Any]) -> Decimal | None:
    cost = details.get("cost")
    return _number(cost.get("total_cost")) if isinstance(cost, Mapping) else None


def _xai(details: Mapping[str, Any]) -> Decimal | None:
    ticks = _number(details.get("cost_in_usd_ticks"))
    return None if ticks is None else ticks / _TICKS


def _number(value: Any) -> Decimal | None:
    if type(value) is not int and not (type(value) is float and isfinite(value)):
        return None
    return Decimal(str(value)) if 0 <= value < _MOST else None


_READERS: dict[str, Callable[[Mapping[str, Any]], Decimal | None]] = {
    "openrouter": _openrouter,
    "perplexity": _perplexity,
    "xai": _xai,
}
