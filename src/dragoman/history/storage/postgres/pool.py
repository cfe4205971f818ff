"""A connection pool without background tasks.

A pool with background tasks must be closed before its event loop ends: if left open, it may hang
the loop, because a task that is connecting treats cancellation as a connection failure. Here
connections are created by the caller, and idle ones block nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic

import psycopg

from dragoman.history.storage.postgres.link import Connection

_IDLE = 600.0  # seconds after which an idle connection is not used again
_OLD = 3600.0  # maximum age in seconds, as settings of the server may have changed
_PAUSES = (0.05, 0.1, 0.2, 0.5)  # seconds between connection attempts; the last one repeats


class Exhausted(Exception):  # noqa: N818 - internal to this package
    """No connection was available in time."""


class Closed(Exception):  # noqa: N818 - as above
    """The pool was closed."""


class Pool:
    """Up to a maximum number of connections to one server."""

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], most: int, seconds: float
    ) -> None:
        self._connect = connect
        self._seconds = seconds
        self._free = asyncio.Semaphore(most)
        # With the times of creation and of last use; the most recently used comes first.
        self.ready: deque[tuple[Connection, float, float]] = deque()
        self._made: dict[Connection, float] = {}
        self._is_closed = False

    async def take(self) -> Connection:
        """Borrows a connection; it may turn out to be broken."""
        if self._is_closed:
            raise Closed
        deadline = monotonic() + self._seconds
        if self._free.locked():
            try:
                async with asyncio.timeout(self._seconds):
                    await self._free.acquire()
            except TimeoutError:
                raise Exhausted from None
        else:
            await self._free.acquire()  # returns immediately
        try:
            return await self._prepared(deadline)
        except BaseException:
            self._free.release()
            raise

    async def give(self, connection: Connection) -> None:
        """Returns a connection; a broken one is dropped."""
        made = self._made.pop(connection)
        self._free.release()
        if self._is_closed:
            await connection.close()
        else:
            self.keep(connection, made)

    def keep(self, connection: Connection, made: float | None = None) -> None:
        """Adds an idle connection."""
        if not connection.closed:
            now = monotonic()
            self.ready.append((connection, now if made is None else made, now))

    async def close(self) -> None:
        """Closes all idle connections; borrowed ones are closed when returned."""
        self._is_closed = True
        while self.ready:
            await self.ready.pop()[0].close()

    async def _prepared(self, deadline: float) -> Connection:
        while self.ready:
            connection, made, used = self.ready.pop()
            now = monotonic()
            if connection.closed:
                continue
            if now - used < _IDLE and now - made < _OLD:
                self._made[connection] = made
                return connection
            await connection.close()
        connection = await self._connected(deadline)
        self._made[connection] = monotonic()
        return connection

    async def _connected(self, deadline: float) -> Connection:
        """Creates a connection; retries, because a restarting server may need a moment."""
        attempts = 0
        while True:
            try:
                return await self._connect()
            except psycopg.Error:
                pause = _PAUSES[min(attempts, len(_PAUSES) - 1)]
            if self._is_closed:
                raise Closed
            if monotonic() + pause > deadline:
                raise Exhausted
            attempts += 1
            await asyncio.sleep(pause)
