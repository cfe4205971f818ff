"""Damage to a SQLite file, in its bytes and in its rows: reported, or without effect."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from dragoman import ChatHistory, Usage
from dragoman.errors import Corrupt, DragomanError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import message_in
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.protocol import MAIN, Storage
from dragoman.history.storage.sqlite import SQLiteStorage
from tests.history.storage.making import NOON, ONE, TWO, entry, fill
from tests.history.torture import IN_FULL, IN_SHORT

THREE = SessionIdentity(agent="guide", chat="9", user="Cleo")
WHO = (ONE, TWO, THREE)
TIMES = 1000 if IN_FULL else 12 if IN_SHORT else 30


class Seen(NamedTuple):
    """What was read, and the damage that was reported."""

    read: dict[str, Any]
    told: list[str]


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SQLiteStorage]:
    """A storage on the file while it is open."""
    storage = SQLiteStorage(path, blocking=True)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def write(storage: Storage) -> None:
    """Several sessions, with branches, edits, removals, usage, and an index."""
    made = await fill(storage, *(f"word {number} of one" for number in range(12)))
    await storage.append(ONE, [entry("x" * 6000, at=NOON, model="m", usage=Usage(input=3))])
    await storage.rewrite(
        ONE, replaced=[entry("changed word", id=made[2].id)], removed=[made[3].id]
    )
    await storage.fork(ONE, parent=MAIN, at=5)
    await storage.append(ONE, [entry("word on a branch"), entry("and another")], branch=1)
    await storage.fork(ONE, parent=1, at=14)
    await storage.append(ONE, [entry("deeper word", usage=Usage(1, 2, 3, 4, 5, 15))], branch=2)
    await storage.activate(ONE, 1)
    await fill(storage, "a word to Ben", "and a second", who=TWO)
    await fill(storage, *(f"Cleo {number}" for number in range(5)), who=THREE)
    await storage.search("word")
    await fill(storage, "a word that is not indexed", who=THREE)


@cache
def original() -> tuple[bytes, Seen]:
    """An intact file, and what is read from it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"

        async def make() -> Seen:
            async with opened(path) as storage:
                await write(storage)
            raw = path.read_bytes()
            found = await look(path)
            path.write_bytes(raw)
            return found

        seen = asyncio.run(make())
        assert seen.told == []
        return path.read_bytes(), seen


async def look(path: Path) -> Seen:
    """Read everything in every way, and verify."""
    seen = Seen({}, [])

    async def ask(name: str, question: Any) -> None:
        try:
            seen.read[name] = await question
        except DragomanError as error:
            seen.told.append(f"{name}: {error}")

    path.chmod(0o600)  # noqa: ASYNC240 - nothing else runs in this loop
    storage = SQLiteStorage(path, blocking=True)
    try:
        await storage.open()
    except DragomanError as error:
        seen.told.append(str(error))
        return seen
    try:
        for who in WHO:
            await _look_at(storage, who, ask, seen)
        await ask("sessions", _digests(storage))
        await ask("search", _hits(storage))
        for by in ("session", "user", "model", "day"):
            await ask(f"totals by {by}", _totals(storage, by))
        seen.told.extend(await storage.verify())
    finally:
        await storage.close()
    return seen


async def _look_at(
    storage: Storage, who: SessionIdentity, ask: Callable[..., Any], seen: Seen
) -> None:
    try:
        history = await ChatHistory.open(who, storage)
    except DragomanError as error:
        seen.told.append(str(error))
        return
    try:
        for branch in (MAIN, 1, 2):
            await ask(f"{who.chat} rows {branch}", _bodies(storage, who, branch))
            await ask(f"{who.chat} count {branch}", storage.count(who, branch))
        await ask(f"{who.chat} count", storage.count(who))
        await ask(f"{who.chat} messages", _said(history.messages()))
        await ask(f"{who.chat} tail", _said(history.tail(3)))
        for id in [id for id, _ in seen.read.get(f"{who.chat} rows 0", [])][:3]:
            await ask(f"{who.chat} message {id}", _said_one(history, id))
        seen.told.extend(damaged.reason for damaged in history.damaged)
    finally:
        await history.close()


async def _bodies(storage: Storage, who: SessionIdentity, branch: int) -> list[tuple[str, str]]:
    rows = await storage.rows(who, branch=branch)
    return [(row.id, message_in(row).text) for row in rows]


async def _said(messages: Any) -> list[str]:
    return [message.text for message in await messages]


async def _said_one(history: ChatHistory, id: str) -> str:
    return (await history.message(id)).text


async def _digests(storage: Storage) -> list[str]:
    return [session.identity.digest for session in await storage.sessions()]


async def _hits(storage: Storage) -> list[str]:
    return [message_in(hit.row).text for hit in await storage.search("word")]


async def _totals(storage: Storage, by: Any) -> list[Any]:
    return [(total.key, total.usage, total.messages) for total in await storage.totals(by)]


# --- bytes


def flip(raw: bytearray, dice: random.Random) -> None:
    """One bit to eight bytes."""
    for _ in range(dice.choice((1, 1, 1, 8))):
        raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)


