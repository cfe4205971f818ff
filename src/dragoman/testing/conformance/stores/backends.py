"""A location for storages, which the tests open again and again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from dragoman.history.storage.protocol import Storage


class Backend:
    """One location to store things, with nothing in it, which can be opened repeatedly.

    `make` creates storages at that location, not opened yet. `searches` tells whether they support
    search.
    """

    def __init__(self, name: str, make: Callable[[], Storage], *, searches: bool = True) -> None:
        self.name = name
        self.searches = searches
        self._make = make

    def new(self) -> Storage:
        """Another storage at the same location, not opened yet."""
        return self._make()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Storage]:
        """Another storage at the same location, open."""
        storage = self.new()
        await storage.open()
        try:
            yield storage
        finally:
            await storage.close()
