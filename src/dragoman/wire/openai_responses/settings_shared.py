"""Responses' fields for settings that other dialects also have."""

from __future__ import annotations

from typing import Any

from dragoman.wire.openai_settings import SHARED_SETTINGS, TOOL_SETTINGS
from dragoman.wire.settings_table import text
from dragoman.wire.shared_settings import NEAREST_TIERS, SharedSetting, SharedSettings

_COMPACTION = {"type": "compaction"}


def _compact_at(value: Any) -> int | None:
    if not isinstance(value, (list, tuple)) or len(value) != 1 or not isinstance(value[0], dict):
        return None
    found = value[0].get("compact_threshold")
    return found if type(found) is int else None


def _compact_at_wire(tokens: int) -> list[Any]:
    return [{**_COMPACTION, "compact_threshold": tokens}]


def _truncate(value: Any) -> bool | None:
    return {"auto": True, "disabled": False}.get(value) if isinstance(value, str) else None


def _tier_wire(tier: str) -> Any:
    return _TIER.write(NEAREST_TIERS.get(tier, tier) if tier != "fast" else tier)


_TIER = next(row for row in SHARED_SETTINGS if row.name == "service.tier")

SETTINGS = SharedSettings(
    _TIER._replace(write=_tier_wire),
    *[row for row in SHARED_SETTINGS if row is not _TIER],
    SharedSetting("text.verbosity", "sampling.verbosity", text),
    SharedSetting(
        "context_management", "context_management.compact_at", _compact_at, _compact_at_wire
    ),
    SharedSetting(
        "truncation",
        "context_management.truncate",
        _truncate,
        lambda is_on: "auto" if is_on else "disabled",
    ),
)
OF_TOOLS = SharedSettings(*TOOL_SETTINGS)
