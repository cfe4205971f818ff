"""Settings shared by OpenAI's two dialects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.wire.settings_table import flag, text, texts
from dragoman.wire.shared_settings import SharedSetting

IMAGE_DETAILS = ("auto", "low", "high", "original")
"""OpenAI's values of `detail`, from coarse to fine; older models and most hosts lack the last."""

SAMPLING_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, 20)}
"""The ranges of sampling settings in both dialects."""

_STANDARD = "standard"
_DEFAULT = "default"
_OTHERS_TTLS = ("5m", "1h")  # Anthropic's: OpenAI accepts only its own values
_CALLERS = {"programmatic": "code"}


def mapping(value: Any) -> Mapping[str, Any] | None:
    """The value if it is a non-empty object."""
    return value if isinstance(value, (dict, Mapping)) and value else None


def _tier(value: Any) -> str | None:
    """The service tier; a host's own value (Groq's `on_demand`) is kept."""
    return {_DEFAULT: _STANDARD, _STANDARD: None}.get(value, value) if text(value) else None


def _tier_wire(tier: str) -> str:
    return _DEFAULT if tier == _STANDARD else tier


def _cache_options_wire(options: Mapping[str, Any]) -> Any:
    return None if options.get("ttl") in _OTHERS_TTLS else thaw(options)


def callers(value: Any) -> tuple[str, ...] | None:
    """Which callers may call a tool."""
    names = texts(list(value)) if isinstance(value, (list, tuple)) else None
    return tuple(_CALLERS.get(name, name) for name in names) if names else None


def callers_wire(names: tuple[str, ...]) -> list[str]:
    """The wire form of `callers`."""
    return ["programmatic" if name.startswith("code") else name for name in names]


SHARED_SETTINGS = (
    SharedSetting("user", "service.user", text),
    SharedSetting("safety_identifier", "service.safety_identifier", text),
    SharedSetting("service_tier", "service.tier", _tier, _tier_wire),
    SharedSetting("metadata", "service.labels", mapping),
    SharedSetting("prompt_cache_key", "service.cache_key", text),
    SharedSetting("prompt_cache_retention", "service.cache_retention", text),
    SharedSetting("prompt_cache_options", "service.cache_options", mapping, _cache_options_wire),
    SharedSetting("moderation", "service.moderation", mapping),
    SharedSetting("stream_options.include_obfuscation", "service.obfuscation", flag),
)
TOOL_SETTINGS = (
    SharedSetting("defer_loading", "defer_loading", flag),
    SharedSetting("allowed_callers", "allowed_callers", callers, callers_wire),
    SharedSetting("output_schema", "output_schema", mapping),
)
