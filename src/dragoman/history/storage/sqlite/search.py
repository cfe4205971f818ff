"""Full-text search: the index is brought up to date when somebody searches, not at each write."""

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
    """See `Storage.search`; the caller has caught up."""
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
    """Index a batch of messages, of sessions above `after`; returns where to go on, if at all."""
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
        # From the next there is: numbers may be far apart, and a damaged one anywhere.
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
    """The lowest number above one, of any branch."""
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

    # By branch, as the rows' index is: else each batch would go through the whole session.
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
    msg = "this Python's SQLite has no full-text search (FTS5)"
    raise StoreError(msg)


def unindex(connection: Connection, session: int, id: str | None = None) -> None:
    """Take one message of a session, or all, out of the index before it is changed."""
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
    """Leave no word of removed messages: an index keeps them until its segments are merged.

    As long as writing the index anew. So it is done when a session goes; when a message does, not
    before the store is closed.
    """
    connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")


def scour_if_free(connection: sqlite3.Connection) -> None:
    """As above, unless others are writing."""
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout=1000")
        if has_index(connection):
            scour(connection)


def unindex_row(connection: Connection, rowid: int) -> None:
    """Take one row out of the index, whatever its columns hold."""
    if has_index(connection):
        connection.has_stale_words = True
        connection.execute("DELETE FROM texts WHERE rowid = ?", (rowid,))


def index_anew(connection: sqlite3.Connection, session: int, id: str) -> None:
    """Put a changed message back into the index, if that has come as far."""
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
    """Whether anybody has searched yet."""
    return (
        connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone()
        is not None
    )
