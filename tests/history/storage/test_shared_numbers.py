"""A damaged number may equal that of another message: repair must not remove the other."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import MAIN, Storage
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.testing.conformance.stores.data import ONE, entry, texts
from tests.history.storage import backend_postgres

_MOVE = "UPDATE {}messages SET seq = 4 WHERE seq = 3"


Place = AsyncGenerator[tuple[Storage, Callable[[], Awaitable[object]]]]


@asynccontextmanager
async def _in_sqlite(place: Path) -> Place:
    async def damage() -> None:
        with closing(sqlite3.connect(place / "a.db")) as db, db:
            db.execute(_MOVE.format(""))

    storage = SQLiteStorage(place / "a.db")
    await storage.open()
    yield storage, damage
    await storage.close()


@asynccontextmanager
async def _in_files(place: Path) -> Place:
    async def damage() -> None:
        _alter(place)

    storage = FileStorage(place)
    await storage.open()
    yield storage, damage
    await storage.close()


def _alter(place: Path) -> None:
    (file,) = place.glob("*/*.jsonl")
    raw = file.read_bytes()
    assert raw.count(b'"seq":3,') == 1
    file.write_bytes(raw.replace(b'"seq":3,', b'"seq":4,'))


@asynccontextmanager
async def _in_postgres(_place: Path) -> Place:
    with backend_postgres.schema() as schema:
        storage = PostgresStorage(backend_postgres.URL, schema=schema)
        await storage.open()
        yield storage, lambda: backend_postgres.asked(schema, _MOVE.format("our."))
        await storage.close()


async def _broken(storage: Storage) -> list[int]:
    """The numbers that a repair would set aside."""
    found = [row for branch in (0, 1, 2) for row in await storage.rows(ONE, branch=branch)]
    return [row.seq for row in found if damage_to(row) is not None]


@pytest.mark.parametrize("place", [_in_files, _in_postgres, _in_sqlite])
async def test_an_intact_message_of_the_same_number_stays(
    place: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Only the moved one is set aside."""
    async with place(tmp_path) as (storage, damage):
        await storage.append(ONE, [entry("a"), entry("b")])
        for branch, text in ((1, "c"), (2, "d")):
            await storage.fork(ONE, parent=MAIN, at=1)
            await storage.append(ONE, [entry(text)], branch=branch)
        await damage()
        assert await storage.verify() != []
        assert await storage.set_aside(ONE, await _broken(storage), "it is broken") == 1
        assert texts(await storage.rows(ONE, branch=1)) == []
        assert texts(await storage.rows(ONE, branch=2)) == ["d"]
        assert await storage.verify() == []
        assert await storage.set_aside(ONE, [4], "somebody wants it away") == 1
        assert await storage.count(ONE) == 2
