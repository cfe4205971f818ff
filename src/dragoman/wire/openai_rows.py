"""Rows that OpenAI's two dialects share: the settings of the service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.wire.rows import FLAG, Row, Value

_OTHERS_TTLS = ("5m", "1h")  # Anthropic's: OpenAI accepts only its own values


def _write_cache_options(options: Mapping[str, Any]) -> Any:
    return None if options.get("ttl") in _OTHERS_TTLS else thaw(options)


MAPPING = Value("isinstance(v, dict) and len(v) > 0", None, thaw, "an object", exact=True)
TIER = Value(
    "type(v) is str and v not in ('', 'standard')",
    lambda tier: "standard" if tier == "default" else tier,
    lambda tier: "default" if tier == "standard" else tier,
    "a tier",
)
"""A host's own value (Groq's `on_demand`) is kept."""
_row = partial(Row, strict=True)
SERVICE = (
    _row("user", "service.user"),
    _row("safety_identifier", "service.safety_identifier"),
    _row("service_tier", "service.tier", TIER),
    _row("metadata", "service.labels", MAPPING),
    _row("prompt_cache_key", "service.cache_key"),
    _row("prompt_cache_retention", "service.cache_retention"),
    _row("prompt_cache_options", "service.cache_options",
         MAPPING._replace(write=_write_cache_options, exact=False)),
    _row("moderation", "service.moderation", MAPPING),
    _row("stream_options.include_obfuscation", "service.obfuscation", FLAG),
)  # fmt: skip
