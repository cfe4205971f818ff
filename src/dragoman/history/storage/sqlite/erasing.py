"""Erases a user permanently: rows, index, write-ahead log and free pages."""

from __future__ import annotations

import sqlite3

from dragoman.history.identity import escaped
from dragoman.history.storage.protocol import Erasure
from dragoman.history.storage.sqlite.connection import Connection
from dragoman.history.storage.sqlite.search import has_index, scour
from dragoman.history.storage.sqlite.tables import empty

_OUTSIDE = "backups and snapshots of the file, and freed blocks of the disk"


def erase(connection: Connection, user: str) -> Erasure:
    """Deletes all rows of a user, within the caller's transaction."""
    column = escaped(user)
    ids = connection.execute("SELECT id FROM heads WHERE user = ?", (column,)).fetchall()
    messages = sum(empty(connection, id) for (id,) in ids)
    connection.execute("DELETE FROM heads WHERE user = ?", (column,))
    connection.execute("DELETE FROM aside WHERE user = ?", (column,))
    if has_index(connection):
        # A full-text index keeps deleted words until its segments are merged, including those of
        # sessions that were deleted earlier.
        scour(connection)
    return Erasure(len(ids), messages, (_OUTSIDE,))


def scrub(connection: sqlite3.Connection) -> tuple[str, ...]:
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
