"""Sessions in MariaDB, in a separate database for each test."""

# ruff: noqa: S608 - names of tables and columns, and values that these tests have chosen

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest

from dragoman.history.storage.mariadb import MariaDBStorage
from dragoman.history.storage.protocol import Storage
from tests.history.storage.damaging import Damage, altered
from tests.history.torture import IN_FULL, IN_SHORT

URL = os.environ.get("DRAGOMAN_TEST_MARIADB", "mariadb://root@127.0.0.1:3306")


def run(*statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
    """Runs statements on a connection of their own; returns the rows of the last."""
    from asyncmy import connect

    parts = urlsplit(URL)

    async def work() -> list[tuple[Any, ...]]:
        link = await connect(
            host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""), connect_timeout=10, db=database,
            autocommit=True,
        )  # fmt: skip
        try:
            async with link.cursor() as cursor:
                for statement in statements:
                    await cursor.execute(statement)
                return [*(await cursor.fetchall() or ())]
        finally:
            link.close()

    # In a thread, because a loop may be running here.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work()).result()


def end_connections(name: str) -> None:
    """End all connections to a database, on the server."""
    named = f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"
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


# --- damage

BEYOND = ("to no session", "don't match its key")
"""What no repair reaches: rows whose session is gone, and a session under another's name."""
KINDS = dict.fromkeys(("flip", "cut", "odd", "delete"), 1000 if IN_FULL else 2 if IN_SHORT else 5)
_COLUMNS = {
    "heads": "digest agent chat user stamp at document",
    "messages": "session seq branch id at model input output cache_read cache_write thinking"
    " reported_total checksum chain body",
}
_KEYS = {"heads": ("id",), "messages": ("session", "seq", "branch")}
_ODD = ("NULL", "''", "'x'", "0", "-1", "7", "1.5", "X'FF00'")


class MariaDBDamager:
    """Tables in a database; a change that violates a constraint is skipped."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database = url.rpartition("/")[2]

    def _run(self, *statements: str) -> list[tuple[Any, ...]]:
        return run("SET sql_mode = ''", *statements, database=self._database)

    def new(self) -> Storage:
        """See `Damager`."""
        return MariaDBStorage(f"{self._url}?connections=2")

    async def keep(self) -> None:
        """See `Damager`."""
        for table in _COLUMNS:
            self._run(f"CREATE TABLE `kept_{table}` AS SELECT * FROM `dragoman_{table}`")

    async def put_back(self) -> None:
        """See `Damager`."""
        for table in _COLUMNS:
            self._run(
                f"DELETE FROM `dragoman_{table}`",
                f"INSERT INTO `dragoman_{table}` SELECT * FROM `kept_{table}`",
            )
        self._run("DELETE FROM `dragoman_aside`")

    def damage(self, chance: Random, kind: str) -> Damage | None:
        """See `Damager`."""
        from asyncmy.errors import MySQLError

        table = chance.choice(("heads", "messages"))
        keys = ", ".join(_KEYS[table])
        column = chance.choice(_COLUMNS[table].split())
        places = self._run(
            f"SELECT {keys}, hex(`{column}`) FROM `dragoman_{table}` ORDER BY {keys}"
        )
        *place, raw = chance.choice(places)
        where = " AND ".join(f"{k} = {v}" for k, v in zip(_KEYS[table], place, strict=True))
        if kind == "delete":
            self._run(f"DELETE FROM `dragoman_{table}` WHERE {where}")
            return Damage(f"{kind} {table} {place}", is_told=True)
        new = chance.choice(_ODD)
        if kind != "odd":
            digits = raw or ""
            value = altered(chance, kind, bytes.fromhex("0" * (len(digits) % 2) + digits))
            new = f"X'{value.hex()}'"
        try:
            self._run(f"UPDATE `dragoman_{table}` SET `{column}` = {new} WHERE {where}")
        except MySQLError:
            return None
        return Damage(f"{kind} {table}.{column} of {place}: {raw} -> {new}")


@contextmanager
def damaged(_tmp_path: Path) -> Generator[MariaDBDamager]:
    """A database to damage."""
    with database() as url:
        yield MariaDBDamager(url)
