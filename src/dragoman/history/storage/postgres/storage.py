"""The backend: a pool of connections, one statement per append, one transaction per other write.

When `append` returns, the messages are as safe as the server makes a commit: with its defaults
they survive its crash. Any number of processes and machines may use the same schema at once.

Behind a pooler that hands out connections per transaction (PgBouncer), `prepared=no` is needed
unless it keeps track of prepared statements (PgBouncer 1.21 and later does, where told to). A
replica can be read by a store of its own: it writes nothing as long as only reads are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.errors import ConfigError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.postgres import appending, erasing, listing, search, tables
from dragoman.history.storage.postgres.settings import settings
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Appended,
    Entry,
    Erasure,
    Filter,
    Group,
    Hit,
    Row,
    Session,
    Total,
    expect_query,
)
from dragoman.model.value import expect

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.connections import Connections


class PostgresStorage:
    """A backend in a PostgreSQL database, in a schema of its own.

    >>> PostgresStorage("postgresql://me:secret@db.example/chats?connections=8").name
    'postgresql://db.example/chats?schema=dragoman'

    The settings may be in the URL as well, beside PostgreSQL's own. `timeout` is how many seconds
    a connection or a statement may take.
    """

    is_blocking = False

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
        """What it is and where, without user and password."""
        return self._settings.name

    async def open(self) -> None:
        """Connect, making schema and tables if need be; the first write brings them up to date."""
        if self._opened is None:
            await self._kept(await _connections().open(self._settings))

    async def _kept(self, opened: Connections) -> None:
        if self._opened is None:
            self._opened = opened
        else:  # another task was quicker
            await opened.close()

    async def close(self) -> None:
        """Close all connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    @property
    def _connections(self) -> Connections:
        if self._opened is None:
            msg = f"the store {self.name} is not open"
            raise StoreError(msg)
        return self._opened

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none."""
        return await self._connections.read(tables.session, identity)

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
    ) -> Appended:
        """See `Storage.append`; where the connection breaks, it is sent again, and stored once."""
        return await self._connections.repeat(
            appending.append, appending.append_again, identity, entries, branch, expected
        )

    async def rows(
        self,
        identity: SessionIdentity,
        *,
        branch: int = MAIN,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[Row]:
        """See `Storage.rows`."""
        return await self._connections.read(
            tables.rows, identity, branch, after, upto, limit, newest
        )

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
        return await self._connections.read(tables.row, identity, id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await self._connections.read(tables.count, identity, branch)

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
    ) -> int:
        """See `Storage.rewrite`."""
        return await self._connections.write(tables.rewrite, identity, replaced, removed, expected)

    async def clear(
        self, identity: SessionIdentity, *, at: float, expected: int | None = None
    ) -> int:
        """See `Storage.clear`."""
        return await self._connections.write(tables.clear, identity, at, expected)

    async def fork(
        self, identity: SessionIdentity, *, parent: int, at: int, expected: int | None = None
    ) -> int:
        """See `Storage.fork`."""
        return await self._connections.write(tables.fork, identity, parent, at, expected)

    async def activate(self, identity: SessionIdentity, branch: int) -> None:
        """See `Storage.activate`."""
        await self._connections.write(tables.activate, identity, branch)

    async def keep_window(self, identity: SessionIdentity, window: bytes | None) -> None:
        """See `Storage.keep_window`."""
        await self._connections.write(tables.keep_window, identity, window)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        return await self._connections.write(tables.delete, identity)

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        return await self._connections.write_slowly(tables.restore, session, rows)

    async def set_aside(self, identity: SessionIdentity, seqs: Sequence[int], reason: str) -> int:
        """See `Storage.set_aside`; they are kept in the table `aside`."""
        return await self._connections.write(tables.set_aside, identity, seqs, reason)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        return await self._connections.read_slowly(listing.sessions, which, limit, after)

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`."""
        expect_query(which, text=text, limit=limit)
        words = search.wanted(text)
        await self._catch_up(which)
        return await self._connections.read_slowly(search.search, words, which, limit)

    async def _catch_up(self, which: Filter) -> None:
        # In batches, so that writers get their turn, and only where there is something to do, so
        # that a replica can be searched.
        after = 0
        while ids := await self._connections.read_slowly(search.behind, which, after):
            await self._connections.write_slowly(search.catch_up, ids)
            after = ids[-1] - 1  # the last may have more than a batch

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`."""
        expect_query(which, by=by)
        return await self._connections.read_slowly(listing.totals, by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`: the rows are removed for good, their space is freed."""
        expect(user, str, "the user to forget")
        erased = await self._connections.write_slowly(erasing.erase, user)
        remains = await self._connections.read_slowly(erasing.scrub)
        return msgspec.structs.replace(erased, remains=remains)

    async def verify(self) -> list[str]:
        """What is wrong with the tables, and with how the server is set up to keep them."""
        return await self._connections.read_slowly(listing.problems)


def _connections() -> type[Connections]:
    try:
        from dragoman.history.storage.postgres.connections import Connections
    except ImportError:
        pass  # psycopg is missing, or its C library
    else:
        return Connections
    msg = "PostgreSQL needs another package: pip install 'dragoman[postgres]'"
    raise ConfigError(msg)