def overwrite(raw: bytearray, dice: random.Random) -> None:
    """A range of zeros or noise."""
    start, length = dice.randrange(len(raw)), dice.randrange(1, 600)
    piece = bytes(length) if dice.random() < 0.5 else dice.randbytes(length)
    raw[start : start + length] = piece[: len(raw) - start]


def cut(raw: bytearray, dice: random.Random) -> None:
    """Cut off the end."""
    del raw[dice.randrange(len(raw)) :]


def cut_pages(raw: bytearray, dice: random.Random) -> None:
    """Cut off whole pages at the end."""
    del raw[4096 * dice.randrange(1, len(raw) // 4096) :]


def delete(raw: bytearray, dice: random.Random) -> None:
    """Remove a range from the middle."""
    start = dice.randrange(len(raw))
    del raw[start : start + dice.randrange(1, 5000)]


@pytest.mark.parametrize("damage", [flip, overwrite, cut, cut_pages, delete])
def test_damaged_bytes_are_reported_or_without_effect(
    tmp_path: Path, damage: Callable[[bytearray, random.Random], None]
) -> None:
    """Whatever happens to the file: what is read is unchanged, or damage is reported."""
    raw, before = original()
    silent = []
    for seed in range(TIMES):
        hurt = bytearray(raw)
        damage(hurt, random.Random(seed))
        path = tmp_path / f"{seed}.db"
        path.write_bytes(hurt)
        seen = asyncio.run(look(path))
        if hurt and not seen.told and seen.read != before.read:
            silent.append(seed)
        for each in tmp_path.glob(f"{seed}.db*"):
            each.unlink()
    assert silent == []


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
    seen = asyncio.run(look(copy))
    assert "file is empty" in seen.told[0]
    assert copy.with_name("copy.db-wal").read_bytes() == log
    assert copy.stat().st_size == 0


def test_a_damaged_log_is_reported(tmp_path: Path) -> None:
    """SQLite reads it up to the damage, as if nothing more had been written."""
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"

    async def make() -> tuple[bytes, bytes]:
        async with opened(path) as storage:
            await write(storage)
            await fill(storage, *"abcdef")  # a write each
            return path.read_bytes(), path.with_name("a.db-wal").read_bytes()

    raw, log = asyncio.run(make())
    for seed in range(TIMES // 3):
        hurt, dice = bytearray(log), random.Random(seed)
        place = dice.randrange(32, len(hurt) - 20 * 4120)
        hurt[place] ^= 1 << dice.randrange(8)
        copy.write_bytes(raw)
        copy.with_name("copy.db-wal").write_bytes(hurt)
        assert any("log" in each for each in asyncio.run(look(copy)).told), place
    copy.write_bytes(raw)
    copy.with_name("copy.db-wal").write_bytes(log)
    copy.with_name("copy.db-wal").chmod(0o600)
    assert asyncio.run(look(copy)).told == []


# --- rows

ODD = (
    "NULL", "'text'", "''", "x'ff00'", "-1", "0", "1", "2", "7", "9223372036854775807",
    "-9223372036854775808", "1.5", "9e999", "-9e999", "CAST(x'ff' AS TEXT)", "zeroblob(3)",
)  # fmt: skip
COLUMNS = {
    "heads": (
        *("id", "digest", "agent", "chat", "user", '"group"', "scope", "version", "last_seq"),
        *("created_at", "updated_at", "active", "indexed", "window", "windows", "chain", "seal"),
    ),
    "messages": (
        *("rowid", "session", "branch", "seq", "id", "at", "model", "input", "output"),
        *("reported_total", "body", "checksum", "chain"),
    ),
    "forks": ("session", "number", "parent", "at"),
}
CASES = [
    (table, column, value)
    for table, columns in COLUMNS.items()
    for column in columns
    for value in ODD
]


def change(path: Path, table: str, statement: str, dice: random.Random) -> bool:
    """Change one row of a file behind the storage's back; returns whether that was possible."""
    key = "number" if table == "forks" else "rowid"
    every = f"SELECT {key} FROM {table} ORDER BY {key}"  # noqa: S608 - names from above
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        keys = [found for (found,) in raw.execute(every)]
        try:
            done = raw.execute(f"{statement} WHERE {key} = ?", (dice.choice(keys),))
        except sqlite3.Error:
            return False
        return done.rowcount > 0


def set_one(path: Path, table: str, column: str, value: str, dice: random.Random) -> bool:
    """Change the value of a column in one row."""
    return change(path, table, f"UPDATE {table} SET {column} = {value}", dice)  # noqa: S608


@pytest.mark.parametrize("number", range(8))
def test_damaged_columns_are_reported_or_without_effect(tmp_path: Path, number: int) -> None:
    """For any value of any type."""
    raw, before = original()
    path, silent = tmp_path / "a.db", []
    cases = CASES[number::8]
    dice = random.Random(number)
    chosen = cases if IN_FULL else dice.sample(cases, 20)
    for table, column, value in chosen:
        path.write_bytes(raw)
        if not set_one(path, table, column, value, dice):
            continue
        seen = asyncio.run(look(path))
        if not seen.told and seen.read != before.read:
            silent.append((table, column, value))
    assert silent == []


@pytest.mark.parametrize("table", COLUMNS)
def test_removed_rows_are_reported(tmp_path: Path, table: str) -> None:
    """For each of a session's records, messages and branches."""
    raw, _ = original()
    path = tmp_path / "a.db"
    for seed in range(8):
        path.write_bytes(raw)
        statement = f"DELETE FROM {table}"  # noqa: S608 - names from above
        assert change(path, table, statement, random.Random(seed))
        assert asyncio.run(look(path)).told


# --- what comes after damage


async def readable(storage: Storage) -> dict[tuple[str | None, str], str]:
    """The messages that can be read, by session and id."""
    found: dict[tuple[str | None, str], str] = {}
    for who in WHO:
        for branch in (MAIN, 1, 2):
            for row in await storage.rows(who, branch=branch):
                if damage_to(row) is None:
                    found[who.chat, row.id] = message_in(row).text
    return found


async def repair(storage: Storage) -> None:
    """As `dragoman history repair` does: numbers first, then unreadable records."""
    for who in WHO:
        await storage.set_aside(who, [], "counted again")
        session = await storage.session(who)
        assert session is not None
        broken = [
            row.seq
            for branch in (MAIN, *(fork.number for fork in session.forks))
            for row in await storage.rows(who, branch=branch)
            if damage_to(row) is not None
        ]
        await storage.set_aside(who, broken, "unreadable")


_BEYOND_REPAIR = {  # it is unknown whose they are
    ("heads", "id"),
    ("heads", "digest"),
    ("messages", "session"),
    ("messages", "rowid"),
    ("forks", "session"),
}


@pytest.mark.parametrize("number", range(8))
def test_a_damaged_file_can_be_written_to_and_repaired(tmp_path: Path, number: int) -> None:
    """Appending destroys nothing more; the repair leaves no problem and loses nothing else."""
    raw, _ = original()
    path, dice = tmp_path / "a.db", random.Random(number)
    cases = [case for case in CASES if case[:2] not in _BEYOND_REPAIR][number::8]
    for table, column, value in cases if IN_FULL else dice.sample(cases, 15):
        path.write_bytes(raw)
        path.chmod(0o600)
        if set_one(path, table, column, value, dice):
            assert asyncio.run(_write_and_repair(path)) == [], (table, column, value)


async def _write_and_repair(path: Path) -> list[str]:
    async with opened(path) as storage:
        before = await readable(storage)
        for who in WHO:
            try:
                await storage.append(who, [entry("one more")])
            except Corrupt:
                continue  # nothing was changed
        assert before.items() <= (await readable(storage)).items()
        before = await readable(storage)
        await repair(storage)
        assert await readable(storage) == before
        for who in WHO:
            await storage.append(who, [entry("and one more")])
        await storage.search("word")
        return await storage.verify()


async def test_a_reused_number_is_damage_and_no_duplicate(tmp_path: Path) -> None:
    """Otherwise a history would try new ids for ever."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a", "b")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE heads SET last_seq = 1, chain = NULL")
    async with opened(path) as storage:
        history = await ChatHistory.open(ONE, storage)
        with pytest.raises(Corrupt, match="history repair"):
            await history.add("c")
        await storage.set_aside(ONE, [], "counted again")
        await history.add("c")
        assert [message.text for message in await history.messages()] == ["a", "b", "c"]


@pytest.mark.parametrize("last", [2**62, 2**63 - 1])
@pytest.mark.parametrize(
    ("indexed", "found"), [("0", 1), ("-9223372036854775808", 1), ("-9e999", 0), ("'x'", 0)]
)
async def test_a_search_ends_whatever_the_numbers_are(
    tmp_path: Path, last: int, indexed: str, found: int
) -> None:
    """It iterates over the existing messages."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a word")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE heads SET last_seq = {last}, indexed = {indexed}")  # noqa: S608
    async with opened(path) as storage:
        assert len(await storage.search("word")) == found
        assert await storage.verify()


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
            raw.execute("UPDATE heads SET last_seq = 0 WHERE digest = ?", (ONE.digest,))
        with pytest.raises(Corrupt, match="history repair"):
            await fill(first, "i")


async def test_the_numbers_of_a_thousand_sessions_are_cached(tmp_path: Path) -> None:
    """No more than that; evicted ones are read again."""
    storage = SQLiteStorage(tmp_path / "a.db", blocking=True)
    await storage.open()
    many = [SessionIdentity(chat=str(number)) for number in range(1010)]
    for who in (*many, *many):
        await storage.append(who, [entry("a")])
    assert len(storage._opened.known) == 1000
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


async def test_a_malformed_tally_is_reported(tmp_path: Path) -> None:
    """Without a valid one, missing messages would go unnoticed."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a", "b", "c")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE heads SET chain = 'none'")
    async with opened(path) as storage:
        assert [problem for problem in await storage.verify() if "counters" in problem]
