"""Chat's fields for settings that other dialects also have."""

from __future__ import annotations

from typing import Any

from dragoman.wire.openai_settings import SHARED_SETTINGS
from dragoman.wire.settings_table import flag, text, texts
from dragoman.wire.shared_settings import SharedSetting, SharedSettings

_KNOWN = frozenset({"text", "audio"})


def _modalities(value: Any) -> tuple[str, ...] | None:
    return texts(list(value)) if isinstance(value, (list, tuple)) else None


def _modalities_wire(names: tuple[str, ...]) -> list[str] | None:
    return list(names) if _KNOWN.issuperset(names) else None


SETTINGS = SharedSettings(
    *SHARED_SETTINGS,
    SharedSetting("verbosity", "sampling.verbosity", text),
    SharedSetting("modalities", "media.modalities", _modalities, _modalities_wire),
    SharedSetting("audio.voice", "media.voice", text),
    SharedSetting("audio.format", "media.audio_format", text),
)


def _real(value: Any) -> float | None:
    return value if type(value) in (int, float) else None


_FORMATS = {"parsed": True, "hidden": False}

HOST_SETTINGS = SharedSettings(
    SharedSetting("min_p", "min_p", _real),
    SharedSetting("repetition_penalty", "repetition_penalty", _real),
    SharedSetting("repeat_penalty", "repetition_penalty", _real),
    SharedSetting("typical_p", "typical_p", _real),
    SharedSetting("include_reasoning", "thinking.visible", flag),
    SharedSetting(
        "reasoning_format",
        "thinking.visible",
        lambda value: _FORMATS.get(value) if isinstance(value, str) else None,
        lambda is_shown: "parsed" if is_shown else "hidden",
    ),
)
"""Settings of other servers of this dialect that OpenAI's API does not have."""
