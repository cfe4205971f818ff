"""Removes the usage frame from streams that are otherwise passed through unchanged.

A gateway always requests the usage; a client that did not must not receive a frame without
choices (W9).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.wire.framing import CR
from dragoman.wire.whole_frames import WholeFrames

_value = msgspec.json.Decoder().decode
_USAGE = b'"usage"'
_EMPTY_LIST = re.compile(rb"\[\s*\]")  # as the choices are; begins with one byte, so it is fast
_FRAME = re.compile(rb"\r?\n\r?\n")
_ENDS = (b"\n\n", b"\n\r\n")


class WithoutUsage(WholeFrames):
    """Removes the usage frame from a Chat stream, given in arbitrary chunks of bytes."""

    def feed(self, data: bytes) -> bytes:
        """The complete frames to pass on."""
        return _without(super().feed(data))

    def close(self) -> bytes:
        """The rest of the stream after a regular end."""
        return _without(super().close())


def _without(data: bytes) -> bytes:
    """The frames without usage frames. Only frames that look like one are read."""
    if _USAGE not in data:
        return data
    kept: list[bytes] = []
    done = 0
    for found in _EMPTY_LIST.finditer(data):
        if found.start() < done:
            continue
        ends = [end for end in _ENDS if CR not in end or CR in data]
        before = [(data.rfind(end, done, found.start()), len(end)) for end in ends]
        start = max([at + size for at, size in before if at >= 0], default=done)
        ending = _FRAME.search(data, found.end())
        stop = len(data) if ending is None else ending.end()
        if _is_usage_frame(data[start:stop]):
            kept.append(data[done:start])
            done = stop
    return b"".join((*kept, data[done:])) if done else data


def _is_usage_frame(frame: bytes) -> bool:
    try:
        chunk: Any = _value(frame.strip().removeprefix(b"data:"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(chunk, dict) and chunk.get("choices") == [] and bool(chunk.get("usage"))
