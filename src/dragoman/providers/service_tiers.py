"""The service tier by which a request is billed, unless standard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.model.responses import Response
from dragoman.model.usage import Usage

_STANDARD = frozenset(
    {"", "1", "auto", "default", "standard", "standard_only", "on_demand", "unspecified",
     "service_tier_unspecified", "traffic_type_unspecified", "none"}
)  # fmt: skip
"""The providers' names of the standard tier."""
_FIELDS = ("service_tier", "serviceTier", "trafficType", "speed")
_ALL_FIELDS = frozenset({*_FIELDS, "inference_geo"})
_SAME = {"on_demand_priority": "priority", "on_demand_flex": "flex"}  # Vertex AI's
_ANYWHERE = frozenset({"", "global", "not_available"})
"""Values of Anthropic's `inference_geo` that are billed at the list price."""


def response_tier(response: Response) -> str | None:
    """The tier of a response: `flex`, `priority`, `batch`, …; None for the standard tier.

    >>> response_tier(Response(extras={"openai-chat": {"service_tier": "flex"}}))
    'flex'
    """
    found = _first(_tiers(response.extras)) if response.extras else None
    if found is None and response.usage is not None:
        found = usage_tier(response.usage)
    return found


def usage_tier(usage: Usage) -> str | None:
    """Like `response_tier`, for usage that includes the tier."""
    return _first(_tiers(usage.extras)) if usage.extras else None


def with_tier(usage: Usage, tier: str, dialect: str) -> Usage:
    """The usage with its tier recorded."""
    fields = usage.extras.get(dialect)
    known = fields if isinstance(fields, Mapping) else {}
    return usage.replace(extras={**usage.extras, dialect: {**known, "service_tier": tier}})


def _tiers(extras: Mapping[str, Any]) -> Iterator[str]:
    for fields in extras.values():
        if not isinstance(fields, Mapping) or fields.keys().isdisjoint(_ALL_FIELDS):
            continue
        for name in _FIELDS:
            value = fields.get(name)
            if isinstance(value, str) and value.lower() not in _STANDARD:
                yield _SAME.get(value.lower(), value.lower())
        geo = fields.get("inference_geo")
        if isinstance(geo, str) and geo not in _ANYWHERE:
            yield geo


def _first(tiers: Iterator[str]) -> str | None:
    return next(tiers, None)
