"""Ollama's fields for settings that servers of other dialects also have."""

from __future__ import annotations

from typing import Any

from dragoman.wire.shared_settings import SharedSetting, SharedSettings


def _real(value: Any) -> float | None:
    return value if type(value) in (int, float) else None


HOST_SETTINGS = SharedSettings(
    SharedSetting("options.min_p", "min_p", _real),
    SharedSetting("options.repeat_penalty", "repetition_penalty", _real),
    SharedSetting("options.typical_p", "typical_p", _real),
)
