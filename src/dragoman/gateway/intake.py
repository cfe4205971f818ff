"""Takes a request's body as it arrives, within limits that are checked before it is parsed."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import NamedTuple

from dragoman.gateway.content_encoding import Decompression, too_large
from dragoman.gateway.large_bodies import ValueCounter

_SLICE = 0.005
"""Seconds after which other requests get their turn."""


class BodyLimits(NamedTuple):
    """Limits of a body."""

    size: int
    """Maximum bytes, compressed and decompressed."""
    ratio: int
    """By how much a compressed body may expand."""
    values: int | None
    """Maximum values if it is JSON; None: nobody parses it."""


class Intake:
    """A body that is arriving."""

    def __init__(self, limits: BodyLimits, encodings: str | None) -> None:
        self._limits = limits
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
        counter, most = self._counter, self._limits.values
        if counter is None or most is None or self.size <= most:
            return
        for each in self._pieces[self._uncounted :]:
            counter.feed(each)
        self._uncounted = len(self._pieces)
