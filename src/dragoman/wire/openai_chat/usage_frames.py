"""Removes the usage frame from streams that are otherwise passed through unchanged.

A gateway always requests the usage; a client that did not must not receive a frame without
choices (W9).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.wire.whole_frames import WholeFrames

_value = msgspec.json.Decoder().decode
_NO_CHOICES = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_FRAME = re.compile(rb"\r?\n\r?\n")


class WithoutUsage(WholeFrames):
    """Removes the usage frame from a Chat stream, given in arbitrary chunks of bytes."""

    def feed(self, data: bytes) -> bytes:
        """The complete frames to pass on."""
        return _without(super().feed(data))

    def close(self) -> bytes:
        """The rest of the stream after a regular end."""
        return _without(super().close())


def _without(data: bytes) -> bytes:
    return data if _NO_CHOICES.search(data) is None else b"".join(_kept(data))


def _kept(data: bytes) -> list[bytes]:
    frames: list[bytes] = []
    start = 0
    for found in _FRAME.finditer(data):
        frames.append(data[start : found.end()])
        start = found.end()
    frames.append(data[start:])
    return [frame for frame in frames if not _is_usage_frame(frame)]


def _is_usage_frame(frame: bytes) -> bool:
    if _NO_CHOICES.search(frame) is None:
        return False
    try:
        chunk: Any = _value(frame.strip().removeprefix(b"data:"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(chunk, dict) and chunk.get("choices") == [] and bool(chunk.get("usage"))
