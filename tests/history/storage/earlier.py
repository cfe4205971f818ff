"""Stores as the program of November 2026 left them (version 2): frozen, it does not change.

Each session has its messages, branches, windows, seal, checksums and tally.
"""

# ruff: noqa: S608 - constants

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b, sha1
from pathlib import Path
from typing import Any

import msgspec

from dragoman.history.records import row_line
from dragoman.history.storage.protocol import Row, Session
from tests.history.storage.backend_postgres import URL
from tests.history.storage.backend_redis import URL as REDIS

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


# --- PostgreSQL

_MADE = "(number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
POSTGRES = (
    """
    CREATE TABLE our.sessions (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest text COLLATE "C" NOT NULL CONSTRAINT sessions_by_digest UNIQUE,
        agent text COLLATE "C", chat text COLLATE "C", "user" text COLLATE "C",
        "group" text COLLATE "C", scope text COLLATE "C",
        version bigint NOT NULL,
        last_seq bigint NOT NULL,
        created_at double precision NOT NULL,
        updated_at double precision NOT NULL,
        active integer NOT NULL DEFAULT 0,
        indexed bigint NOT NULL DEFAULT 0,
        forks bigint[] NOT NULL DEFAULT '{}',
        "window" text
    ) WITH (fillfactor = 50)""",
    'CREATE INDEX sessions_by_user ON our.sessions (left("user", 256))',
    "CREATE INDEX sessions_by_chat ON our.sessions (left(chat, 256))",
    'CREATE INDEX sessions_by_group ON our.sessions (left("group", 256))',
    """
    CREATE TABLE our.messages (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        branch integer NOT NULL,
        at double precision NOT NULL,
        id text COLLATE "C" NOT NULL,
        model text COLLATE "C",
        input bigint, output bigint, cache_read bigint, cache_write bigint,
        thinking bigint, reported_total bigint,
        body text NOT NULL,
        PRIMARY KEY (session, branch, seq)
    )""",
    "CREATE UNIQUE INDEX messages_by_id ON our.messages (session, id)",
    """
    CREATE TABLE our.texts (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        branch integer NOT NULL,
        at double precision NOT NULL,
        words text[] COLLATE "C" NOT NULL,
        PRIMARY KEY (session, branch, seq)
    )""",
    "CREATE INDEX texts_by_word ON our.texts USING gin (words)",
    """
    CREATE TABLE our.aside (
        digest text COLLATE "C" NOT NULL,
        "user" text COLLATE "C",
        seq bigint NOT NULL,
        branch integer NOT NULL,
        at double precision NOT NULL,
        id text COLLATE "C" NOT NULL,
        reason text NOT NULL,
        body text NOT NULL
    )""",
    "ALTER TABLE our.sessions RENAME TO heads",
    "ALTER TABLE our.heads ADD windows text, ADD chain text, ADD seal text",
    "ALTER TABLE our.messages ADD checksum text, ADD chain text",
)


def plant_postgres(schema: str, sessions: Sequence[tuple[Session, Sequence[Row]]]) -> None:
    """Create a schema."""
    import psycopg

    def run(template: str, values: Sequence[Any] = ()) -> None:
        db.execute(template.replace("our.", f'"{schema}".').encode(), values or None)

    with psycopg.connect(URL) as db:
        db.execute(f'CREATE SCHEMA "{schema}"'.encode())
        run(f"CREATE TABLE our.dragoman_migrations {_MADE}")
        for statement in POSTGRES:
            run(statement)
        for number in (1, 2):
            run("INSERT INTO our.dragoman_migrations (number) VALUES (%s)", (number,))
        for number, (session, rows) in enumerate(sessions, 1):
            mark = f" {shape_of(session)}" if session.forks else ""
            values = [
                session.identity.digest, *session.identity.columns, session.version,
                session.last_seq, session.created_at, session.updated_at, session.active,
                _text(session.window), _text(session.windows), f"{session.chain}{mark}",
                _text(session.seal), [[f.number, f.parent, f.at] for f in session.forks],
            ]  # fmt: skip
            marks = ", ".join(["%s"] * len(values))
            run(f"INSERT INTO our.heads ({_HEAD}, forks) VALUES ({marks})", values)
            for row in rows:
                columns = [
                    number, row.branch, row.seq, row.id, row.at, row.model, *counts_of(row),
                    row.checksum, row.chain, _text(row.body),
                ]  # fmt: skip
                marks = ", ".join(["%s"] * len(columns))
                run(f"INSERT INTO our.messages ({_MESSAGE}) VALUES ({marks})", columns)


