"""The connection pool, and recovery from broken connections.

A read is retried. A write whose connection broke raises `LostReply`: the ledger finds out whether
it was done, by its stamp, and sends it again if not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper

from dragoman.errors import InvalidInputError, StoreError
from dragoman.history.storage.postgres import schema
from dragoman.history.storage.postgres.pool import Closed, Connection, Exhausted, Link, Pool
from dragoman.history.storage.postgres.settings import (
    AGAIN,
    NOTHING,
    UNKNOWN,
    Late,
    Lost,
    Refused,
    Settings,
    Unreachable,
)
from dragoman.history.storage.shelf import LostReply

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Link, P], Awaitable[T]]
_ATTEMPTS = 3
_SLOW = 20  # factor for the timeout of operations over many sessions
_CONNECT = 10  # seconds; another attempt is better than a long wait
# At other levels, concurrent writers to a session fail instead of waiting for each other.
_READ_COMMITTED = r"-c default_transaction_isolation=read\ committed"


class Connections:
    """An open pool of connections to one server."""

    def __init__(self, settings: Settings, pool: Pool) -> None:
        self._settings = settings
        self._pool = pool
        # After a lost reply, the next write takes a connection that was tested.
        self._is_doubtful = False

    @classmethod
    async def open(cls, settings: Settings) -> Connections:
        """Connects, and creates or migrates the tables if necessary."""
        options = _options(settings)
        first = await _connected(settings, options)
        try:
            link = Link(first, settings, settings.timeout * _SLOW)
            if await schema.applied(link) < schema.VERSION:
                await _transaction(link, schema.migrate, ())
            [(level,)] = await link.fetch("SELECT current_setting('default_transaction_isolation')")
        except BaseException:
            await first.close()
            raise
        if level != "read committed":
            options["options"] = f"{options.get('options', '')} {_READ_COMMITTED}".strip()
            await first.close()

        async def connect() -> Connection:
            return await psycopg.AsyncConnection.connect(**options)

        pool = Pool(connect, settings.connections, settings.timeout)
        pool.keep(first)
        return cls(settings, pool)

    async def close(self) -> None:
        """Closes all idle connections; those in use are closed when returned."""
        await self._pool.close()

    # --- three kinds of operations

    async def read(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Runs a read; retries it if the connection breaks."""
        return await self._read(work, arguments, self._settings.timeout)

    async def read_slowly(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Like `read`, with a long timeout."""
        return await self._read(work, arguments, self._settings.timeout * _SLOW)

    async def send(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Runs a write of one statement."""
        return await self._write(_statement, work, arguments, self._settings.timeout)

    async def write(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Runs a function in a transaction."""
        return await self._write(_transaction, work, arguments, self._settings.timeout)

    async def write_slowly(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Like `write`, with a long timeout."""
        return await self._write(_transaction, work, arguments, self._settings.timeout * _SLOW)

    async def _read(
        self, work: Callable[..., Awaitable[T]], arguments: tuple[Any, ...], seconds: float
    ) -> T:
        failed: StoreError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return await self._once(work, arguments, seconds, failed)
            except Lost as error:
                failed = error
        raise failed or Lost(self.name)

    async def _write(
        self,
        way: Callable[..., Awaitable[T]],
        work: Callable[..., Awaitable[T]],
        arguments: tuple[Any, ...],
        seconds: float,
    ) -> T:
        failed: StoreError | None = Lost(self.name) if self._is_doubtful else None
        for _ in range(_ATTEMPTS):
            try:
                made = await self._once(way, (work, arguments), seconds, failed)
            except LostReply:
                self._is_doubtful = True
                raise
            except (Lost, Refused) as error:  # nothing was written
                if isinstance(error, Refused) and error.state not in AGAIN:
                    raise
                failed = error
            else:
                self._is_doubtful = False
                return made
        raise failed or Lost(self.name)

    # --- borrowing a connection

    async def _once(
        self,
        work: Callable[..., Awaitable[T]],
        arguments: tuple[Any, ...],
        seconds: float,
        failed: StoreError | None = None,
    ) -> T:
        # After a restart of the server, all idle connections are broken. The first attempt takes
        # any connection, for speed; later ones test it before use.
        connection = await (self._taken() if failed is None else self._checked())
        link = Link(connection, self._settings, seconds)
        problem: StoreError | None = None
        try:
            return await work(link, *arguments)
        except StoreError as error:
            problem = error
            raise
        finally:
            await link.end(problem)
            await self._pool.give(connection)

    async def _taken(self) -> Connection:
        try:
            return await self._pool.take()
        except Exhausted:
            reason = (
                f"no connection within {self._settings.timeout:g} seconds; the server does not"
                f" respond, or all {self._settings.connections} connections are in use"
            )
        except Closed:
            reason = "it is closed"
        raise Unreachable(self.name, reason)

    async def _checked(self) -> Connection:
        deadline = monotonic() + self._settings.timeout
        while monotonic() < deadline:
            connection = await self._taken()
            link = Link(connection, self._settings, self._settings.timeout)
            works = False
            try:
                await link.fetch("SELECT 1")
                works = True
            except (Lost, Late):
                await connection.close()
            finally:
                if not works:
                    await self._pool.give(connection)
            if works:
                return connection
        raise Unreachable(self.name, "new connections break immediately")

    @property
    def name(self) -> str:
        """The name of the store."""
        return self._settings.name


async def _transaction(link: Link, work: Callable[..., Awaitable[T]], arguments: Any) -> T:
    await link.begin()
    try:
        result = await work(link, *arguments)
    except Lost:
        raise
    except StoreError:
        with suppress(StoreError):
            await link.run("ROLLBACK")
        raise
    await _statement(link, Link.run, ("COMMIT",))
    return result


async def _statement(link: Link, work: Callable[..., Awaitable[T]], arguments: Any) -> T:
    """Runs what is done when its answer arrives, and perhaps if it does not."""
    try:
        return await work(link, *arguments)
    except Lost:
        lost = LostReply(str(Lost(link.name, UNKNOWN)))
    except Late as error:
        outcome = NOTHING if link.is_idle else UNKNOWN  # the ledger looks whether it was done
        lost = LostReply(str(Late(link.name, error.seconds, outcome)), is_repeatable=False)
    raise lost


class _Context:
    """The adapters for new connections, in the form psycopg expects."""

    connection = None

    def __init__(self, adapters: AdaptersMap) -> None:
        self.adapters = adapters


async def _connected(settings: Settings, options: dict[str, Any]) -> Connection:
    try:
        return await psycopg.AsyncConnection.connect(**options)
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
    raise Unreachable(settings.name, _without_secrets(reason, settings.url, options))


def _without_secrets(reason: str, url: str, options: dict[str, Any]) -> str:
    """The library's message, unless it may quote an unescaped password (`p@ss`)."""
    if urlsplit(url).netloc.count("@") > 1:
        return "the URL has more than one @; write @ in a user or password as %40"
    password = options.get("password")
    return reason.replace(password, "***") if password else reason


def _options(settings: Settings) -> dict[str, Any]:
    """The connection options; parameters in the URL take precedence."""
    try:
        given = conninfo_to_dict(settings.url)
    except psycopg.Error:
        given = None  # psycopg's message may quote the password
    if given is None:
        msg = "the URL of a PostgreSQL store is invalid; escape special characters as %xx"
        raise InvalidInputError(msg)
    seconds = max(2, round(settings.timeout))
    adapters = AdaptersMap(psycopg.adapters)
    # One type for all integers: otherwise every size would be another prepared statement.
    adapters.register_dumper(int, Int8Dumper)
    return {
        "fallback_application_name": "dragoman",
        "connect_timeout": min(seconds, _CONNECT),
        # Detects a peer that vanished silently.
        "keepalives_idle": seconds,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": seconds * 1000,
        **given,
        "autocommit": True,
        "prepare_threshold": 0 if settings.prepared else None,
        "context": _Context(adapters),
    }
