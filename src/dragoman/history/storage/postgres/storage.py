"""`PostgresStorage`: a connection pool, one statement per append, one transaction per other write.

When `append` returns, the messages are as durable as a commit on the server: with its defaults,
they survive a crash. Any number of processes and machines may use the same schema at once.

With a pooler in transaction mode (PgBouncer), `prepared=no` is needed unless it supports prepared
statements (PgBouncer 1.21 and later does, if configured). A replica can be read with a store of its
own, which writes nothing as long as only reads are requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import ConfigError
from dragoman.history.storage.backend import Backend, Operations, expect_open
from dragoman.history.storage.postgres import (
    appending,
    checking,
    erasing,
    listing,
    repairing,
    search,
    tables,
)
from dragoman.history.storage.postgres.settings import settings
from dragoman.history.storage.protocol import Erasure, Filter

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.connections import Connections
    from dragoman.history.storage.postgres.link import Link  # noqa: F401 - used in a string below


class PostgresStorage(Backend["Link"]):
    """A backend in a PostgreSQL database, in a separate schema.

    >>> PostgresStorage("postgresql://me:secret@db.example/chats?connections=8").name
    'postgresql://db.example/chats?schema=dragoman'

    The settings may also be in the URL, next to PostgreSQL's own parameters. `timeout` is the
    maximum number of seconds for a connection attempt or a statement.
    """

    is_blocking = False
    _operations = Operations(
        session=tables.session,
        append=appending.append,
        rows=tables.rows,
        row=tables.row,
        count=tables.count,
        rewrite=tables.rewrite,
        clear=tables.clear,
        fork=tables.fork,
        activate=tables.activate,
        keep_windows=tables.keep_windows,
        delete=tables.delete,
        restore=tables.restore,
        set_aside=repairing.set_aside,
        sessions=listing.sessions,
        search=search.search,
        totals=listing.totals,
    )

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        connections: int | None = None,
        timeout: float | None = None,
        prepared: bool | None = None,
    ) -> None:
        self._settings = settings(
            url, schema=schema, connections=connections, timeout=timeout, prepared=prepared
        )
        self._opened: Connections | None = None

    @property
    def name(self) -> str:
        """The kind of backend and its location, without user and password."""
        return self._settings.name

    async def open(self) -> None:
        """Connects, and creates schema and tables if necessary; the first write migrates them."""
        if self._opened is None:
            await self._kept(await _connections().open(self._settings))

    async def _kept(self, opened: Connections) -> None:
        if self._opened is None:
            self._opened = opened
        else:  # another task was faster
            await opened.close()

    async def close(self) -> None:
        """Close all connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    @property
    def _connections(self) -> Connections:
        return expect_open(self._opened, self.name)

    # --- how calls run

    async def _read(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await self._connections.read(work, *arguments)

    async def _read_slowly(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await self._connections.read_slowly(work, *arguments)

    async def _write(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await self._connections.write(work, *arguments)

    async def _write_slowly(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await self._connections.write_slowly(work, *arguments)

    async def _append(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await self._connections.repeat(work, appending.append_again, *arguments)

    # --- many sessions

    async def _index(self, which: Filter) -> None:
        # In batches, so that writers are not blocked, and only if there is something to do, so that
        # a replica can be searched.
        after = 0
        while ids := await self._connections.read_slowly(search.behind, which, after):
            await self._connections.write_slowly(search.catch_up, ids)
            after = ids[-1] - 1  # the last one may have more than a batch

    async def _forget(self, user: str) -> Erasure:
        erased = await self._connections.write_slowly(erasing.erase, user)
        remains = await self._connections.read_slowly(erasing.scrub)  # frees the rows' space
        return msgspec.structs.replace(erased, remains=remains)

    async def verify(self) -> list[str]:
        """Reports problems of the tables, and of the server's durability settings."""
        return await checking.verify(self, self._connections)


def _connections() -> type[Connections]:
    try:
        from dragoman.history.storage.postgres.connections import Connections
    except ImportError:
        pass  # psycopg or its C library is missing
    else:
        return Connections
    msg = "PostgreSQL support requires another package: pip install 'dragoman[postgres]'"
    raise ConfigError(msg)
