"""Checks a file: its structure, its records and its permissions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress

from dragoman.errors import Corrupt
from dragoman.history.storage.sqlite.columns import SESSION, session_of
from dragoman.history.storage.sqlite.search import has_index

_BRANCHES = "SELECT 0 UNION SELECT number FROM forks f WHERE f.session = m.session"
_LOST = (
    "m.session IN (SELECT id FROM heads) AND (typeof(m.seq) <> 'integer' OR m.seq < 1"
    f" OR typeof(m.branch) <> 'integer' OR m.branch NOT IN ({_BRANCHES}))"
)
_ASTRAY = "typeof(indexed) <> 'integer' OR indexed < 0 OR indexed > last_seq"
_QUESTIONS = (
    (
        "SELECT count(*) FROM messages WHERE session NOT IN (SELECT id FROM heads)",
        "{} messages belong to no session: its record is missing",
    ),
    (
        "SELECT count(*) FROM forks WHERE session NOT IN (SELECT id FROM heads)",
        "{} branches belong to no session: its record is missing",
    ),
    (
        f"SELECT count(*) FROM messages m WHERE {_LOST}",
        "{} messages have lost their position: their branch or number is unreadable",
    ),
    (
        f"SELECT count(*) FROM heads WHERE {_ASTRAY}",
        "the progress of the search index is invalid in {} sessions",
    ),
)


def problems(connection: sqlite3.Connection) -> list[str]:
    """Structural problems of the file; the rows of sessions are checked separately."""
    found: list[str] = []
    for part in (_structure, _unreadable, _lost, _index):
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


def _unreadable(connection: sqlite3.Connection) -> Iterator[str]:
    for digest, *columns in connection.execute(f"SELECT digest, {SESSION} FROM heads s").fetchall():
        try:
            session = session_of(connection, columns)
        except Corrupt as error:
            yield f"session {_shown(digest)}: {error}"
        else:
            if session.identity.digest != digest:
                yield f"session {session.identity.digest} is stored under another session's key"


def _shown(digest: object) -> str:
    """A digest, if it is one: a damaged column may hold anything."""
    return digest if type(digest) is str and digest.isalnum() and digest.isascii() else "unknown"


def _lost(connection: sqlite3.Connection) -> Iterator[str]:
    for question, answer in _QUESTIONS:
        count = connection.execute(question).fetchone()[0]
        if count:
            yield answer.format(count)


def _index(connection: sqlite3.Connection) -> Iterator[str]:
    if not has_index(connection):
        return
    left = connection.execute(
        "SELECT count(*) FROM texts WHERE rowid NOT IN (SELECT rowid FROM messages)"
    ).fetchone()[0]
    if left:
        yield f"the search index contains {left} deleted messages"
    absent = connection.execute(
        "SELECT count(*) FROM messages m JOIN heads s ON s.id = m.session"
        " WHERE m.seq <= s.indexed AND typeof(m.seq) = 'integer' AND m.seq > 0"
        f" AND m.branch IN ({_BRANCHES}) AND m.rowid NOT IN (SELECT rowid FROM texts)"
    ).fetchone()[0]
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
    if has_index(connection) and not is_index_sound(connection):
        connection.execute("DROP TABLE texts")
        connection.execute("UPDATE heads SET indexed = 0")


def lenient(raw: bytes) -> str:
    """Decodes invalid text so that it can be shown as damaged."""
    return raw.decode("utf-8", "replace")


def is_undecodable(error: Exception) -> bool:
    """Whether a column holds invalid text; SQLite's message would quote it."""
    told = ""
    with suppress(IndexError):
        told = str(error.args[0])
    return isinstance(error, sqlite3.OperationalError) and told.startswith("Could not decode")
