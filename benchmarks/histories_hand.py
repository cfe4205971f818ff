"""Transactions written by hand that do what an append does: a number, a row, its indexes, durable.

In our own tables, with our settings, and with all values of the row. It is ready before the clock
runs: not even the message has to be written as JSON.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from benchmarks.histories_places import POSTGRES
from benchmarks.histories_subjects import APPENDS, messages
from dragoman import SessionIdentity
from dragoman.history import SQLiteStorage
from dragoman.history.records import body_of

_NUMBER = """
UPDATE heads SET version = version + 1, last_seq = last_seq + 1, updated_at = ?
WHERE digest = ? RETURNING id, version, last_seq"""
_ROW = """
INSERT INTO messages (session, branch, seq, id, at, model, input, output, cache_read, cache_write,
                      thinking, reported_total, body)
VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_UNKNOWN = (None,) * 7  # the model, and what it used
_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON")


class Ready(NamedTuple):
    """A row, ready to be written."""

    id: str
    body: bytes


def rows(number: int = APPENDS) -> list[Ready]:
    """New rows, with what we would store."""
    return [Ready(message.id, body_of(message)) for message in messages(number)]


async def with_tables(path: Path, session: SessionIdentity) -> Path:
    """A file with our tables and a session."""
    storage = SQLiteStorage(path, blocking=True)
    await storage.open()
    await storage.clear(session, at=time())
    await storage.close()
    return path


class SQLite:
    """sqlite3, as it comes."""

    def __init__(self, path: Path, session: SessionIdentity) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._digest = session.digest
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")

    def add(self, row: Ready) -> int:
        """One transaction."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        now = time()
        session, _, seq = connection.execute(_NUMBER, (now, self._digest)).fetchone()
        connection.execute(_ROW, (session, seq, row.id, now, *_UNKNOWN, row.body))
        connection.execute("COMMIT")
        return int(seq)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class AioSQLite:
    """The same through aiosqlite."""

    def __init__(self, connection: Any, session: SessionIdentity) -> None:
        self._connection = connection
        self._digest = session.digest

    @classmethod
    @asynccontextmanager
    async def opened(cls, path: Path, session: SessionIdentity) -> AsyncGenerator[AioSQLite]:
        """On a file."""
        import aiosqlite

        async with aiosqlite.connect(path, isolation_level=None) as connection:
            for pragma in _PRAGMAS:
                await connection.execute(f"PRAGMA {pragma}")
            yield cls(connection, session)

    async def add(self, row: Ready) -> int:
        """One transaction, with as few calls as there can be."""
        connection = self._connection
        await connection.execute("BEGIN IMMEDIATE")
        now = time()
        [(session, _, seq)] = await connection.execute_fetchall(_NUMBER, (now, self._digest))
        await connection.execute(_ROW, (session, seq, row.id, now, *_UNKNOWN, row.body))
        await connection.execute("COMMIT")
        return int(seq)


class Postgres:
    """psycopg, a connection for each task: in a transaction, or all in one statement."""

    def __init__(self, schema: str, connections: Sequence[Any]) -> None:
        self._connections = connections
        self._number = _in(schema, _PG_NUMBER).encode()
        self._row = _in(schema, _PG_ROW).encode()
        self._both = _in(schema, _PG_BOTH).encode()

    @classmethod
    @asynccontextmanager
    async def opened(cls, schema: str, tasks: int) -> AsyncGenerator[Postgres]:
        """On a schema with our tables."""
        from psycopg import AsyncConnection

        async with AsyncExitStack() as connections:
            opened = [
                await connections.enter_async_context(
                    await AsyncConnection.connect(POSTGRES, autocommit=True, prepare_threshold=0)
                )
                for _ in range(tasks)
            ]
            yield cls(schema, opened)

    async def add(self, task: int, session: SessionIdentity, row: Ready) -> None:
        """One transaction of two statements."""
        connection = self._connections[task]
        now = time()
        async with connection.transaction():
            cursor = await connection.execute(self._number, (now, session.digest))
            id, _, seq = await cursor.fetchone()
            await connection.execute(
                self._row, (id, seq, now, row.id, *_UNKNOWN, row.body.decode())
            )

    async def add_at_once(self, task: int, session: SessionIdentity, row: Ready) -> None:
        """One statement, which is a transaction by itself."""
        now = time()
        cursor = await self._connections[task].execute(
            self._both, (now, session.digest, now, row.id, *_UNKNOWN, row.body.decode())
        )
        assert await cursor.fetchone()


_PG_NUMBER = """
UPDATE our.heads SET version = version + 1, last_seq = last_seq + 1, updated_at = %s
WHERE digest = %s RETURNING id, version, last_seq"""
_PG_COLUMNS = (
    "(session, branch, seq, at, id, model, input, output, cache_read, cache_write, thinking,"
    " reported_total, body)"
)
_PG_ROW = (
    f"INSERT INTO our.messages {_PG_COLUMNS} VALUES"  # noqa: S608 - constants
    " (%s, 0, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_PG_BOTH = (
    f"WITH s AS ({_PG_NUMBER}), m AS (INSERT INTO our.messages {_PG_COLUMNS}"  # noqa: S608 - constants
    " SELECT id, 0, last_seq, %s, %s, %s, %s::bigint, %s::bigint, %s::bigint, %s::bigint,"
    " %s::bigint, %s::bigint, %s FROM s) SELECT version, last_seq FROM s"
)


def _in(schema: str, template: str) -> str:
    return template.replace("our.", f'"{schema}".')
