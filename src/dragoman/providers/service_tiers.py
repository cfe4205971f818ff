"""The service tier by which a request is billed, unless standard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.responses import Response
from dragoman.model.usage import Usage

_STANDARD = frozenset(
    {"", "1", "auto", "default", "standard", "standard_only", "on_demand", "unspecified",
     "service_tier_unspecified", "traffic_type_unspecified", "none"}
)  # fmt: skip
"""The providers' names of the standard tier."""
_PLACE = "inference_geo"
_ORDER = ("service_tier", "serviceTier", "trafficType", "speed", _PLACE)
_ALL_FIELDS = frozenset(_ORDER)
_SAME = {"on_demand_priority": "priority", "on_demand_flex": "flex"}  # Vertex AI's
_ANYWHERE = frozenset({"", "global", "not_available"})
"""Values of Anthropic's `inference_geo` that are billed at the list price."""


def response_tier(response: Response) -> str | None:
    """The tier of a response: `flex`, `priority`, `batch`, …; None for the standard tier.

    >>> response_tier(Response(extras={"openai-chat": {"service_tier": "flex"}}))
    'flex'
    """
    found = _tier(response.extras) if response.extras else None
    if found is None and response.usage is not None:
        found = usage_tier(response.usage)
    return found


def usage_tier(usage: Usage) -> str | None:
    """Like `response_tier`, for usage that includes the tier."""
    return _tier(usage.extras) if usage.extras else None


def with_tier(usage: Usage, tier: str, dialect: str) -> Usage:
    """The usage with its tier recorded."""
    fields = usage.extras.get(dialect)
    known = fields if isinstance(fields, Mapping) else {}
    return usage.replace(extras={**usage.extras, dialect: {**known, "service_tier": tier}})


def _tier(extras: Mapping[str, Any]) -> str | None:
    for fields in extras.values():
        if isinstance(fields, Mapping):
            for name in sorted(_ALL_FIELDS.intersection(fields), key=_ORDER.index):
                found = _billed(name, fields[name])
                if found is not None:
                    return found
    return None


def _billed(name: str, value: object) -> str | None:
    if not isinstance(value, str):
        return None
    if name == _PLACE:
        return None if value in _ANYWHERE else value
    lower = value.lower()
    return None if lower in _STANDARD else _SAME.get(lower, lower)
