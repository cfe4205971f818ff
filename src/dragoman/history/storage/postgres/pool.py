"""Connections that are kept ready, without anything that runs in the background.

A pool with tasks of its own has to be closed before its event loop ends: one that is left open may
hang the loop, as a task that makes a connection takes being cancelled for a failure to connect.
Here a connection is made by who needs it, and what lies ready holds up nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic

import psycopg

from dragoman.history.storage.postgres.link import Connection

_IDLE = 600.0  # seconds after which one that nobody used is not used again
_OLD = 3600.0  # and after which any is: settings of the server may have changed
_PAUSES = (0.05, 0.1, 0.2, 0.5)  # seconds between attempts to connect; then the last one


class Exhausted(Exception):  # noqa: N818 - says what the pool is, and never leaves this package
    """No connection was to be had in time."""


class Closed(Exception):  # noqa: N818 - as above
    """The pool was closed."""


class Pool:
    """Up to a number of connections to one server."""

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], most: int, seconds: float
    ) -> None:
        self._connect = connect
        self._seconds = seconds
        self._free = asyncio.Semaphore(most)
        # With the time of their making and of their last use; the latest is used first.
        self.ready: deque[tuple[Connection, float, float]] = deque()
        self._made: dict[Connection, float] = {}
        self._is_closed = False

    async def take(self) -> Connection:
        """A connection on loan; it may turn out to be broken."""
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
            await self._free.acquire()  # at once
        try:
            return await self._prepared(deadline)
        except BaseException:
            self._free.release()
            raise

    async def give(self, connection: Connection) -> None:
        """Give a connection back; one that is broken is not kept."""
        made = self._made.pop(connection)
        self._free.release()
        if self._is_closed:
            await connection.close()
        else:
            self.keep(connection, made)

    def keep(self, connection: Connection, made: float | None = None) -> None:
        """Have a connection ready."""
        if not connection.closed:
            now = monotonic()
            self.ready.append((connection, now if made is None else made, now))

    async def close(self) -> None:
        """Close all that lie ready; those on loan are closed when they are given back."""
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
        """A new connection; a server that is being started again may need a moment."""
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
