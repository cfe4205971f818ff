"""New requests for those who watch: one look at the file for all of them, a few times a second."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from dragoman.errors import Overloaded, StoreError
from dragoman.gateway.page import traffic_queries as queries
from dragoman.gateway.page.traffic_store import Traffic
from dragoman.gateway.state import Gateway

_PAUSE = 0.3  # seconds
_MOST_READERS = 64
_MOST_AT_ONCE = 500
_MOST_WAITING = 1000
_BUSY = 503


class Reader:
    """One who watches. What it does not take in time is dropped, the oldest first."""

    def __init__(self) -> None:
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MOST_WAITING)
        self._wanted = asyncio.Event()

    def put(self, rows: list[dict[str, Any]]) -> None:
        """New requests."""
        self._rows.extend(rows)
        self._wanted.set()

    async def rows(self, seconds: float) -> list[dict[str, Any]]:
        """What came since, waited for so long."""
        if not self._rows:
            try:
                async with asyncio.timeout(seconds):
                    await self._wanted.wait()
            except TimeoutError:
                return []
        self._wanted.clear()
        found = list(self._rows)
        self._rows.clear()
        return found


class Live:
    """Looks for new requests as long as somebody watches."""

    def __init__(self, store: Traffic) -> None:
        self._store = store
        self._readers: set[Reader] = set()
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def reader(self) -> AsyncGenerator[Reader]:
        """One more who watches, until the block ends."""
        if len(self._readers) >= _MOST_READERS:
            msg = "too many watch the traffic at once"
            raise Overloaded(msg, status=_BUSY, retry_after=5.0)
        made = Reader()
        self._readers.add(made)
        if self._looking is None or self._looking.done():
            last = await asyncio.to_thread(self._store.read, queries.newest)
            self._looking = asyncio.create_task(self._look(last))
        try:
            yield made
        finally:
            self._readers.discard(made)
            if not self._readers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look(self, last: int) -> None:
        while self._readers:
            await asyncio.sleep(_PAUSE)
            try:
                rows = await asyncio.to_thread(self._store.read, lambda at: _since(at, last))  # noqa: B023 - it is awaited
            except StoreError:  # the file is busy or gone; the next look may find it again
                continue
            if rows:
                last = int(rows[-1]["id"])
                for reader in tuple(self._readers):
                    reader.put(rows)


def _since(connection: sqlite3.Connection, last: int) -> list[dict[str, Any]]:
    """What is new; of very many, the latest."""
    newest = queries.newest(connection)
    if newest == last:
        return []
    return queries.after(connection, max(last, newest - _MOST_AT_ONCE), _MOST_AT_ONCE)


_live: WeakKeyDictionary[Gateway, Live] = WeakKeyDictionary()


def live_of(gateway: Gateway, store: Traffic) -> Live:
    """What looks for new requests in a gateway."""
    found = _live.get(gateway)
    if found is None:
        found = _live[gateway] = Live(store)
    return found
