"""Takes a request's body as it arrives, within limits that are checked before it is parsed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from dragoman.errors import Overloaded
from dragoman.gateway.content_encoding import Decompression, too_large
from dragoman.gateway.large_bodies import LARGE, ValueCounter

_SLICE = 0.005
"""Seconds after which other requests get their turn."""
_SHARE = 2
"""A key may have a half of the memory for bodies."""


class BodyLimits(NamedTuple):
    """Limits of a body."""

    size: int
    """Maximum bytes, compressed and decompressed."""
    ratio: int
    """By how much a compressed body may expand."""
    values: int | None
    """Maximum values if it is JSON; None: nobody parses it."""


class BodyRoom:
    """The bytes of all large bodies that a worker holds, in total and by key."""

    def __init__(self) -> None:
        self.held = 0
        self._by_key: Counter[str] = Counter()

    def take(self, key: str | None, size: int, most: int) -> None:
        """Hold some more bytes; raises if that were more than all may have, or a key half of it."""
        if self.held + size > most or (key and self._by_key[key] + size > most // _SHARE):
            msg = (
                "the gateway holds too many large requests at the moment (the server's limit"
                " `body_memory`); try again soon"
            )
            raise Overloaded(msg, status=503, retry_after=1.0)
        self.held += size
        if key is not None:
            self._by_key[key] += size

    def give(self, key: str | None, size: int) -> None:
        """Hold that many bytes less."""
        self.held -= size
        if key is not None:
            self._by_key[key] -= size
            if not self._by_key[key]:
                del self._by_key[key]


class Intake:
    """A body that is arriving."""

    def __init__(
        self, limits: BodyLimits, encodings: str | None, grown: Callable[[int], None] | None = None
    ) -> None:
        """`grown` is called with the size of a large body, again and again while it arrives."""
        self._limits = limits
        self._grown = grown
        self._decompression = Decompression(encodings or "", limits.size, limits.ratio)
        self._counter = None if limits.values is None else ValueCounter(limits.values)
        self._uncounted = 0
        """How many pieces were not counted yet: few bytes can't have too many values."""
        self._pieces: list[bytes] = []
        self._arrived = 0
        self.size = 0
        """Bytes so far, decompressed."""

    async def take(self, raw: bytes) -> None:
        """Take the next bytes of the connection; raises as soon as a limit is exceeded."""
        self._arrived += len(raw)
        if self._arrived > self._limits.size:
            raise too_large(self._limits.size)
        began = perf_counter()
        for piece in self._decompression.feed(raw):
            self._add(piece)
            if perf_counter() - began > _SLICE:
                await asyncio.sleep(0)
                began = perf_counter()

    def complete(self) -> bytes:
        """The whole body."""
        self._decompression.close()
        return b"".join(self._pieces)

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)
        if self._grown is not None and self.size > LARGE:
            self._grown(self.size)
        counter, most = self._counter, self._limits.values
        if counter is None or most is None or self.size <= most:
            return
        for each in self._pieces[self._uncounted :]:
            counter.feed(each)
        self._uncounted = len(self._pieces)
