"""Erasing a user for good: rows, index, write-ahead log and free pages."""

from __future__ import annotations

import sqlite3

from dragoman.history.identity import escaped
from dragoman.history.storage.protocol import Erasure
from dragoman.history.storage.sqlite.connection import Connection
from dragoman.history.storage.sqlite.search import has_index, scour
from dragoman.history.storage.sqlite.tables import empty

_OUTSIDE = "backups and snapshots of the file, and blocks that the disk no longer uses"


def erase(connection: Connection, user: str) -> Erasure:
    """Remove all rows of a user, within the caller's transaction."""
    column = escaped(user)
    ids = connection.execute("SELECT id FROM heads WHERE user = ?", (column,)).fetchall()
    messages = sum(empty(connection, id) for (id,) in ids)
    connection.execute("DELETE FROM heads WHERE user = ?", (column,))
    connection.execute("DELETE FROM aside WHERE user = ?", (column,))
    if has_index(connection):
        # A full-text index keeps removed words until its segments are merged: also those of
        # sessions that were deleted before.
        scour(connection)
    return Erasure(len(ids), messages, (_OUTSIDE,))


def scrub(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Overwrite what the file and its log still hold of removed rows; says what could not be."""
    remains: list[str] = []
    try:
        connection.execute("VACUUM")
    except sqlite3.OperationalError:
        remains.append("free pages of the file: it was in use; run `forget` again")
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        remains.append("the write-ahead log: others are reading; run `forget` again")
    return tuple(remains)
