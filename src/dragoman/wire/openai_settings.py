"""Settings that OpenAI's two dialects have alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.settings_table import flag, text, texts
from dragoman.wire.shared_settings import SharedSetting, words

_TIERS = words(auto="auto", default="standard", flex="flex", priority="priority",
               scale="scale", fast="fast")  # fmt: skip
_CALLERS = {"programmatic": "code"}
_CALLER_NAMES = {ours: theirs for theirs, ours in _CALLERS.items()}


def mapping(value: Any) -> Mapping[str, Any] | None:
    """An object."""
    return value if isinstance(value, Mapping) and value else None


def callers(value: Any) -> tuple[str, ...] | None:
    """Who may call a tool."""
    names = texts(list(value)) if isinstance(value, (list, tuple)) else None
    return tuple(_CALLERS.get(name, name) for name in names) if names else None


def callers_wire(names: tuple[str, ...]) -> list[str]:
    """The same, as the wire has it."""
    return [_CALLER_NAMES.get(name, name) for name in names]


SHARED_SETTINGS = (
    SharedSetting("user", "service.user", text),
    SharedSetting("safety_identifier", "service.safety_identifier", text),
    SharedSetting("service_tier", "service.tier", *_TIERS),
    SharedSetting("metadata", "service.labels", mapping),
    SharedSetting("prompt_cache_key", "service.cache_key", text),
    SharedSetting("prompt_cache_retention", "service.cache_retention", text),
    SharedSetting("prompt_cache_options", "service.cache_options", mapping),
    SharedSetting("moderation", "service.moderation", mapping),
    SharedSetting("stream_options.include_obfuscation", "service.obfuscation", flag),
)
TOOL_SETTINGS = (
    SharedSetting("defer_loading", "defer_loading", flag),
    SharedSetting("allowed_callers", "allowed_callers", callers, callers_wire),
    SharedSetting("output_schema", "output_schema", mapping),
)
