"""Checks a file: its structure, and its search index. Sessions are checked by the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress

from dragoman.history.storage import sql
from dragoman.history.storage.sqlite.search import has_index

_DELETED = "SELECT count(*) FROM texts WHERE rowid NOT IN (SELECT rowid FROM messages)"
_ABSENT = """
SELECT count(*) FROM messages WHERE rowid NOT IN (SELECT rowid FROM texts)
AND rowid <= (SELECT rowid FROM texts ORDER BY rowid DESC LIMIT 1)"""


def problems(connection: sqlite3.Connection) -> list[str]:
    """Structural problems of the file; the rows of sessions are checked separately."""
    found: list[str] = []
    for part in (_structure, _orphans, _index):
        _ask(part, connection, found)
    return found


def _ask(
    part: Callable[[sqlite3.Connection], Iterator[str]],
    connection: sqlite3.Connection,
    found: list[str],
) -> None:
    try:
        found += part(connection)
    except sqlite3.DatabaseError as error:
        if is_undecodable(error):
            raise  # retried by the caller with lenient decoding
        reason = getattr(error, "sqlite_errorname", "unknown reason")
        found.append(f"part of the file can't be read ({reason})")


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    for (text,) in connection.execute("PRAGMA integrity_check(20)"):
        if text != "ok":
            yield str(text)


def _orphans(connection: sqlite3.Connection) -> Iterator[str]:
    number = connection.execute(sql.ORPHANS.replace("our.", "main.")).fetchone()[0]
    if number:
        yield sql.ORPHANED.format(number)


def _index(connection: sqlite3.Connection) -> Iterator[str]:
    if not has_index(connection):
        return
    left = connection.execute(_DELETED).fetchone()[0]
    if left:
        yield f"the search index contains {left} deleted messages"
    absent = connection.execute(_ABSENT).fetchone()[0]
    if absent:
        yield f"the search index lacks {absent} messages"
    if not is_index_sound(connection):
        yield "the search index is damaged; run `dragoman history repair` to rebuild it"


def is_index_sound(connection: sqlite3.Connection) -> bool:
    """Whether the index matches its texts; also true if that can't be checked."""
    try:
        connection.execute("INSERT INTO texts (texts) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY}
    return True


def mend_index(connection: sqlite3.Connection) -> None:
    """Removes a damaged index; the next search rebuilds it."""
    if has_index(connection) and [*_index(connection)]:
        connection.execute("DROP TABLE texts")


def lenient(raw: bytes) -> str:
    """Decodes invalid text so that it can be shown as damaged."""
    return raw.decode("utf-8", "replace")


def is_undecodable(error: Exception) -> bool:
    """Whether a column holds invalid text; SQLite's message would quote it."""
    told = ""
    with suppress(IndexError):
        told = str(error.args[0])
    return isinstance(error, sqlite3.OperationalError) and told.startswith("Could not decode")
