"""`SQLiteStorage`: all sessions in one file; one connection, one transaction per write.

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

from dragoman.history.identity import escaped
from dragoman.history.storage import sql
from dragoman.history.storage.heads import Stored, listed
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.places import moved
from dragoman.history.storage.protocol import (
    Dated,
    DuplicateIds,
    Filter,
    Group,
    Hit,
    Row,
    Total,
)
from dragoman.history.storage.shelf import Change, Record
from dragoman.history.storage.sqlite import checking, schema, search
from dragoman.history.storage.sqlite.connection import (
    APPLICATION,
    FAILURES,
    Connection,
    connect,
    explanation,
    exposed_files,
)
from dragoman.history.storage.threaded import Durability, ThreadedShelf, expect_durability

T = TypeVar("T")


def _ours(statement: str) -> str:
    return statement.replace("our.", "main.")


_NUMBERED = " AND typeof(m.seq) = 'integer'"  # other rows have no position
_GET, _NAMED = _ours(sql.GET), _ours(sql.NAMED)
_RECORDS = f"SELECT rowid, {sql.ROW} FROM messages m WHERE session = ?"
_MAKE = (
    f"INSERT INTO heads ({sql.HEAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (digest) DO NOTHING"
)
_ID = "SELECT id FROM heads WHERE digest = ?"
_SAME, _SAME_ODD = "stamp = ?", "(stamp IN (0, ?) OR typeof(stamp) <> 'integer')"
_MOVE = "UPDATE heads SET stamp = ?, at = ?, document = ? WHERE id = ? AND digest = ? AND {}"
_MOVE_ON, _MOVE_ODD = _MOVE.format(_SAME), _MOVE.format(_SAME_ODD)
_NAME = 'UPDATE heads SET agent = ?, chat = ?, user = ?, "group" = ?, scope = ? WHERE id = ?'
_PUT = (
    f"INSERT INTO messages (session, {sql.ROW_COLUMNS})"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ASIDE = """
INSERT INTO aside SELECT s.digest, s.user, coalesce(m.seq, 0), coalesce(m.branch, 0),
    coalesce(m.id, ''), coalesce(m.at, 0), ?, coalesce(m.body, x'')
