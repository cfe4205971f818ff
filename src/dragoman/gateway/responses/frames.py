"""Parses server-sent events of the gateway's own encoders: one data line per frame."""

from __future__ import annotations

import re
from typing import Final

_DATA: Final = re.compile(rb"(?:\A|\n)data: ?([^\r\n]*)")
_NUMBER: Final = re.compile(r'"sequence_number":\s*(\d{1,15})')
_TYPE: Final = re.compile(r'\{"type":\s*"([a-z_.]{1,80})"')
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


def data_in(frames: bytes) -> list[str]:
    """Returns the data of each frame."""
    return [found.decode() for found in _DATA.findall(frames)]


def number_of(data: str) -> int:
    """Returns the sequence number of an event; -1 if it has none."""
    found = _NUMBER.search(data)
    return -1 if found is None else int(found[1])


def type_of(data: str) -> str:
    """Returns the type of an event, which our encoders write first."""
    found = _TYPE.match(data)
    return "" if found is None else found[1]


def is_end(data: str) -> bool:
    """Whether an event ends its stream."""
    return type_of(data) in _ENDS


def frame_of(data: str) -> bytes:
    """Returns an event as a frame."""
    return f"event: {type_of(data)}\ndata: {data}\n\n".encode()
