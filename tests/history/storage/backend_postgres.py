"""Sessions in PostgreSQL, in a separate schema for each test."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import Storage
from tests.environment import PATIENCE

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
                connection.execute(sql(f'DELETE FROM our."{table}"', name))  # noqa: S608 - a name of ours


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
