"""The schema of the traffic database, and how its file is opened.

Its data is expendable: a damaged file, or one of another version, is renamed and a new one created.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from dragoman.history.storage.sqlite.connection import expect_files, prepare

_APPLICATION = 0x44726754  # "DrgT", in the file's header
_VERSION = 1
_LOCK_TIMEOUT = 10.0  # seconds to wait for another worker
COLUMNS = (
    "time", "front", "kind", "route", "provider", "model", "status", "key", "seconds", "first_byte",
    "tokens_in", "tokens_out", "nanos", "losses", "repairs", "attempts", "passes", "stream",
    "error", "left", "sent", "bin",
)  # fmt: skip
"""The columns of a request's row; `bin` is the bin of its duration."""

_TABLES = """
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, time REAL NOT NULL, front TEXT NOT NULL, kind TEXT NOT NULL, route TEXT,
  provider TEXT, model TEXT, status INTEGER NOT NULL, key TEXT, seconds REAL NOT NULL,
  first_byte REAL, tokens_in INTEGER, tokens_out INTEGER, nanos INTEGER, losses INTEGER NOT NULL,
  repairs INTEGER NOT NULL, attempts INTEGER NOT NULL, passes INTEGER NOT NULL,
  stream INTEGER NOT NULL, error TEXT, left INTEGER NOT NULL, sent INTEGER NOT NULL,
  bin INTEGER NOT NULL
) STRICT;
CREATE TABLE names (kind TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (kind, name))
  STRICT, WITHOUT ROWID;
CREATE TABLE details (id INTEGER PRIMARY KEY, detail BLOB NOT NULL) STRICT;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, request BLOB, answer BLOB) STRICT
"""
INSERT = f"INSERT INTO requests VALUES (?{', ?' * len(COLUMNS)})"  # noqa: S608 - all ours
DETAIL = "INSERT INTO details VALUES (?, ?)"
BODIES = "INSERT INTO bodies VALUES (?, ?, ?)"
NAME = "INSERT OR IGNORE INTO names VALUES (?, ?)"


class NotOurs(Exception):  # noqa: N818 - it never leaves these modules
    """The file is not a usable traffic database."""


WRITING, READING = 2048, 32768
"""Cache sizes in KiB. Readers get the larger cache because they scan the whole file."""


def connect(path: Path, cache: int = WRITING) -> sqlite3.Connection:
    """Opens the file; creates it with private permissions if it doesn't exist."""
    is_exposed = prepare(path)
    found = sqlite3.connect(
        path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = NORMAL")  # the last rows may be lost on power failure
        found.execute("PRAGMA secure_delete = ON")  # deleted bodies are overwritten
        found.execute(f"PRAGMA cache_size = -{cache}")
        _make_tables(found)
        if is_exposed:
            expect_files(path)
    except BaseException:
        found.close()
        raise
    return found


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_new(connection):
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file has no tables yet; raises `NotOurs` if it has other tables."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (_APPLICATION, _VERSION):
        return False
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise NotOurs
    return True


def is_ours(path: Path) -> bool:
    """Whether an unreadable file is a traffic database: only those are renamed."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(72)
        is_sqlite = head[:15] == b"SQLite format 3"
        return is_sqlite and int.from_bytes(head[68:72], "big") == _APPLICATION
    return False


def set_aside(path: Path) -> Path:
    """Renames a damaged file and deletes its SQLite side files; returns the new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    for ending in ("-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + ending).unlink()
    return aside
