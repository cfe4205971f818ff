"""Full-text search. The index is updated when somebody searches, not at each write."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from dragoman.errors import StoreError
from dragoman.history.storage.protocol import Filter, Hit
from dragoman.history.storage.scanning import searchable, words_of
from dragoman.history.storage.sqlite.connection import Connection

_BATCH = 1000
_TEXTS = "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text)"


def search(connection: sqlite3.Connection, text: str, which: Filter, limit: int) -> list[Hit]:
    """See `Storage.search`; the caller has updated the index."""
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.sqlite.columns import NUMBERED, ROW, row_of
    from dragoman.history.storage.sqlite.listing import where

    clause, values = where(which)
    query = " ".join(f'"{word}"' for word in words_of(text))
    found = connection.execute(
        f'SELECT s.agent, s.chat, s.user, s."group", s.scope, {ROW} FROM texts t'
        " JOIN messages m ON m.rowid = t.rowid JOIN heads s ON s.id = m.session"
        f" WHERE texts MATCH ? AND {NUMBERED} {clause} ORDER BY m.at DESC, m.seq DESC LIMIT ?",
        (query, *values, limit),
    ).fetchall()
    return [Hit(SessionIdentity.from_columns(each[:5]), row_of(each[5:])) for each in found]


def catch_up(connection: sqlite3.Connection, which: Filter, after: int) -> int | None:
    """Indexes a batch of messages of sessions above `after`; returns where to continue."""
    from dragoman.history.storage.sqlite.listing import where

    _make_index(connection)
    clause, values = where(which)
    behind = connection.execute(
        "SELECT s.id, max(s.indexed, 0), s.last_seq FROM heads s WHERE s.indexed < s.last_seq"
        f" AND typeof(s.indexed) = 'integer' AND typeof(s.last_seq) = 'integer' {clause}"
        " AND s.id > ? ORDER BY s.id LIMIT ?",
        (*values, after, _BATCH),
    ).fetchall()
    room = _BATCH
    for session, indexed, last in behind:
        # Start at the next existing number: there may be large gaps, and damaged numbers.
        first = _next(connection, session, indexed)
        upto = last if first is None else min(first - 1 + room, last)
        _index(connection, session, indexed, upto)
        room -= 0 if first is None else min(upto - first + 1, room)
        if upto < last:
            return int(session) - 1
        if not room:
            return int(session)
    return None if len(behind) < _BATCH else int(behind[-1][0])


_BRANCHES = "WITH branches (number) AS (SELECT 0 UNION SELECT number FROM forks WHERE session = ?)"


def _next(connection: sqlite3.Connection, session: int, after: int) -> int | None:
    """The lowest sequence number above one, on any branch."""
    from dragoman.history.storage.sqlite.columns import NUMBERED

    found = connection.execute(
        f"{_BRANCHES} SELECT min((SELECT m.seq FROM messages m WHERE m.session = ? AND"
        f" m.branch = branches.number AND m.seq > ? AND {NUMBERED} ORDER BY m.seq LIMIT 1))"
        " FROM branches",
        (session, session, after),
    ).fetchone()[0]
    return None if found is None else int(found)


def _index(connection: sqlite3.Connection, session: int, indexed: int, upto: int) -> None:
    from dragoman.history.storage.sqlite.columns import NUMBERED, ROW, row_of

    # By branch, like the rows' index: otherwise each batch would scan the whole session.
    found = connection.execute(
        f"{_BRANCHES} SELECT m.rowid, {ROW} FROM branches CROSS JOIN messages m"
        " WHERE m.session = ? AND m.branch = branches.number AND m.seq > ? AND m.seq <= ?"
        f" AND {NUMBERED}",
        (session, session, indexed, upto),
    ).fetchall()
    connection.executemany(
        "INSERT OR REPLACE INTO texts (rowid, text) VALUES (?, ?)",
        [(rowid, searchable(row_of(columns))) for rowid, *columns in found],
    )
    connection.execute("UPDATE heads SET indexed = ? WHERE id = ?", (upto, session))


def _make_index(connection: sqlite3.Connection) -> None:
    try:
        connection.execute(_TEXTS)
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
    else:
        return
    msg = "the SQLite library of this Python has no full-text search (FTS5)"
    raise StoreError(msg)


def unindex(connection: Connection, session: int, id: str | None = None) -> None:
    """Removes one message of a session, or all, from the index before it is changed."""
    if not has_index(connection):
        return
    clause = "" if id is None else " AND id = ?"
    values = (session,) if id is None else (session, id)
    done = connection.execute(
        f"DELETE FROM texts WHERE rowid IN (SELECT rowid FROM messages WHERE session = ?{clause})",
        values,
    )
    if id is not None:
        connection.has_stale_words = True
    elif done.rowcount:
        scour(connection)


def scour(connection: sqlite3.Connection) -> None:
    """Purges the words of deleted messages, which an index keeps until its segments are merged.

    This takes as long as rebuilding the index. It is done when a session is deleted; when a message
    is deleted, only when the store is closed.
    """
    connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")


def scour_if_free(connection: sqlite3.Connection) -> None:
    """Like `scour`, unless others are writing."""
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout=1000")
        if has_index(connection):
            scour(connection)


def unindex_row(connection: Connection, rowid: int) -> None:
    """Removes a row from the index, whatever its columns hold."""
    if has_index(connection):
        connection.has_stale_words = True
        connection.execute("DELETE FROM texts WHERE rowid = ?", (rowid,))


def index_anew(connection: sqlite3.Connection, session: int, id: str) -> None:
    """Indexes a changed message again, if the index already covers it."""
    from dragoman.history.storage.sqlite.columns import NUMBERED, ROW, row_of

    if not has_index(connection):
        return
    found = connection.execute(
        f"SELECT m.rowid, {ROW} FROM messages m JOIN heads s ON s.id = m.session"
        f" WHERE m.session = ? AND m.id = ? AND m.seq <= s.indexed AND {NUMBERED}",
        (session, id),
    ).fetchone()
    if found is not None:
        text = searchable(row_of(found[1:]))
        connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (found[0], text))


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether the index exists, that is, whether anybody has searched yet."""
    return (
        connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone()
        is not None
    )
