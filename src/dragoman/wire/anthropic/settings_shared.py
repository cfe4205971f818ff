"""Anthropic's fields for settings that other dialects also have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.settings_table import flag, text, texts
from dragoman.wire.shared_settings import SharedSetting, SharedSettings, tiers

_CODE = "code_execution_20250825"
_COMPACT = "compact_20260112"
_TIERS = tiers(auto="auto", standard_only="standard")
_FAST = ("priority", "performance", "fast")
"""The tiers of other providers that Claude's fast mode is the nearest to."""
_TTLS = (None, "5m", "1h")


def _compact_at(value: Any) -> int | None:
    edits = value.get("edits") if isinstance(value, Mapping) else None
    if not isinstance(edits, (list, tuple)) or len(edits) != 1:
        return None
    trigger = edits[0].get("trigger") if isinstance(edits[0], Mapping) else None
    found = trigger.get("value") if isinstance(trigger, Mapping) else None
    return found if type(found) is int else None


def _compact_at_wire(tokens: int) -> dict[str, Any]:
    return {"edits": [{"type": _COMPACT, "trigger": {"type": "input_tokens", "value": tokens}}]}


def _speed(value: Any) -> str | None:
    """Decode `speed`: what OpenAI calls priority processing, or fast mode."""
    return "priority" if value == "fast" else None


def _speed_wire(tier: str) -> str | None:
    return "fast" if tier in _FAST else None


def callers(value: Any) -> tuple[str, ...] | None:
    """Decode `allowed_callers`; the code execution tool has a dated type."""
    names = texts(list(value)) if isinstance(value, (list, tuple)) else None
    if not names:
        return None
    return tuple("code" if name == _CODE else name for name in names)


def callers_wire(names: tuple[str, ...]) -> list[str]:
    """Encode `allowed_callers`."""
    return [_CODE if name == "code" else name for name in names]


def _cache_options(value: Any) -> dict[str, Any] | None:
    """Decode top-level `cache_control`: caches the whole prompt, `implicit` in OpenAI's terms."""
    if not isinstance(value, Mapping) or value.get("type") != "ephemeral":
        return None
    return {"mode": "implicit", **{key: value[key] for key in value if key != "type"}}


def _cache_options_wire(options: Mapping[str, Any]) -> dict[str, Any] | None:
    left = {key: value for key, value in options.items() if key != "mode"}
    is_supported = options.get("mode", "implicit") == "implicit" and left.get("ttl") in _TTLS
    return {"type": "ephemeral", **left} if is_supported and left.keys() <= {"ttl"} else None


SETTINGS = SharedSettings(
    SharedSetting("metadata.user_id", "service.user", text),
    SharedSetting("metadata.user_id", "service.safety_identifier", text),
    SharedSetting("service_tier", "service.tier", *_TIERS),
    SharedSetting("speed", "service.tier", _speed, _speed_wire),
    SharedSetting("cache_control", "service.cache_options", _cache_options, _cache_options_wire),
    SharedSetting(
        "context_management", "context_management.compact_at", _compact_at, _compact_at_wire
    ),
)
OF_TOOLS = SharedSettings(
    SharedSetting("defer_loading", "defer_loading", flag),
    SharedSetting("allowed_callers", "allowed_callers", callers, callers_wire),
)
