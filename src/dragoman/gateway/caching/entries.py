"""Answers as they are kept, and read back with suspicion: others may write to the same Redis."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

import msgspec

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The largest answer that is kept."""
_MAX_HEADERS = 16
_MAGIC = b"dragoman-cache-1\n"
_SLACK = 64 * 1024  # headers, names and lengths
MAX_ENTRY_BYTES = MAX_BODY_BYTES + _SLACK
"""The largest value that is read."""
_HEADERS = frozenset(
    {"content-type", "request-id", "x-request-id", "x-dragoman-losses", "x-dragoman-repairs"}
)
_VALUE = re.compile(r"[ -~]{0,2000}")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An answer: the pieces that the client was sent."""

    key: bytes
    """Of the request; a value that was moved elsewhere is not believed."""
    is_stream: bool
    headers: dict[str, str]
    pieces: list[bytes]
    model: str | None = None
    """The model that was asked."""

    @property
    def size(self) -> int:
        """Bytes of memory, more or less."""
        return 600 + sum(map(len, self.pieces)) + 40 * len(self.pieces)

    def __repr__(self) -> str:
        return f"<cached answer, {len(self.pieces)} pieces>"


class CacheStore(Protocol):
    """Where answers are kept. It never raises: what does not work is a miss."""

    async def find(self, key: bytes, /) -> Entry | None:
        """The answer to a request."""

    async def keep(self, entry: Entry, seconds: float, /) -> None:
        """Keep an answer for some time."""

    async def close(self) -> None:
        """Let go of connections."""


_decoder = msgspec.msgpack.Decoder(Entry)


def encode(entry: Entry) -> bytes:
    """The value that is stored."""
    return _MAGIC + msgspec.msgpack.encode(entry)


def decode(raw: bytes, key: bytes) -> Entry | None:
    """The answer in a stored value; None where it is no answer, or another request's."""
    if len(raw) > MAX_ENTRY_BYTES or not raw.startswith(_MAGIC):
        return None
    try:
        entry = _decoder.decode(memoryview(raw)[len(_MAGIC) :])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    is_whole = entry.is_stream or len(entry.pieces) == 1
    return entry if entry.key == key and is_whole and _are_safe(entry.headers) else None


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of an answer's headers that are given again."""
    return {
        name: value
        for name, value in headers.items()
        if name in _HEADERS and _VALUE.fullmatch(value) is not None
    }


def _are_safe(headers: dict[str, str]) -> bool:
    return len(headers) <= _MAX_HEADERS and kept_headers(headers) == headers
