"""Stores as the program of November 2026 left them (version 2): frozen, it does not change.

Each session has its messages, branches, windows, seal, checksums and tally.
"""

# ruff: noqa: S608 - constants

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha1
from pathlib import Path
from typing import Any

from dragoman.history.storage.protocol import Row, Session

SQLITE = """
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
"""
SQLITE_2 = """
    ALTER TABLE sessions RENAME TO heads;
    ALTER TABLE heads ADD COLUMN windows BLOB;
    ALTER TABLE heads ADD COLUMN chain TEXT;
    ALTER TABLE heads ADD COLUMN seal BLOB;
    ALTER TABLE messages ADD COLUMN checksum TEXT;
    ALTER TABLE messages ADD COLUMN chain TEXT;
"""
_HEAD = (
    'digest, agent, chat, "user", "group", scope, version, last_seq, created_at, updated_at,'
    ' active, "window", windows, chain, seal'
)
_MESSAGE = (
    "session, branch, seq, id, at, model, input, output, cache_read, cache_write, thinking,"
    " reported_total, checksum, chain, body"
)


def shape_of(session: Session) -> str:
    """The hash of a session's branches."""
    forks = sorted((fork.number, fork.parent, fork.at) for fork in session.forks)
    text = "".join(f";{number}:{parent} {at}" for number, parent, at in forks)
    hashed = sha1(f"{session.active}{text}".encode(), usedforsecurity=False)
    return "f1-" + hashed.hexdigest()[:16]


def counts_of(row: Row) -> list[int | None]:
    """The columns of a message's usage."""
    used = row.usage
    if used is None:
        return [None] * 6
    counts = [used.input, used.output, used.cache_read, used.cache_write, used.thinking]
    return [*counts, used.reported_total]


def plant_sqlite(path: Path, sessions: Sequence[tuple[Session, Sequence[Row]]]) -> None:
    """Create a file."""
    path.touch(0o600)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(SQLITE)
        db.executescript(SQLITE_2)
        db.execute(f"PRAGMA application_id={0x44726167}")
        db.execute("PRAGMA user_version=2")
        for number, (session, rows) in enumerate(sessions, 1):
            _plant_session(db, number, session, rows)


def _plant_session(db: Any, number: int, session: Session, rows: Sequence[Row]) -> None:
    mark = f"/{shape_of(session)}" if session.forks or session.active else ""
    chain = None if session.chain is None else session.chain + mark
    values = [
        session.identity.digest, *session.identity.columns, session.version, session.last_seq,
        session.created_at, session.updated_at, session.active, session.window, session.windows,
        chain, session.seal,
    ]  # fmt: skip
    db.execute(f"INSERT INTO heads ({_HEAD}) VALUES ({_marks(values)})", values)
    for fork in session.forks:
        db.execute(
            "INSERT INTO forks VALUES (?, ?, ?, ?)", (number, fork.number, fork.parent, fork.at)
        )
    for row in rows:
        columns = [
            number, row.branch, row.seq, row.id, row.at, row.model, *counts_of(row), row.checksum,
            row.chain, row.body,
        ]  # fmt: skip
        db.execute(f"INSERT INTO messages ({_MESSAGE}) VALUES ({_marks(columns)})", columns)


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
