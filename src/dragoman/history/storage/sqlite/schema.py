"""The tables of the SQLite backend, and the migration from those of November 2026 (version 2).

`messages.rowid` is never reused for another row while the search index knows it. `body` is a BLOB
so that a damaged one can still be read and set aside.

A program of version 2 that has the file open does not find the columns of `heads` that it asks for,
and can do no harm.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache

from dragoman.errors import Corrupt, StoreError
from dragoman.history.storage.earlier_heads import Earlier, migrated
from dragoman.history.storage.sql import HEAD_COLUMNS

VERSION, EARLIER = 3, 2
VERSION_2 = """
CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        agent TEXT, chat TEXT, user TEXT, "group" TEXT, scope TEXT,
        version INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        active INTEGER NOT NULL DEFAULT 0,
        indexed INTEGER NOT NULL DEFAULT 0,
        window BLOB
    );
    CREATE INDEX sessions_by_user ON sessions (user) WHERE user IS NOT NULL;
    CREATE TABLE messages (
        rowid INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (id),
        branch INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        model TEXT,
        input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER,
        thinking INTEGER, reported_total INTEGER,
        body BLOB NOT NULL
    );
    CREATE UNIQUE INDEX messages_in_order ON messages (session, branch, seq);
    CREATE UNIQUE INDEX messages_by_id ON messages (session, id);
    CREATE TABLE forks (
        session INTEGER NOT NULL REFERENCES sessions (id),
        number INTEGER NOT NULL,
        parent INTEGER NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (session, number)
    ) WITHOUT ROWID;
    CREATE TABLE aside (
        digest TEXT NOT NULL,
        user TEXT,
        seq INTEGER NOT NULL,
        branch INTEGER NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        reason TEXT NOT NULL,
        body BLOB NOT NULL
    );
    ALTER TABLE sessions RENAME TO heads;
    ALTER TABLE heads ADD COLUMN windows BLOB;
    ALTER TABLE heads ADD COLUMN chain TEXT;
    ALTER TABLE heads ADD COLUMN seal BLOB;
    ALTER TABLE messages ADD COLUMN checksum TEXT;
    ALTER TABLE messages ADD COLUMN chain TEXT
"""
_NEW_HEADS = """
CREATE TABLE new_heads (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    agent TEXT, chat TEXT, user TEXT, "group" TEXT, scope TEXT,
    stamp INTEGER NOT NULL,
    at REAL NOT NULL,
    document BLOB NOT NULL
)"""
_IN_PLACE = """
DROP TABLE IF EXISTS texts;
DROP TABLE forks;
DROP TABLE heads;
ALTER TABLE new_heads RENAME TO heads;
CREATE INDEX heads_by_user ON heads (user) WHERE user IS NOT NULL
"""
FEED = r"""
CREATE TABLE IF NOT EXISTS feed (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS feed_insert AFTER INSERT ON heads
    BEGIN INSERT INTO feed (digest) VALUES (new.digest)\; END;
CREATE TRIGGER IF NOT EXISTS feed_update AFTER UPDATE OF stamp ON heads
    BEGIN INSERT INTO feed (digest) VALUES (new.digest)\; END;
CREATE TRIGGER IF NOT EXISTS feed_delete AFTER DELETE ON heads
    BEGIN INSERT INTO feed (digest) VALUES (old.digest)\; END
"""
"""The feed of changes, once somebody watches; semicolons within a statement have a backslash."""
_EARLIER = """
SELECT id, digest, agent, chat, user, "group", scope, version, last_seq, created_at, updated_at,
    active, window, windows, chain, seal,
    (SELECT count(*) FROM messages m WHERE m.session = s.id) FROM heads s"""


def create(connection: sqlite3.Connection) -> None:
    """Creates the tables of version 2, which are migrated: there is one form of each."""
    run(connection, VERSION_2)


def migrate(connection: sqlite3.Connection) -> None:
    """Makes the tables of version 2 those of version 3; the messages stay where they are."""
    connection.execute(_NEW_HEADS)
    for id, digest, *columns, rows in connection.execute(_EARLIER).fetchall():
        forks = connection.execute(
            "SELECT number, parent, at FROM forks WHERE session = ? ORDER BY number", (id,)
        ).fetchall()
        _, names, *state = migrated(Earlier._make((digest, *columns, forks, rows)))
        connection.execute(
            f"INSERT INTO new_heads (id, {HEAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (id, digest, *names, *state),
        )
    run(connection, _IN_PLACE)


def run(connection: sqlite3.Connection, statements: str) -> None:
    """Executes statements, within the caller's transaction."""
    for statement in re.split(r"(?<!\\);", statements):
        connection.execute(statement.replace("\\;", ";"))


# --- checks that a file contains our tables, and nothing that executes by itself
#
# A foreign trigger, view, constraint or generated column would run with our statements, and could
# redirect what is written or falsify what is read.


_INDEX = "createvirtualtabletextsusingfts5(text)"
_NOISE = re.compile(r"""[\s"'`\[\]]+""")
_RUNS = re.compile(r"\b(check|generated|as|collate|virtual)\b", re.IGNORECASE)
_FOREIGN = (
    "the store contains triggers, views, indexes or constraints that dragoman did not create and"
    " that would run with its statements; inspect them with `SELECT * FROM sqlite_master` and drop"
    " them, or restore a backup"
)
INCOMPLETE = (
    "the store is damaged: its tables don't match its schema; it was not changed. Restore a"
    " backup, or recover what is readable with `sqlite3 FILE .recover`"
)


def expect_ours(connection: sqlite3.Connection, version: int) -> None:
    """Raises unless the file has the tables of this version, and nothing harmful."""
    ours = _shape(version)
    missing = dict(ours)
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM main.sqlite_master"):
        if kind == "index" and sql is None:
            continue  # created implicitly for a table
        if missing.pop((kind, name), None) == _plain(sql):
            continue
        if _feed().get((kind, name)) == _plain(sql):
            continue
        if (kind, name) in ours or not _is_harmless(kind, name, sql):
            raise StoreError(_FOREIGN)
    if missing:
        raise Corrupt(INCOMPLETE)


def _is_harmless(kind: str, name: str, sql: str) -> bool:
    """Tables that we never touch: statistics, leftovers of a recovery, and the search index's."""
    if kind != "table" or type(sql) is not str:
        return False
    return (name == "texts" and _plain(sql) == _INDEX) or _RUNS.search(sql) is None


@cache
def _plain(sql: str) -> str:
    """A definition without the differences between versions of SQLite."""
    if type(sql) is not str:
        return ""
    return _NOISE.sub("", sql).lower().replace("referencessessions(", "referencesheads(")


@cache
def _shape(version: int) -> dict[tuple[str, str], str]:
    """Tables and indexes of a version."""
    empty = sqlite3.connect(":memory:")
    try:
        create(empty)
        if version > EARLIER:
            migrate(empty)
        return _found(empty)
    finally:
        empty.close()


@cache
def _feed() -> dict[tuple[str, str], str]:
    """What there may be besides: the feed of changes."""
    empty = sqlite3.connect(":memory:")
    try:
        empty.execute("CREATE TABLE heads (digest)")
        run(empty, FEED)
        return _found(empty)
    finally:
        empty.close()


def _found(empty: sqlite3.Connection) -> dict[tuple[str, str], str]:
    found = empty.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {(kind, name): _plain(sql) for kind, name, sql in found}
