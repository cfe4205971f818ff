"""Cache entries. They are validated when read: other programs may write to the same Redis."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

import msgspec

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Maximum bytes of a cached response."""
_MAX_HEADERS = 16
_MAGIC = b"dragoman-cache-1\n"
_SLACK = 64 * 1024  # headers, names and lengths
MAX_ENTRY_BYTES = MAX_BODY_BYTES + _SLACK
"""Maximum bytes of a stored entry."""
_HEADERS = frozenset(
    {"content-type", "request-id", "x-request-id", "x-dragoman-losses", "x-dragoman-repairs"}
)
_VALUE = re.compile(r"[ -~]{0,2000}")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A cached response: the chunks that were sent to the client."""

    key: bytes
    """The request's key, to detect values stored under another key."""
    is_stream: bool
    headers: dict[str, str]
    pieces: list[bytes]
    model: str | None = None
    """The model that generated it."""

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""
        return 600 + sum(map(len, self.pieces)) + 40 * len(self.pieces)

    def __repr__(self) -> str:
        return f"<cached response, {len(self.pieces)} chunks>"


class CacheStore(Protocol):
    """A store of cached responses. It never raises: a failure counts as a miss."""

    async def find(self, key: bytes, /) -> Entry | None:
        """The cached response to a request, or None."""

    async def keep(self, entry: Entry, seconds: float, /) -> None:
        """Cache a response for some seconds."""

    async def close(self) -> None:
        """Close connections."""


_decoder = msgspec.msgpack.Decoder(Entry)


def encode(entry: Entry) -> bytes:
    """Encode an entry for storage."""
    return _MAGIC + msgspec.msgpack.encode(entry)


def decode(raw: bytes, key: bytes) -> Entry | None:
    """Decode a stored value; None: it is invalid or belongs to another request."""
    if len(raw) > MAX_ENTRY_BYTES or not raw.startswith(_MAGIC):
        return None
    try:
        entry = _decoder.decode(memoryview(raw)[len(_MAGIC) :])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    is_whole = entry.is_stream or len(entry.pieces) == 1
    return entry if entry.key == key and is_whole and _are_safe(entry.headers) else None


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a response that are cached."""
    return {
        name: value
        for name, value in headers.items()
        if name in _HEADERS and _VALUE.fullmatch(value) is not None
    }


def _are_safe(headers: dict[str, str]) -> bool:
    return len(headers) <= _MAX_HEADERS and kept_headers(headers) == headers
