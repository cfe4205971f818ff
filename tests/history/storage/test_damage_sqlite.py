"""Damage to SQLite's file, log and numbers, beside test_damage_conformance.py."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from dragoman import ChatHistory
from dragoman.errors import Corrupt, DragomanError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.testing.conformance.stores.data import ONE, TWO, entry, fill
from tests.history.storage.damaging import make
from tests.history.torture import IN_FULL, IN_SHORT

TIMES = 1000 if IN_FULL else 12 if IN_SHORT else 30


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SQLiteStorage]:
    """A storage on the file while it is open."""
    storage = SQLiteStorage(path, blocking=True)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def verified(path: Path) -> list[str]:
    """The problems that are found in a file."""
    path.chmod(0o600)  # noqa: ASYNC240 - nothing else runs in this loop
    async with opened(path) as storage:
        return await storage.verify()


def test_an_emptied_file_beside_its_log_is_corrupt_and_untouched(tmp_path: Path) -> None:
    """SQLite would treat it as new, and remove the log with its content."""
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    storage = SQLiteStorage(path, blocking=True)

    async def crash() -> None:
        await storage.open()
        await fill(storage, "a")
        copy.with_name("copy.db-wal").write_bytes(path.with_name("a.db-wal").read_bytes())
        await storage.close()

    asyncio.run(crash())
    copy.touch()
    log = copy.with_name("copy.db-wal").read_bytes()
    assert log
    with pytest.raises(DragomanError, match="file is empty"):
        asyncio.run(verified(copy))
    assert copy.with_name("copy.db-wal").read_bytes() == log
    assert copy.stat().st_size == 0


def test_a_damaged_log_is_reported(tmp_path: Path) -> None:
    """SQLite reads it up to the damage, as if nothing more had been written."""
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"

    async def written() -> tuple[bytes, bytes]:
        async with opened(path) as storage:
            await make(storage)
            await fill(storage, *"abcdef")  # a write each
            return path.read_bytes(), path.with_name("a.db-wal").read_bytes()

    raw, log = asyncio.run(written())
    for seed in range(TIMES // 3):
        hurt, dice = bytearray(log), random.Random(seed)
        place = dice.randrange(32, len(hurt) - 20 * 4120)
        hurt[place] ^= 1 << dice.randrange(8)
        copy.write_bytes(raw)
        copy.with_name("copy.db-wal").write_bytes(hurt)
        assert any("log" in each for each in asyncio.run(verified(copy))), place
    copy.write_bytes(raw)
    copy.with_name("copy.db-wal").write_bytes(log)
    copy.with_name("copy.db-wal").chmod(0o600)
    assert asyncio.run(verified(copy)) == []


async def test_a_reused_number_is_damage_and_no_duplicate(tmp_path: Path) -> None:
    """Otherwise a history would try new ids for ever."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a", "b")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE messages SET seq = 3 WHERE seq = 2")
    async with opened(path) as storage:
        history = await ChatHistory.open(ONE, storage)
        with pytest.raises(Corrupt, match="history repair"):
            await history.add("c")
        assert await storage.set_aside(ONE, [3], "it was moved") == 1
        await history.add("c")
        assert [message.text for message in await history.messages()] == ["a", "c"]
        assert [row.seq for row in await storage.rows(ONE)] == [1, 3]


async def test_cached_numbers_are_checked_again(tmp_path: Path) -> None:
    """Between two appends of one storage, others write, rewrite, delete and damage."""
    path = tmp_path / "a.db"
    async with opened(path) as first, opened(path) as second:
        await fill(first, "a")
        await fill(second, "b", "c")
        assert (await first.append(ONE, [entry("d")])).last_seq == 4
        made = await fill(first, "e")
        await second.rewrite(ONE, removed=[made[0].id])
        await fill(first, "f")
        await second.delete(ONE)
        assert (await first.append(ONE, [entry("g")])).version == 1
        await second.delete(ONE)
        await fill(second, "in its place", who=TWO)
        assert (await first.append(ONE, [entry("h")])).version == 1
        assert await first.verify() == []
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("UPDATE heads SET stamp = 7 WHERE digest = ?", (ONE.digest,))
        with pytest.raises(Corrupt, match="history repair"):
            await fill(first, "i")


async def test_the_numbers_of_a_thousand_sessions_are_cached(tmp_path: Path) -> None:
    """No more than that; evicted ones are read again."""
    storage = SQLiteStorage(tmp_path / "a.db", blocking=True)
    await storage.open()
    many = [SessionIdentity(chat=str(number)) for number in range(1010)]
    for who in (*many, *many):
        await storage.append(who, [entry("a")])
    assert len(storage._seen) == 1000
    assert await storage.count(many[0]) == await storage.count(many[-1]) == 2
    await storage.close()


@pytest.mark.parametrize(
    "change",
    [
        *(f"{name} = 7" for name in ("output", "cache_read", "thinking", "reported_total")),
        "output = 'seven'",
        "checksum = 'none'",
        "checksum = -1",
        "chain = ''",
    ],
)
async def test_damaged_columns_beside_a_message_are_reported(tmp_path: Path, change: str) -> None:
    """Token counts of a message without usage, and malformed checksums: `verify` names the row."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a", "b", "c")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE messages SET {change} WHERE seq = 2")  # noqa: S608 - our own
    async with opened(path) as storage:
        assert [problem for problem in await storage.verify() if "message 2" in problem]