FROM messages m JOIN heads s ON s.id = ? WHERE m.rowid = ?"""
_KEYS = {
    "session": "s.digest",
    "user": "s.user",
    "model": "m.model",
    "day": "strftime('%Y-%m-%d', CAST(m.at AS INTEGER), 'unixepoch')",
}
# A damaged time sorts last. There is no index on it: every append would have to update it, and
# scanning ten thousand sessions takes a few milliseconds.
_AT = "CASE typeof(s.at) WHEN 'real' THEN s.at ELSE 0.0 END"
_CHANGES = "SELECT digest, number FROM feed WHERE number > ? ORDER BY number LIMIT ?"
_CACHED = 1000  # sessions whose numbers are cached
_OUTSIDE = "backups and snapshots of the file, and freed blocks of the disk"


class SQLiteShelf(ThreadedShelf[Connection]):
    """Heads and rows in a file. Calls run on a worker thread; with `blocking`, in the caller's."""

    def __init__(
        self,
        path: Path,
        durability: Durability,
        *,
        blocking: bool,
        application: int = APPLICATION,
    ) -> None:
        expect_durability(durability)
        super().__init__("dragoman-sqlite", blocking=blocking)
        self._path = path
        self._application = application
        self._durability: Durability = durability

    @property
    def name(self) -> str:
        """See `Shelf.name`."""
        return f"sqlite:{self._path.name}"

    def _connect(self) -> Connection:
        try:
            return connect(self._path, self._durability, self._application)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raised = explanation(error, self.name, is_opening=True)
        raise raised

    def _disconnect(self, opened: Connection) -> None:
        if opened.has_stale_words:
            search.scour_if_free(opened)
        opened.close()  # the last connection checkpoints the log into the file

    # --- how calls run

    def _read(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            try:
                connection = self._opened
                if not connection.holds():
                    raise moved(self.name)
                return work(connection, *arguments)
            except FAILURES as error:
                if self._should_retry_leniently(error):
                    return self._read(work, arguments)
                raised = explanation(error, self.name)
        raise raised

    def _write(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        # Inlined for speed: two context managers would add a fifth to the cost of an append.
        with self._lock:
            connection = self._opened
            if not connection.holds():
                raise moved(self.name)
            try:
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
                return self._write(work, arguments)
        raise raised

    def _should_retry_leniently(self, error: Exception) -> bool:
        """Whether to retry after invalid text; from now on it is decoded leniently."""
        connection = self._opened
        if not checking.is_undecodable(error) or connection.text_factory is checking.lenient:
            return False
        connection.text_factory = checking.lenient
        return True

    # --- one session

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`."""
        found = await self.read(_fetched, _GET, (digest,))
        return sql.stored_of_columns(found[0]) if found else None

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        if self.is_blocking:
            return self._write(_committed, (before, stored, change))
        return await self._worker.run(self._write, _committed, (before, stored, change))

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        """See `Shelf.rows`."""
        statement, values = sql.rows_query(
            digest, branch, after, upto, limit, newest=newest, numbered=_NUMBERED
        )
        return await self.read(_rows, _ours(statement), values, newest)

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        return await self.read(_named, digest, ids)

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        query, values = sql.count_query(digest, branches)
        statement = _ours(query) + ("" if branches is None else _NUMBERED)
        [(number,)] = await self.read(_fetched, statement, values)
        return int(number)

    async def records(self, digest: str) -> list[Record]:
        """See `Shelf.records`."""
        return await self.read(_records, digest)

    # --- many sessions

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        clause, values = sql.conditions(which)
        statement = _ours(sql.list_query(clause, limit))
        tail = [] if limit is None else [limit]
        found = await self.read(_fetched, statement, (after, *values, *tail))
        return [sql.stored_of_columns(each) for each in found]

    async def by_time(
        self, limit: int, before: tuple[float, str] | None, without: Sequence[str]
    ) -> list[tuple[float, Stored]]:
        """Heads by the time of their last write, latest first, with that time."""
        clauses, values = _without(without)
        if before is not None:
            clauses.append(f"({_AT} < ? OR ({_AT} = ? AND s.digest > ?))")
            values += [before[0], *before]
        found = await self.read(
            _fetched,
            f"SELECT {_AT} AS time, {sql.HEAD} FROM heads s WHERE {' AND '.join(clauses)}"
            " ORDER BY time DESC, s.digest LIMIT ?",
            (*values, limit),
        )
        return [(at, sql.stored_of_columns(head)) for at, *head in found]

    async def number(self, without: Sequence[str]) -> int:
        """The number of sessions."""
        clauses, values = _without(without)
        statement = f"SELECT count(*) FROM heads s WHERE {' AND '.join(clauses)}"
        [(number,)] = await self.read(_fetched, statement, values)
        return int(number)

    async def search(self, words: Sequence[str], which: Filter, limit: int) -> list[Hit]:
        """See `Searching.search`."""
        while await self.write(search.catch_up):  # in batches, so that writers are not blocked
            pass
        return await self.read(search.found, words, which, limit)

    async def totals(self, by: Group, which: Filter) -> list[Total]:
        """See `Searching.totals`."""
        clause, values = sql.conditions(which)
        statement = _ours(sql.totals_query(_KEYS[by], clause))
        found = await self.read(_fetched, statement, values)
        return sql.in_order([sql.total_of(by, each) for each in found])

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`."""
        return await self.write(_removed, which)

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`; also overwrites the index, the log and free pages."""
        await self.write(_forgotten, escaped(user))
        return (*await self.read(_vacuumed), _OUTSIDE)

    async def watch(self) -> None:
        """See `Shelf.watch`."""
        await self.write(schema.run, schema.FEED)

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """See `Shelf.changes`. Writers take turns, so a later commit has a higher number."""
        found = await self.read(_fetched, _CHANGES, (int(after or 0), limit))
        return [digest for digest, _ in found], str(found[-1][1]) if found else after

    async def prune(self, upto: str) -> None:
        """See `Shelf.prune`."""
        await self.write(_pruned, int(upto or 0))

    async def problems(self) -> list[str]:
        """Runs SQLite's integrity check; looks at the log, the index and file permissions."""
        problems = await self.read(checking.problems_of_log, self._path)
        problems += await self.read(checking.problems)
        return problems + exposed_files(self._path)


class SQLiteStorage(Ledger):
    """A backend in one file. Its calls run on a worker thread; with `blocking`, in the caller's.

    >>> SQLiteStorage("chats.db").name
    'sqlite:chats.db'
    """

    shelf: SQLiteShelf

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Durability = "process",
        blocking: bool = False,
        application: int = APPLICATION,
    ) -> None:
        """`application` is in the file's header: a store for something else has its own."""
        shelf = SQLiteShelf(Path(path), durability, blocking=blocking, application=application)
        super().__init__(shelf)

    async def sessions_by_time(
        self, *, limit: int, before: tuple[float, str] | None = None, without: Sequence[str] = ()
    ) -> list[Dated]:
        """See `Ordering.sessions_by_time`."""
        found = await self.shelf.by_time(limit, before, without)
        sessions = ((at, listed(stored)) for at, stored in found)
        return [Dated(at, session) for at, session in sessions if session is not None]

    async def number_of_sessions(self, without: Sequence[str] = ()) -> int:
        """See `Ordering.number_of_sessions`."""
        return await self.shelf.number(without)


# --- what runs on the connection


def _fetched(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any]
) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()


