"""Connections to PostgreSQL: `Link`, a borrowed one, and the pool that it comes from."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from dragoman.errors import StoreError
from dragoman.history.storage.postgres.settings import (
    READ_ONLY,
    Late,
    Lost,
    Refused,
    Settings,
    is_lost,
    qualified,
)
from dragoman.history.storage.shelf import LostReply

# --- `Link`


Connection = psycopg.AsyncConnection[tuple[Any, ...]]


class Link:
    """A borrowed connection. Every statement has a timeout, so that nothing hangs forever."""

    __slots__ = ("_connection", "_seconds", "_settings")

    def __init__(self, connection: Connection, settings: Settings, seconds: float) -> None:
        self._connection = connection
        self._settings = settings
        self._seconds = seconds

    @property
    def name(self) -> str:
        """The name of the store."""
        return self._settings.name

    @property
    def schema(self) -> str:
        """The schema that contains the tables."""
        return self._settings.schema

    @property
    def server(self) -> int:
        """The server's major version."""
        return self._connection.info.server_version // 10000

    async def fetch(
        self, template: str, values: Sequence[Any] = (), *, plan: bool | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a statement; with `plan=False` it is planned for these values."""
        cursor = await self._executed(template, values, plan=plan)
        return await cursor.fetchall()

    async def run(self, template: str, values: Sequence[Any] = ()) -> int:
        """Runs a statement; returns the number of affected rows."""
        return (await self._executed(template, values)).rowcount

    async def begin(self) -> None:
        """Begins a transaction, with timeouts on the server too."""
        limit = max(1, round(self._seconds * 1000))
        await self._executed(
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL statement_timeout = {limit};"
            f"SET LOCAL idle_in_transaction_session_timeout = {limit}",
            (),
            plan=False,
            binary=False,  # several statements at once support text results only
        )

    async def _executed(
        self,
        template: str,
        values: Sequence[Any],
        *,
        plan: bool | None = None,
        binary: bool = True,
    ) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        statement = qualified(template, self._settings.schema)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._connection.execute(
                    statement, values or None, prepare=plan, binary=binary
                )
        except TimeoutError:
            raised: StoreError = Late(self.name, self._seconds)
        except psycopg.Error as error:
            raised = self._explained(error)
        except UnicodeError:
            raised = Refused(self.name, "22021")
        raise raised

    def _explained(self, error: psycopg.Error) -> StoreError:
        if self._connection.closed or is_lost(error.sqlstate):
            return Lost(self.name)
        return Refused(self.name, error.sqlstate or "22000", error.diag.constraint_name)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is in progress."""
        return self._connection.pgconn.transaction_status == TransactionStatus.IDLE

    async def end(self, failed: Exception | None) -> None:
        """Closes the connection before it is returned, if it can't be used again."""
        read_only = isinstance(failed, Refused) and failed.state == READ_ONLY
        if read_only or isinstance(failed, (Lost, LostReply)) or not self.is_idle:
            await self._connection.close()


# --- the pool
#
# A pool with background tasks must be closed before its event loop ends: if left open, it may hang
# the loop, because a task that is connecting treats cancellation as a connection failure. Here
# connections are created by the caller, and idle ones block nothing.


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
