"""Settings shared by OpenAI's two dialects."""

from __future__ import annotations

from typing import Any

from dragoman.wire.settings_table import texts

IMAGE_DETAILS = ("auto", "low", "high", "original")
"""OpenAI's values of `detail`, from coarse to fine; older models and most hosts lack the last."""

SAMPLING_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, 20)}
"""The ranges of sampling settings in both dialects."""

_CALLERS = {"programmatic": "code"}


def callers(value: Any) -> tuple[str, ...] | None:
    """Which callers may call a tool."""
    names = texts(list(value)) if isinstance(value, (list, tuple)) else None
    return tuple(_CALLERS.get(name, name) for name in names) if names else None


def callers_wire(names: tuple[str, ...]) -> list[str]:
    """The wire form of `callers`."""
    return ["programmatic" if name.startswith("code") else name for name in names]
