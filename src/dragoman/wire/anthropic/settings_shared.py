"""Where Anthropic's API has the settings that other APIs have as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.settings_table import flag, text, texts
from dragoman.wire.shared_settings import SharedSetting, SharedSettings, words

_COMPACT = "compact_20260112"
_TIERS = words(auto="auto", standard_only="standard")


def _compact_at(value: Any) -> int | None:
    edits = value.get("edits") if isinstance(value, Mapping) else None
    if not isinstance(edits, (list, tuple)) or len(edits) != 1:
        return None
    trigger = edits[0].get("trigger") if isinstance(edits[0], Mapping) else None
    found = trigger.get("value") if isinstance(trigger, Mapping) else None
    return found if type(found) is int else None


def _compact_at_wire(tokens: int) -> dict[str, Any]:
    return {"edits": [{"type": _COMPACT, "trigger": {"type": "input_tokens", "value": tokens}}]}


def callers(value: Any) -> tuple[str, ...] | None:
    """Who may call a tool; code is run by a tool whose name has a date."""
    names = texts(list(value)) if isinstance(value, (list, tuple)) else None
    if not names:
        return None
    return tuple("code" if name.startswith("code_execution") else name for name in names)


def callers_wire(names: tuple[str, ...]) -> list[str]:
    """The same, as the wire has it."""
    return ["code_execution_20250825" if name == "code" else name for name in names]


SETTINGS = SharedSettings(
    SharedSetting("metadata.user_id", "service.user", text),
    SharedSetting("metadata.user_id", "service.safety_identifier", text),
    SharedSetting("service_tier", "service.tier", *_TIERS),
    SharedSetting(
        "context_management", "context_management.compact_at", _compact_at, _compact_at_wire
    ),
)
OF_TOOLS = SharedSettings(
    SharedSetting("defer_loading", "defer_loading", flag),
    SharedSetting("allowed_callers", "allowed_callers", callers, callers_wire),
)
