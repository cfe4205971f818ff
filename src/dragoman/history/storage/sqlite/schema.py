"""The tables of the SQLite backend, as numbered migrations; each is applied once.

`body` is a BLOB so that a damaged one can still be read and set aside. The search index is a
separate table, updated when somebody searches; `heads.indexed` records its progress.

The table of sessions is called `heads` since migration 2, which goes with version 2 of the stored
form: a program of version 1 that has the file open does not find it, and can do no harm.
"""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
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
    """,
    """
    ALTER TABLE sessions RENAME TO heads;
    ALTER TABLE heads ADD COLUMN windows BLOB;
    ALTER TABLE heads ADD COLUMN chain TEXT;
    ALTER TABLE heads ADD COLUMN seal BLOB;
    ALTER TABLE messages ADD COLUMN checksum TEXT;
    ALTER TABLE messages ADD COLUMN chain TEXT;
    """,
)

AS_STEP_2 = """
CREATE TEMP VIEW heads AS
    SELECT *, NULL AS windows, NULL AS chain, NULL AS seal FROM main.sessions;
CREATE TEMP VIEW messages AS SELECT *, NULL AS checksum, NULL AS chain FROM main.messages
"""
"""Views through which a file at migration 1 is read, so that reading does not migrate it."""
NO_VIEWS = "DROP VIEW IF EXISTS temp.heads; DROP VIEW IF EXISTS temp.messages"
