"""Records a response for the cache while it is sent to the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dragoman.gateway.caching.entries import MAX_BODY_BYTES, Entry, kept_headers

if TYPE_CHECKING:
    from dragoman.gateway.upstream_task import Sink

_OK = 200


class Recording:
    """A sink that forwards a response and records it up to `MAX_BODY_BYTES`."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.has_begun = sink.has_begun
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_stream = self._is_over = False
        self.is_too_large = False

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a complete response."""
        try:
            await self.sink.respond(status, headers, body)
        finally:
            self.has_begun = self.sink.has_begun
        if status == _OK:
            self._headers = kept_headers(headers)
            self._note(body)
            self._is_over = True

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Start a streamed response by sending its headers."""
        self._headers, self._is_stream = kept_headers(headers), True
        try:
            await self.sink.begin(headers)
        finally:
            self.has_begun = self.sink.has_begun

    async def write(self, data: bytes) -> None:
        """Send a chunk."""
        self._note(data)
        await self.sink.write(data)

    async def end(self, data: bytes = b"") -> None:
        """Send the last chunk."""
        self._note(data)
        await self.sink.end(data)
        self._is_over = True

    def _note(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_BODY_BYTES:
            self.is_too_large = True
            self._pieces.clear()
        else:
            self._pieces.append(data)

    def entry(self, key: bytes, model: str | None) -> Entry | None:
        """The recorded response as a cache entry; None: it is incomplete or too large."""
        if not self._is_over or self.is_too_large:
            return None
        return Entry(key, self._is_stream, self._headers, _joined(self._pieces), model)


def _joined(pieces: list[bytes]) -> list[bytes]:
    """The non-empty chunks; a complete response always has one, even if it is empty."""
    return [piece for piece in pieces if piece] or [b""]
