"""A pool of PostgreSQL connections that retries and translates errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import psycopg
import psycopg.sql
from msgspec.structs import replace
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

from dragoman.errors import InvalidInputError, StoreError
from dragoman.gateway.keys.stores import postgres_tables as sql
from dragoman.history.storage.postgres.failures import AGAIN, Refused, is_lost
from dragoman.history.storage.postgres.pool import Closed, Exhausted, Pool
from dragoman.history.storage.postgres.settings import Settings, qualified, settings

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
T = TypeVar("T")
_ATTEMPTS = 4
_VERSION = 1
_READ_COMMITTED = r"-c default_transaction_isolation=read\ committed"
SCHEMA = "dragoman_keys"


class Passing(Exception):  # noqa: N818 - never leaves this package
    """A transient failure: the connection was lost, or transactions conflicted."""

    def __init__(self, *, is_lost: bool) -> None:
        super().__init__()
        self.is_lost = is_lost


class PostgresLink:
    """Runs statements that are safe to repeat, and retries them if the connection is lost."""

    def __init__(self, url: str) -> None:
        found = settings(url)
        if "schema" not in parse_qs(urlsplit(url).query):
            found = replace(found, schema=SCHEMA)  # separate from that of histories
        self._settings: Settings = found
        self._pool: Pool | None = None

    @property
    def name(self) -> str:
        """The store's location, without user and password."""
        return self._settings.name

    async def open(self) -> None:
        """Connect, and create the tables if needed; calling it again does nothing."""
        if self._pool is not None:
            return
        options = _options(self._settings)

        async def connect() -> Connection:
            connection = await psycopg.AsyncConnection.connect(**options)
            # One type for all integers: otherwise each size needs its own prepared statement.
            connection.adapters.register_dumper(int, Int8Dumper)
            return connection

        self._pool = Pool(connect, self._settings.connections, self._settings.timeout)
        try:
            self._pool.keep(await self._first(connect))
            # At other levels, concurrent writers of a key fail instead of waiting.
            [(level,)] = await self.fetch(sql.ISOLATION)
            if level != "read committed":
                options["options"] = f"{options.get('options', '')} {_READ_COMMITTED}".strip()
                await self._pool.ready.pop()[0].close()
            await self.run(self._prepare)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close all connections; calling it again does nothing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def fetch(self, template: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""

        async def work(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await self.execute(connection, template, values)).fetchall()

        return await self.run(work)

    async def change(self, template: str, values: Sequence[Any] = ()) -> None:
        """Run one statement that returns no rows."""

        async def work(connection: Connection) -> None:
            await self.execute(connection, template, values)

        await self.run(work)

    async def execute(
        self, connection: Connection, template: str, values: Sequence[Any] = ()
    ) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        """Send one statement."""
        statement = qualified(template, self._settings.schema)
        return await connection.execute(statement, values or None, binary=True)

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` on a connection; repeat it if the connection is lost."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._once(work)
            except Passing as error:
                if error.is_lost:
                    await self._drop_idle()
        msg = f"the connection to the store {self.name} was lost repeatedly; try again later"
        raise StoreError(msg)

    async def _drop_idle(self) -> None:
        """Close all idle connections: they are probably lost too."""
        while self._pool is not None and self._pool.ready:
            await self._pool.ready.pop()[0].close()

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        connection = await self._take()
        raised: Exception
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await work(connection)
        except TimeoutError:
            seconds = self._settings.timeout
            raised = StoreError(f"the store {self.name} did not respond within {seconds:g} seconds")
        except psycopg.Error as error:
            raised = self._explained(connection, error)
        except UnicodeError:
            raised = Refused(self.name, "22021")
        finally:
            await self._give_back(connection)
        raise raised

    def _explained(self, connection: Connection, error: psycopg.Error) -> Exception:
        state = error.sqlstate
        if connection.closed or is_lost(state):
            return Passing(is_lost=True)
        if state in AGAIN:
            return Passing(is_lost=False)
        return Refused(self.name, state or "22000")

    async def _take(self) -> Connection:
        reason = "it is closed"
        if self._pool is not None:
            try:
                return await self._pool.take()
            except Exhausted:
                reason = f"no connection within {self._settings.timeout:g} seconds"
            except Closed:
                pass
        msg = f"the store {self.name} can't be reached: {reason}"
        raise StoreError(msg)

    async def _give_back(self, connection: Connection) -> None:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            await connection.close()  # in the middle of a transaction: the server rolls it back
        if self._pool is not None:
            await self._pool.give(connection)
        else:
            await connection.close()

    async def _first(self, connect: Callable[[], Awaitable[Connection]]) -> Connection:
        try:
            return await connect()
        except psycopg.Error as error:
            state = error.sqlstate or ""  # the text may quote the password
        reason = (
            "the user or password is wrong" if state.startswith("28") else "there is no such"
            " database, or no server, or it refuses connections"
        )  # fmt: skip
        msg = f"the store {self.name} can't be reached: {reason}"
        raise StoreError(msg)

    async def _prepare(self, connection: Connection) -> None:
        if not await self._answer(connection, sql.IS_THERE, self._settings.schema):
            await self.execute(connection, sql.BEGIN)
            await self.execute(connection, sql.LOCK)
            await self._make_tables(connection)
            await self.execute(connection, "COMMIT")
        if await self._answer(connection, sql.VERSION) != _VERSION:
            msg = "this key store was written by a newer version of dragoman; upgrade to use it"
            raise StoreError(msg)

    async def _make_tables(self, connection: Connection) -> None:
        schema = self._settings.schema
        if await self._answer(connection, sql.IS_THERE, schema):
            return  # another worker was faster
        # IF NOT EXISTS would need the privilege to create schemas even if it exists.
        if not await self._answer(connection, sql.HAS_SCHEMA, schema):
            name = psycopg.sql.Identifier(schema)
            await connection.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(name))
        for statement in sql.TABLES.split(";"):
            await self.execute(connection, statement)

    async def _answer(self, connection: Connection, template: str, *values: str) -> Any:
        [(answer,)] = await (await self.execute(connection, template, values)).fetchall()
        return answer


def _options(chosen: Settings) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(chosen.url)
    except psycopg.Error:
        given = None  # the message may quote the password
    if given is None:
        msg = "the URL of the PostgreSQL store is invalid: escape special characters with %xx"
        raise InvalidInputError(msg)
    seconds = max(2, round(chosen.timeout))
    return {
        "fallback_application_name": "dragoman",
        "connect_timeout": min(seconds, 10),
        "keepalives_idle": seconds,
        "tcp_user_timeout": seconds * 1000,  # detects peers that vanished silently
        **given,
        "autocommit": True,
        "prepare_threshold": 0 if chosen.prepared else None,
    }
