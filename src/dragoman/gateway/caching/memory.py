"""A response cache in the memory of one worker."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from dragoman.gateway.caching.entries import Entry

_MAX_ENTRIES = 10_000


class MemoryCache:
    """A least-recently-used cache, limited in entries and bytes."""

    def __init__(
        self, max_bytes: int, *, max_entries: int = _MAX_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._max_bytes, self._max_entries = max_bytes, max_entries
        self._clock = clock
        # Least recently used first.
        self._kept: OrderedDict[bytes, tuple[float, Entry]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    async def find(self, key: bytes) -> Entry | None:
        """The cached response to a request, if it has not expired."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found[1]

    async def keep(self, entry: Entry, seconds: float) -> None:
        """Cache a response; evicts the least recently used ones if necessary."""
        if entry.size > self._max_bytes:
            return
        self._drop(entry.key)
        self._kept[entry.key] = (self._clock() + seconds, entry)
        self.size += entry.size
        while self.size > self._max_bytes or len(self._kept) > self._max_entries:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self.size -= found[1].size

    def clear(self) -> None:
        """Remove all entries."""
        self._kept.clear()
        self.size = 0

    async def close(self) -> None:
        """Remove all entries."""
        self.clear()
