"""Full-text search. The index is updated when somebody searches, not at each write.

It has the rowids of the messages, all up to a highest one: what is written or changed later has a
higher rowid, and what is removed is removed from both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dragoman.errors import Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage import sql
from dragoman.history.storage.protocol import Filter, Hit
from dragoman.history.storage.scanning import searchable
from dragoman.history.storage.sqlite.connection import Connection

_BATCH = 1000
_TEXTS = "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text)"
_NUMBERED = "typeof(m.seq) = 'integer' AND typeof(m.branch) = 'integer'"
_BEHIND = (
    f"SELECT m.rowid, {sql.ROW} FROM messages m WHERE m.rowid >"
    " coalesce((SELECT rowid FROM texts ORDER BY rowid DESC LIMIT 1), 0)"
    f" ORDER BY m.rowid LIMIT {_BATCH}"
)


def found(
    connection: sqlite3.Connection, words: Sequence[str], which: Filter, limit: int
) -> list[Hit]:
    """The messages that contain all words, latest first; the caller has updated the index."""
    clause, values = sql.conditions(which)
    query = " ".join(f'"{word}"' for word in words)
    hits = connection.execute(
        f'SELECT s.agent, s.chat, s.user, s."group", s.scope, {sql.ROW} FROM texts t'
        " JOIN messages m ON m.rowid = t.rowid JOIN heads s ON s.id = m.session"
        f" WHERE texts MATCH ? AND {_NUMBERED} {clause} ORDER BY m.at DESC, m.seq DESC LIMIT ?",
        (query, *values, limit),
    ).fetchall()
    made: list[Hit] = []
    for each in hits:
        with suppress(InvalidInputError, ValueError, TypeError):  # names that `verify` reports
            made.append(Hit(SessionIdentity.from_columns(each[:5]), sql.row_of(each[5:])))
    return made


def catch_up(connection: sqlite3.Connection) -> bool:
    """Indexes a batch of messages; returns whether there are more."""
    _make_index(connection)
    behind = connection.execute(_BEHIND).fetchall()
    connection.executemany(
        "INSERT INTO texts (rowid, text) VALUES (?, ?)",
        [(rowid, _text(columns)) for rowid, *columns in behind],
    )
    return len(behind) == _BATCH


def _text(columns: Sequence[Any]) -> str:
    try:
        return searchable(sql.row_of(columns))
    except Corrupt:
        return ""  # it has no position; `verify` reports it


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


def unindex(connection: Connection, clause: str, values: Sequence[Any]) -> None:
    """Removes messages from the index, before they are removed themselves."""
    if not has_index(connection):
        return
    done = connection.execute(
        f"DELETE FROM texts WHERE rowid IN (SELECT rowid FROM messages WHERE {clause})", values
    )
    if clause != "session = ?":
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


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether the index exists, that is, whether anybody has searched yet."""
    return (
        connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone()
        is not None
    )
