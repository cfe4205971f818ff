"""Sessions in PostgreSQL, in a separate schema for each test."""

# ruff: noqa: S608 - names of tables and columns, and values that these tests have chosen

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import Storage
from tests.environment import PATIENCE
from tests.history.storage.damaging import Damage, altered
from tests.history.torture import IN_FULL, IN_SHORT

URL = os.environ.get("DRAGOMAN_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")

_TABLES = (
    "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    " AND tablename NOT IN ('dragoman_migrations', 'key_store')"  # the versions of the tables
)


def sql(template: str, schema: str) -> bytes:
    """A statement about the tables of a schema."""
    return template.replace("our", f'"{schema}"').encode()


@contextmanager
def place(_tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A schema that nobody else uses."""
    with schema() as name:
        yield lambda: PostgresStorage(URL, schema=name, connections=4)


@contextmanager
def emptied(name: str) -> Generator[Callable[[], Storage]]:
    """A schema that other tests reuse: its tables stay, its rows are deleted."""
    try:
        yield lambda: PostgresStorage(URL, schema=name, connections=4)
    finally:
        import psycopg

        with psycopg.connect(URL, autocommit=True, connect_timeout=30) as connection:
            connection.execute(f"SET lock_timeout = {int(PATIENCE * 1000)}")
            found = connection.execute(_TABLES, (name,)).fetchall()
            for (table,) in found:
                connection.execute(sql(f'DELETE FROM our."{table}"', name))


@contextmanager
def schema() -> Generator[str]:
    """The name of a schema that is dropped afterwards; skips without a server."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        connection = psycopg.connect(URL, autocommit=True, connect_timeout=30)
    except psycopg.OperationalError:
        connection = None
    if connection is None:
        pytest.skip("no PostgreSQL server; name one in DRAGOMAN_TEST_POSTGRES")
    name = f"test_{uuid4().hex}"
    with connection:
        try:
            yield name
        finally:
            connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@asynccontextmanager
async def opened(schema: str, url: str = URL, **given: Any) -> AsyncGenerator[PostgresStorage]:
    """An open store in a schema."""
    storage = PostgresStorage(url, schema=schema, **given)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def asked(schema: str, template: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Runs a statement on a separate connection."""
    from psycopg import AsyncConnection

    async with await AsyncConnection.connect(URL, autocommit=True) as connection:
        cursor = await connection.execute(sql(template, schema), values or None)
        return await cursor.fetchall() if cursor.description else []


# --- damage

BEYOND = ("to no session", "don't exist", "index has messages", "don't match its key")
"""What no repair reaches: a session that is completely gone, or was replaced by another."""
KINDS = dict.fromkeys(("flip", "cut", "delete"), 1000 if IN_FULL else 1 if IN_SHORT else 5)
_COLUMNS = {
    "heads": 'digest agent chat "user" stamp at document last_seq indexed',
    "messages": "session seq branch at id model input output cache_read cache_write thinking"
    " reported_total checksum chain body",
    "texts": "session seq branch at words",
}


class PostgresDamager:
    """Tables in a schema; a change that violates a constraint is skipped."""

    def __init__(self, schema: str, connection: Any) -> None:
        self._schema = schema
        self._connection = connection

    def _run(self, template: str, values: Any = None) -> Any:
        return self._connection.execute(sql(template, self._schema), values)

    def new(self) -> Storage:
        """See `Damager`."""
        return PostgresStorage(URL, schema=self._schema, connections=2)

    async def keep(self) -> None:
        """See `Damager`."""
        for table in _COLUMNS:
            self._run(f"CREATE TABLE our.kept_{table} AS SELECT * FROM our.{table}")

    async def put_back(self) -> None:
        """See `Damager`."""
        for table in _COLUMNS:
            self._run(f"DELETE FROM our.{table}")
            self._run(
                f"INSERT INTO our.{table} OVERRIDING SYSTEM VALUE SELECT * FROM our.kept_{table}"
            )
        self._run("DELETE FROM our.aside")

    def damage(self, chance: Random, kind: str) -> Damage:
        """See `Damager`."""
        import psycopg

        while True:
            table = chance.choice(("heads", "messages", "messages", "texts"))
            column = chance.choice(_COLUMNS[table].split())
            places = self._run(f"SELECT ctid::text, {column}::text FROM our.{table}").fetchall()
            place, text = chance.choice(sorted(places))
            if kind == "delete":
                self._run(f"DELETE FROM our.{table} WHERE ctid = %s::text::tid", (place,))
                return Damage(f"{kind} {table} {place}")
            new = self._other(chance, kind, text)
            with suppress(psycopg.Error):
                kinds = self._run(f"SELECT pg_typeof({column})::text FROM our.{table} LIMIT 1")
                [(type_,)] = kinds.fetchall()
                self._run(
                    f"UPDATE our.{table} SET {column} = %s::text::{type_}"
                    " WHERE ctid = %s::text::tid",
                    (new, place),
                )
                return Damage(f"{kind} {table}.{column}: {text!r} -> {new!r}")

    def _other(self, chance: Random, kind: str, text: str | None) -> str | None:
        if text is None:
            return chance.choice(("", "x", "0", "-1", "base64:odd"))
        odd = chance.choice(
            (None, "NaN", "Infinity", "-3", "0", "{}", "{1}", "{{1,NULL,2}}", "{{7}}")
        )
        if chance.random() < 0.25:
            return odd
        return altered(chance, kind, text.encode()).decode("utf-8", "replace")


@contextmanager
def damaged(_tmp_path: Path) -> Generator[PostgresDamager]:
    """A schema to damage."""
    with schema() as name:
        import psycopg

        with psycopg.connect(URL, autocommit=True) as connection:
            yield PostgresDamager(name, connection)