def _text(body: bytes | None) -> str | None:
    if body is None:
        return None
    text = body.decode()
    assert "\0" not in text
    return text


# --- Redis


def plant_redis(prefix: str, sessions: Sequence[tuple[Session, Sequence[Row]]]) -> None:
    """Create keys."""
    import redis

    with redis.Redis.from_url(REDIS) as client:
        for session, rows in sessions:
            _plant_keys(client, prefix, session, rows)


def _plant_keys(client: Any, prefix: str, session: Session, rows: Sequence[Row]) -> None:
    digest = session.identity.digest
    at = f"{prefix}:{{{digest}}}"
    head: dict[str, Any] = {
        "identity": msgspec.json.encode(session.identity.columns),
        "version": session.version,
        "last_seq": session.last_seq,
        "created_at": repr(session.created_at),
        "updated_at": repr(session.updated_at),
        "active": session.active,
        "forks": max((fork.number for fork in session.forks), default=0),
        "generation": "0123456789abcdef",
        "token": "0123456789abcdef 16 17",
        **{f"fork:{fork.number}": f"{fork.parent} {fork.at}" for fork in session.forks},
    }
    for name in ("window", "windows", "chain", "seal"):
        if getattr(session, name) is not None:
            head[name] = getattr(session, name)
    if session.forks:
        head["shape"] = shape_of(session)
    client.hset(f"{at}:session", mapping=head)
    client.lpush(f"{at}:done", "0123456789abcdef 16")
    text = "kept in version 2 of the stored form; this keeps older ones off"
    client.mset({f"{at}:head": text, f"{at}:rows": text})
    client.zadd(f"{prefix}:sessions", {digest: 0})
    for row in rows:
        client.hset(f"{at}:records", str(row.seq), row_line(row, version=session.version))
        client.hset(f"{at}:ids", row.id, f"{row.seq} {row.branch}")
        client.zadd(f"{at}:branch:{row.branch}", {str(row.seq): row.seq})


# --- files


def plant_files(root: Path, sessions: Sequence[tuple[Session, Sequence[Row]]]) -> None:
    """Create a directory."""
    for session, rows in sessions:
        digest = session.identity.digest
        path = root / digest[:2] / f"{digest}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lines = [_line_in_file(row, digest, session.version) for row in rows]
        path.touch(0o600)
        path.write_bytes(first_line(session, len(rows), sum(map(len, lines))) + b"".join(lines))


def _line_in_file(row: Row, digest: str, version: int) -> bytes:
    chain = f"f1-{digest[:8]}.{row.branch}.{row.seq}.{version}.0"
    return row_line(msgspec.structs.replace(row, chain=chain), version=version) + b"\n"


def first_line(session: Session, rows: int, size: int) -> bytes:
    """The first line of a file that was last rewritten at this version."""
    fixed: dict[str, Any] = {"identity": session.identity, "created_at": session.created_at}
    if session.active:
        fixed["active"] = session.active
    if session.forks:
        fixed["forks"] = [
            {"number": f.number, "parent": f.parent, "at": f.at} for f in session.forks
        ]
    for name in ("window", "windows", "seal"):
        raw = getattr(session, name)
        if raw is not None:
            fixed[name] = msgspec.Raw(raw)
    rest = msgspec.json.encode(fixed)[1:]
    version, last_seq, at = session.version, session.last_seq, repr(session.updated_at)
    text = (
        f'"version":{version},"last_seq":{last_seq},"updated_at":{at}'
        f',"chain":"f1-{rows}.{version}.{size}-5ac0be11-'
    ).encode()
    hashed = blake2b(rest, digest_size=8)
    hashed.update(text)
    text = (text + hashed.hexdigest().encode() + b'"').ljust(208)
    return b'{"dragoman":2,"kind":"Session","value":{' + text + b"," + rest + b"}\n"