def _committed(connection: Connection, before: int, stored: Stored, change: Change | None) -> bool:
    digest, names, stamp, at, document = stored
    if before:
        session = connection.numbers.get(digest) or _number(connection, digest)
        move = _MOVE_ODD if before == sql.UNREADABLE else _MOVE_ON
        done = connection.execute(move, (stamp, at, document, session, digest, before))
    else:
        done = connection.execute(_MAKE, (digest, *names, stamp, at, document))
        session = _number(connection, digest)
    if done.rowcount != 1 or session is None:
        connection.numbers.pop(digest, None)  # another session may have this name now
        return False
    if digest not in connection.numbers and len(connection.numbers) >= _CACHED:
        del connection.numbers[next(iter(connection.numbers))]
    connection.numbers[digest] = session
    if change is not None:
        _change(connection, session, names, change)
    return True


def _change(
    connection: Connection, session: int, names: Sequence[str | None], change: Change
) -> None:
    if change.is_emptied:
        _empty(connection, session)
    if change.drops:
        _drop(connection, session, change.drops)
    if change.is_repair:
        for rowid in change.aside:
            search.unindex(connection, "rowid = ?", (rowid,))
            connection.execute(_ASIDE, (change.reason, session, rowid))
            connection.execute("DELETE FROM messages WHERE rowid = ?", (rowid,))
        connection.execute(_NAME, (*names, session))
        checking.mend_index(connection)
    try:
        for row in change.puts:
            connection.execute(_PUT, (session, *sql.row_columns(row)))
    except sqlite3.IntegrityError:
        raise DuplicateIds([]) from None


def _number(connection: sqlite3.Connection, digest: str) -> int | None:
    found = connection.execute(_ID, (digest,)).fetchone()
    return None if found is None else int(found[0])


def _empty(connection: Connection, session: int) -> int:
    search.unindex(connection, "session = ?", (session,))
    return connection.execute("DELETE FROM messages WHERE session = ?", (session,)).rowcount


def _drop(connection: Connection, session: int, ids: Sequence[str]) -> None:
    for id in ids:
        search.unindex(connection, "session = ? AND id = ?", (session, id))
        connection.execute("DELETE FROM messages WHERE session = ? AND id = ?", (session, id))


def _rows(
    connection: sqlite3.Connection,
    statement: str,
    values: Sequence[Any],
    newest: bool,  # noqa: FBT001 - one caller
) -> list[Row]:
    found = connection.execute(statement, values).fetchall()
    if newest:
        found.reverse()
    return [sql.row_of(each) for each in found]


def _named(connection: sqlite3.Connection, digest: str, ids: Sequence[str]) -> list[Row]:
    found = [each for id in ids for each in connection.execute(_NAMED, (digest, id)).fetchall()]
    return [sql.row_of(each) for each in found]


def _records(connection: sqlite3.Connection, digest: str) -> list[Record]:
    records = connection.execute(_RECORDS, (_number(connection, digest),)).fetchall()
    return [Record(rowid, sql.record_row(columns)) for rowid, *columns in records]


def _removed(connection: Connection, which: Sequence[tuple[str, int]]) -> list[int | None]:
    return [_removed_one(connection, digest, stamp) for digest, stamp in which]


def _removed_one(connection: Connection, digest: str, stamp: int) -> int | None:
    same = _SAME_ODD if stamp == sql.UNREADABLE else _SAME
    found = connection.execute(
        f"SELECT id FROM heads WHERE digest = ? AND {same}", (digest, stamp)
    ).fetchone()
    if found is None:
        return None
    messages = _empty(connection, found[0])
    connection.execute("DELETE FROM heads WHERE id = ?", found)
    return messages


def _pruned(connection: Connection, upto: int) -> None:
    connection.execute("DELETE FROM feed WHERE number <= ?", (upto,))


def _forgotten(connection: Connection, user: str) -> None:
    connection.execute("DELETE FROM aside WHERE user = ?", (user,))
    if search.has_index(connection):
        # A full-text index keeps deleted words until its segments are merged, including those of
        # sessions that were deleted earlier.
        search.scour(connection)


def _vacuumed(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Overwrites what the file and its log still hold of deleted rows; returns what remains."""
    remains: list[str] = []
    try:
        connection.execute("VACUUM")
    except sqlite3.OperationalError:
        remains.append("free pages of the file, because it was in use; run `forget` again")
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        remains.append("the write-ahead log, because others are reading; run `forget` again")
    return tuple(remains)


def _without(scopes: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Conditions that exclude sessions by the start of their scope, and their values."""
    clauses, values = ["TRUE"], list[Any]()
    for scope in scopes:
        clauses.append("(s.scope IS NULL OR substr(s.scope, 1, ?) <> ?)")
        start = escaped(scope)
        values += [len(start), start]
    return clauses, values
