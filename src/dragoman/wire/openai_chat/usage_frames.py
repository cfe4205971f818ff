"""Streams that pass as they came, without the frame that tells their usage.

A gateway asks for the usage; a client that did not ask must not be surprised by a frame without
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
    """Takes the frame with the usage out of a stream of Chat's, cut anywhere."""

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on: whole frames."""
        return _without(super().feed(data))

    def close(self) -> bytes:
        """What is left when the stream has ended as it should."""
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
    return [frame for frame in frames if not _tells_usage_alone(frame)]


def _tells_usage_alone(frame: bytes) -> bool:
    if _NO_CHOICES.search(frame) is None:
        return False
    try:
        said: Any = _value(frame.strip().removeprefix(b"data:"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("choices") == [] and bool(said.get("usage"))
