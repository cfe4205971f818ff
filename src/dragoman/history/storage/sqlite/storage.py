"""`SQLiteStorage`: one connection, one transaction per write.

When `append` returns, the messages survive a crash of the process; with `durability="power"`, at
the cost of one fsync per write, also a power failure. Any number of processes may use the file at
the same time, on a local disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dragoman.errors import Corrupt
from dragoman.history.storage.anchoring import moved
from dragoman.history.storage.backend import Operations
from dragoman.history.storage.integrity import damage_in
from dragoman.history.storage.protocol import Dated, Erasure, Filter
from dragoman.history.storage.soundness import is_damaged
from dragoman.history.storage.sqlite import (
    checking,
    erasing,
    listing,
    log,
    privacy,
    repairing,
    search,
    tables,
)
from dragoman.history.storage.sqlite.connection import (
    FAILURES,
    Connection,
    connect,
    explanation,
    is_migrated,
    migrate,
)
from dragoman.history.storage.threaded import Durability, ThreadedBackend, expect_durability

T = TypeVar("T")


class SQLiteStorage(ThreadedBackend[Connection]):
    """A backend in one file. Its calls run on a worker thread; with `blocking`, in the caller's.

    A file of an older dragoman is migrated by the first write, not by reading it.

    >>> SQLiteStorage("chats.db").name
    'sqlite:chats.db'
    """

    _operations = Operations(
        session=tables.session,
        append=tables.append,
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
        self, path: str | Path, *, durability: Durability = "process", blocking: bool = False
    ) -> None:
        expect_durability(durability)
        super().__init__("dragoman-sqlite", blocking=blocking)
        self._path = Path(path)
        self._durability = durability
        self._is_current = True

    @property
    def name(self) -> str:
        """The kind of backend and its location."""
        return f"sqlite:{self._path.name}"

    def _connect(self) -> Connection:
        try:
            connection, self._is_current = connect(self._path, self._durability)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raised = explanation(error, self.name, is_opening=True)
        else:
            return connection
        raise raised

    def _disconnect(self, opened: Connection) -> None:
        if opened.has_stale_words:
            search.scour_if_free(opened)
        opened.close()  # the last connection checkpoints the log into the file

    # --- how calls run

    def _asked(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            try:
                connection = self._opened
                if not connection.holds():
                    raise moved(self.name)
                if self._is_current:
                    return work(connection, *arguments)
                return self._read_old_schema(work, arguments)
            except FAILURES as error:
                if self._should_retry_leniently(error):
                    return self._asked(work, arguments)
                raised = explanation(error, self.name)
        raise raised

    def _should_retry_leniently(self, error: Exception) -> bool:
        """Whether to retry after invalid text; from now on it is decoded leniently."""
        connection = self._opened
        if not checking.is_undecodable(error) or connection.text_factory is checking.lenient:
            return False
        connection.text_factory = checking.lenient
        return True

    def _read_old_schema(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        connection = self._opened
        connection.execute("BEGIN")  # a consistent view until the end
        try:
            self._is_current = is_migrated(connection)
            return work(connection, *arguments)
        finally:
            connection.execute("COMMIT")

    def _changed(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        # Inlined for speed: two context managers would add a fifth to the cost of an append.
        with self._lock:
            connection = self._opened
            if not connection.holds():
                raise moved(self.name)
            try:
                if not self._is_current:
                    migrate(connection)
                    self._is_current = True
                connection.execute("BEGIN IMMEDIATE")
                changed = work(connection, *arguments)
                connection.execute("COMMIT")
            except FAILURES as error:
                raised = explanation(error, self.name)
                is_tried_again = self._should_retry_leniently(error)
            except BaseException:
                with suppress(sqlite3.Error):  # an interrupt may have come after the commit
                    connection.execute("ROLLBACK")
                raise
            else:
                return changed
            with suppress(sqlite3.Error):  # there may be nothing to roll back
                connection.execute("ROLLBACK")
            if is_tried_again:
                return self._changed(work, arguments)
        raise raised

    # --- many sessions

    async def sessions_by_time(
        self, *, limit: int, before: tuple[float, str] | None = None, without: Sequence[str] = ()
    ) -> list[Dated]:
        """See `Ordering.sessions_by_time`."""
        return await self._read(listing.sessions_by_time, limit, before, without)

    async def number_of_sessions(self, without: Sequence[str] = ()) -> int:
        """See `Ordering.number_of_sessions`."""
        return await self._read(listing.number_of_sessions, without)

    async def _index(self, which: Filter) -> None:
        after: int | None = 0
        while after is not None:  # in batches, so that writers are not blocked
            after = await self._write(search.catch_up, which, after)

    async def _forget(self, user: str) -> Erasure:
        erased = await self._write(erasing.erase, user)
        remains = await self._read(erasing.scrub)  # also overwrites the log and free pages
        return msgspec.structs.replace(erased, remains=(*remains, *erased.remains))

    async def verify(self) -> list[str]:
        """Runs SQLite's integrity check, and reports damaged records and file permissions."""
        problems = await self._read(log.problems, self._path)
        problems += await self._read(checking.problems)
        try:
            for session in await self.sessions():
                if is_damaged(session):
                    continue  # reported above
                where = f"session {session.identity.digest}"
                problems += [f"{where}: {each}" async for each in damage_in(self, session)]
        except Corrupt as error:
            problems.append(str(error))
        return problems + privacy.problems(self._path)
