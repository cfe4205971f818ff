"""Sessions in MariaDB, in a separate database for each test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest

from dragoman.history.storage.mariadb import MariaDBStorage
from dragoman.history.storage.protocol import Storage

URL = os.environ.get("DRAGOMAN_TEST_MARIADB", "mariadb://root@127.0.0.1:3306")


def run(statement: str) -> None:
    """Runs a statement on a connection of its own."""
    from asyncmy import connect

    parts = urlsplit(URL)

    async def work() -> None:
        link = await connect(
            host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""), connect_timeout=10,
        )  # fmt: skip
        async with link.cursor() as cursor:
            await cursor.execute(statement)
        link.close()

    # In a thread, because a loop may be running here.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


def end_connections(name: str) -> None:
    """End all connections to a database, on the server."""
    named = f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"  # noqa: S608
    run(
        f"BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;"
        f" FOR one IN ({named}) DO KILL CONNECTION one.id; END FOR; END"
    )


@contextmanager
def database() -> Generator[str]:
    """The URL of a database that is dropped afterwards; skips without a server."""
    errors = pytest.importorskip("asyncmy.errors", reason="asyncmy is not installed")
    name = f"test_{uuid4().hex}"
    try:
        run(f"CREATE DATABASE {name}")
        is_there = True
    except (errors.MySQLError, OSError):
        is_there = False
    if not is_there:
        pytest.skip("no MariaDB server; name one in DRAGOMAN_TEST_MARIADB")
    try:
        yield f"{URL.rstrip('/')}/{name}"
    finally:
        run(f"DROP DATABASE {name}")


@contextmanager
def place(_tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A database that nobody else uses."""
    with database() as url:
        yield lambda: MariaDBStorage(f"{url}?connections=4")
