"""The backend: one connection, one transaction per write.

When `append` returns, the messages survive the death of the process; with `durability="power"`
also that of the machine, for one fsync per write. Any number of processes may use the file at
once, on a local disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
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
from dragoman.history.storage.sqlite import erasing, search, tables
from dragoman.history.storage.sqlite.connection import (
    FAILURES,
    connect,
    explanation,
    is_migrated,
    migrate,
)
from dragoman.history.storage.worker import Durability, Worker, expect_durability
from dragoman.model.value import expect

P = ParamSpec("P")
T = TypeVar("T")


class SQLiteStorage:
    """A backend in one file. Its calls run on a worker thread; with `blocking`, in the caller's.

    >>> SQLiteStorage("chats.db").name
    'sqlite:chats.db'
    """

    def __init__(
        self, path: str | Path, *, durability: Durability = "process", blocking: bool = False
    ) -> None:
        expect_durability(durability)
        self._path = Path(path)
        self._durability = durability
        self._worker = Worker("dragoman-sqlite", is_blocking=blocking)
        self._lock = RLock()  # blocking callers may be in several threads
        self._connection: sqlite3.Connection | None = None
        self._is_current = True

    @property
    def name(self) -> str:
        """What it is and where."""
        return f"sqlite:{self._path.name}"

    @property
    def is_blocking(self) -> bool:
        """Whether calls run in the calling thread."""
        return self._worker.is_blocking

    async def open(self) -> None:
        """Open the file, making it and its directory if need be.

        One of an older dragoman is brought up to date by the first write, not by reading it.
        """
        self._worker.start()
        await self._worker.run(self._open)

    async def close(self) -> None:
        """Close the file; the last one out folds the log into it."""
        await self._worker.stop(self._close)

    def _open(self) -> None:
        if self._connection is not None:
            return
        try:
            self._connection, self._is_current = connect(self._path, self._durability)
        except (sqlite3.Error, OSError) as error:
            raised = explanation(error, self.name)
        else:
            return
        raise raised

    def _close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    # --- where and how calls run

    async def _read(
        self,
        ask: Callable[Concatenate[sqlite3.Connection, P], T],
        *arguments: P.args,
        **_none: P.kwargs,
    ) -> T:
        return await self._worker.run(self._asked, ask, arguments)

    async def _write(
        self,
        change: Callable[Concatenate[sqlite3.Connection, P], T],
        *arguments: P.args,
        **_none: P.kwargs,
    ) -> T:
        return await self._worker.run(self._changed, change, arguments)

    def _asked(self, ask: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            try:
                if self._is_current:
                    return ask(self._opened(), *arguments)
                return self._asked_of_old(ask, arguments)
            except FAILURES as error:
                raised = explanation(error, self.name)
        raise raised

    def _asked_of_old(self, ask: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        connection = self._opened()
        connection.execute("BEGIN")  # it stays as it is until the end
        try:
            self._is_current = is_migrated(connection)
            return ask(connection, *arguments)
        finally:
            connection.execute("COMMIT")

    def _changed(self, change: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        # Written out for speed: two context managers would cost a fifth of an append.
        with self._lock:
            connection = self._opened()
            try:
                if not self._is_current:
                    migrate(connection)
                    self._is_current = True
                connection.execute("BEGIN IMMEDIATE")
                changed = change(connection, *arguments)
                connection.execute("COMMIT")
            except FAILURES as error:
                raised = explanation(error, self.name)
            except BaseException:
                with suppress(sqlite3.Error):  # an interrupt may have come after the commit
                    connection.execute("ROLLBACK")
                raise
            else:
                return changed
            with suppress(sqlite3.Error):  # there may be nothing to roll back
                connection.execute("ROLLBACK")
        raise raised

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            msg = f"the store {self.name} is not open"
            raise StoreError(msg)
        return self._connection

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none."""
        return await self._read(tables.session, identity)

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
    ) -> Appended:
        """See `Storage.append`."""
        return await self._write(tables.append, identity, entries, branch, expected)

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
        return await self._read(tables.rows, identity, branch, after, upto, limit, newest)

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
        return await self._read(tables.row, identity, id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await self._read(tables.count, identity, branch)

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
    ) -> int:
        """See `Storage.rewrite`."""
        return await self._write(tables.rewrite, identity, replaced, removed, expected)

    async def clear(
        self, identity: SessionIdentity, *, at: float, expected: int | None = None
    ) -> int:
        """See `Storage.clear`."""
        return await self._write(tables.clear, identity, at, expected)

    async def fork(
        self, identity: SessionIdentity, *, parent: int, at: int, expected: int | None = None
    ) -> int:
        """See `Storage.fork`."""
        return await self._write(tables.fork, identity, parent, at, expected)

    async def activate(self, identity: SessionIdentity, branch: int) -> None:
        """See `Storage.activate`."""
        await self._write(tables.activate, identity, branch)

    async def keep_window(self, identity: SessionIdentity, window: bytes | None) -> None:
        """See `Storage.keep_window`."""
        await self._write(tables.keep_window, identity, window)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        return await self._write(tables.delete, identity)

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        return await self._write(tables.restore, session, rows)

    async def set_aside(self, identity: SessionIdentity, seqs: Sequence[int], reason: str) -> int:
        """See `Storage.set_aside`; they are kept in the table `aside`."""
        return await self._write(tables.set_aside, identity, seqs, reason)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        return await self._read(tables.sessions, which, limit, after)

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`."""
        expect_query(which, text=text, limit=limit)
        after: int | None = 0
        while after is not None:  # in batches, so that writers get their turn
            after = await self._write(search.catch_up, which, after)
        return await self._read(search.search, text, which, limit)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`."""
        expect_query(which, by=by)
        return await self._read(tables.totals, by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`: the log and free pages are overwritten as well."""
        expect(user, str, "the user to forget")
        erased = await self._write(erasing.erase, user)
        remains = await self._read(erasing.scrub)
        return msgspec.structs.replace(erased, remains=(*remains, *erased.remains))

    async def verify(self) -> list[str]:
        """What SQLite's own check of the file finds."""
        return await self._read(_checked)


def _checked(connection: sqlite3.Connection) -> list[str]:
    found = [str(text) for (text,) in connection.execute("PRAGMA quick_check(20)")]
    return [] if found == ["ok"] else found
