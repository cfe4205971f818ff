"""Streams new requests to watching pages. One query every 0.3 seconds serves them all."""

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
_MAX_READERS = 64
_MAX_BATCH = 500
_MAX_QUEUED = 1000
_BUSY = 503


class Reader:
    """The queue of one watching page. When it is full, the oldest rows are dropped."""

    def __init__(self) -> None:
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MAX_QUEUED)
        self._wanted = asyncio.Event()

    def put(self, rows: list[dict[str, Any]]) -> None:
        """Queues new requests."""
        self._rows.extend(rows)
        self._wanted.set()

    async def rows(self, seconds: float) -> list[dict[str, Any]]:
        """Returns the queued requests; waits up to `seconds` if there are none."""
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
    """Polls for new requests while at least one page is watching."""

    def __init__(self, store: Traffic) -> None:
        self._store = store
        self._readers: set[Reader] = set()
        self._polling: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def reader(self) -> AsyncGenerator[Reader]:
        """Registers a watching page until the block ends."""
        if len(self._readers) >= _MAX_READERS:
            msg = "too many pages are watching the traffic; try again later"
            raise Overloaded(msg, status=_BUSY, retry_after=5.0)
        made = Reader()
        self._readers.add(made)
        if self._polling is None or self._polling.done():
            last = await asyncio.to_thread(self._store.read, queries.newest)
            self._polling = asyncio.create_task(self._poll(last))
        try:
            yield made
        finally:
            self._readers.discard(made)
            if not self._readers and self._polling is not None:
                self._polling.cancel()
                self._polling = None

    async def _poll(self, last: int) -> None:
        while self._readers:
            await asyncio.sleep(_PAUSE)
            try:
                rows = await asyncio.to_thread(self._store.read, lambda at: _since(at, last))  # noqa: B023 - it is awaited
            except StoreError:  # the file is busy or gone; the next poll may succeed
                continue
            if rows:
                last = int(rows[-1]["id"])
                for reader in tuple(self._readers):
                    reader.put(rows)


def _since(connection: sqlite3.Connection, last: int) -> list[dict[str, Any]]:
    """Returns the requests after `last`; if there are too many, the latest of them."""
    newest = queries.newest(connection)
    if newest == last:
        return []
    return queries.after(connection, max(last, newest - _MAX_BATCH), _MAX_BATCH)


_live: WeakKeyDictionary[Gateway, Live] = WeakKeyDictionary()


def live_of(gateway: Gateway, store: Traffic) -> Live:
    """Returns the poller of a gateway."""
    found = _live.get(gateway)
    if found is None:
        found = _live[gateway] = Live(store)
    return found
