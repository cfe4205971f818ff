"""Gemini's fields for settings that other dialects also have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.settings_table import text
from dragoman.wire.shared_settings import SharedSetting, SharedSettings, tiers

_TIERS = tiers(standard="standard", flex="flex", priority="priority")
_VOICE = "generationConfig.speechConfig.voiceConfig.prebuiltVoiceConfig.voiceName"


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) and value else None


def _modalities(value: Any) -> tuple[str, ...] | None:
    is_fine = isinstance(value, (list, tuple)) and all(type(item) is str for item in value)
    return tuple(item.lower() for item in value) if is_fine else None


SETTINGS = SharedSettings(
    SharedSetting("labels", "service.labels", _mapping),
    SharedSetting("serviceTier", "service.tier", *_TIERS),
    SharedSetting(
        "generationConfig.responseModalities",
        "media.modalities",
        _modalities,
        lambda names: [name.upper() for name in names],
    ),
    SharedSetting(_VOICE, "media.voice", text),
)
OF_TOOLS = SharedSettings(SharedSetting("responseJsonSchema", "output_schema", _mapping))
