"""The SQLite backend: ownership of a file, failures, and leftovers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shutil import which

import pytest

from dragoman import Message, Usage
from dragoman.errors import Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Entry, Filter, Storage
from dragoman.history.storage.sqlite import SQLiteStorage, connection
from dragoman.history.storage.sqlite.schema import VERSION
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, entry, fill, said, texts

SENTINEL = "zanzibarsentinel"


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SQLiteStorage]:
    """A storage on the file while it is open."""
    storage = SQLiteStorage(path)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


def run(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Execute statements behind the storage's back; returns the rows of the last one."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        found = [raw.execute(statement).fetchall() for statement in statements]
    return found[-1]


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of every file in the directory."""
    return {each.name: each.read_bytes() for each in path.iterdir()}


async def fails(path: Path, kind: type[StoreError], match: str) -> None:
    """Assert that opening the file fails with this reason."""
    with pytest.raises(kind, match=match) as raised:
        await SQLiteStorage(path).open()
    assert raised.value.__context__ is None


# --- ownership of a file


async def test_another_programs_database_is_rejected_and_untouched(tmp_path: Path) -> None:
    """Our tables are never created in it."""
    path = tmp_path / "bookmarks.db"
    run(path, "CREATE TABLE places (url TEXT)", "INSERT INTO places VALUES ('x')")
    before = contents(tmp_path)
    await fails(path, StoreError, "another program's")
    assert contents(tmp_path) == before


async def test_a_database_with_another_application_id_is_rejected(tmp_path: Path) -> None:
    """Even without tables, and with a version like ours."""
    path = tmp_path / "other.db"
    run(path, "PRAGMA application_id=7", f"PRAGMA user_version={VERSION}")
    before = contents(tmp_path)
    await fails(path, StoreError, "another program's")
    assert contents(tmp_path) == before


async def test_a_newer_schema_is_rejected_and_untouched(tmp_path: Path) -> None:
    """The error says that a newer dragoman is needed."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a")
    run(path, f"PRAGMA user_version={VERSION + 1}")
    await fails(path, StoreError, "a newer dragoman")
    run(path, f"PRAGMA user_version={VERSION}")
    async with opened(path) as storage:
        assert texts(await storage.rows(ONE)) == ["a"]


async def test_an_empty_file_can_be_used(tmp_path: Path) -> None:
    """As `tempfile` creates them; directories are created as well."""
    path = tmp_path / "a.db"
    path.touch()
    async with opened(path) as storage:
        await fill(storage, "a")
    async with opened(tmp_path / "deep" / "er" / "b.db") as storage:
        await fill(storage, "b")
    assert run(path, "PRAGMA application_id") == [(0x44726167,)]


# --- damage


@pytest.mark.parametrize("text", [b"this is no database at all, it is a text\n" * 100, b"x" * 5000])
async def test_a_file_that_is_no_database_is_corrupt_and_untouched(
    tmp_path: Path, text: bytes
) -> None:
    """It may be any file of the user."""
    path = tmp_path / "letter.txt"
    path.write_bytes(text)
    await fails(path, Corrupt, "damaged or not a SQLite file")
    assert contents(tmp_path) == {"letter.txt": text}


async def test_a_damaged_page_is_corrupt_and_nothing_is_written(tmp_path: Path) -> None:
    """Reads and writes raise, `verify` says where, and the file is unchanged."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await storage.append(ONE, [entry("a" * 2000) for _ in range(100)])
    damage(path)
    before = path.read_bytes()
    async with opened(path) as storage:
        with pytest.raises(Corrupt, match="was not changed") as raised:
            await storage.rows(ONE)
        assert raised.value.__context__ is None
        assert await storage.verify() != []
    assert path.read_bytes() == before


def damage(path: Path) -> None:
    """Overwrite everything after the schema and the table of sessions with noise."""
    raw = bytearray(path.read_bytes())
    size = int.from_bytes(raw[16:18], "big")
    root = run(path, "SELECT rootpage FROM sqlite_master WHERE name = 'messages'")[0][0]
    assert isinstance(root, int)
    start = (root - 1) * size
    raw[start : start + size] = b"\xa5" * size
    path.write_bytes(raw)


# --- where it can't be written


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_reported(tmp_path: Path) -> None:
    """Opening fails, with the reason."""
    tmp_path.chmod(0o500)
    try:
        asyncio.run(fails(tmp_path / "a.db", StoreError, "can't be opened: Permission denied"))
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("path", ["/proc/dragoman/a.db", "/dev/null/a.db"])
async def test_a_directory_that_can_not_be_created_is_reported(path: str) -> None:
    """With our own error and the system's reason."""
    await fails(Path(path), StoreError, "can't be opened")


async def test_a_read_only_database_is_reported(tmp_path: Path) -> None:
    """Reading works; writing says why it fails."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a")
        await pragma(storage, "query_only=ON")
        with pytest.raises(StoreError, match="read-only"):
            await fill(storage, "b")
        assert texts(await storage.rows(ONE)) == ["a"]


async def pragma(storage: SQLiteStorage, text: str) -> None:
    """Set a pragma on the storage's own connection."""
    await storage.shelf.read(lambda raw: raw.execute(f"PRAGMA {text}").fetchall())


async def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    """Acknowledged messages are there, the failed one is not, and writing works again later."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "before")
        await pragma(storage, "max_page_count=1")  # as many as there are: no more room
        with pytest.raises(StoreError, match="the disk is full; nothing was written"):
            await storage.append(ONE, [entry("small"), entry("x" * 100_000)])
        assert texts(await storage.rows(ONE)) == ["before"]
        await pragma(storage, "max_page_count=1000000")
        await fill(storage, "after")
    async with opened(path) as storage:
        assert texts(await storage.rows(ONE)) == ["before", "after"]
        assert [row.seq for row in await storage.rows(ONE)] == [1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of half a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    is_possible = sys.platform == "linux" and os.geteuid() == 0 and which("mount") is not None
    if not is_possible or subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting a small disk takes Linux and root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def test_a_really_full_disk_is_reported_and_loses_nothing(small_disk: Path) -> None:
    """The write-ahead log can't grow: all acknowledged messages are there, and it opens again."""
    path = small_disk / "a.db"
    written: list[str] = []
    async with opened(path) as storage:
        with pytest.raises(StoreError, match="nothing was written"):
            await write_on_and_on(storage, written)
        assert len(written) > 10
        assert await storage.count(ONE) == len(written)
    async with opened(path) as storage:
        assert [row.id for row in await storage.rows(ONE)] == written
        assert await storage.verify() == []


async def write_on_and_on(storage: Storage, written: list[str]) -> None:
    """Append until it fails; returns the ids of acknowledged messages."""
    while True:
        one = entry("x" * 2000)
        await storage.append(ONE, [one])
        written.append(one.id)


async def test_a_store_that_stays_locked_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading works; the write says that nothing was written, and works later."""
    monkeypatch.setattr(connection, "_LOCK_TIMEOUT", 0.01)
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="nothing was written, try again"):
                await fill(storage, "b")
            assert texts(await storage.rows(ONE)) == ["a"]
        await fill(storage, "b")
        assert texts(await storage.rows(ONE)) == ["a", "b"]


# --- leftovers


async def test_forget_leaves_no_byte(tmp_path: Path) -> None:
    """Of replaced, removed, set-aside, cleared, indexed or current messages."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await leave_traces(storage)
        assert SENTINEL.encode() in b"".join(contents(tmp_path).values())
        erased = await storage.forget("Ana")
        assert not any("log" in each or "pages" in each for each in erased.remains)
        assert holding(tmp_path) == []
        assert said(await storage.search("bystander")) == ["a bystander"]
    assert holding(tmp_path) == []


async def leave_traces(storage: Storage) -> None:
    """Write, change and remove the sentinel in every way, with an index in use."""
    await fill(storage, "a bystander", who=TWO)
    made = await fill(storage, SENTINEL, f"{SENTINEL} a", f"{SENTINEL} b", f"{SENTINEL} c")
    await storage.append(ONE, [entry(f"{SENTINEL} " * 5000)])
    await storage.search(SENTINEL)
    await storage.rewrite(ONE, replaced=[entry("harmless", id=made[0].id)], removed=[made[1].id])
    await storage.set_aside(ONE, [3], SENTINEL)
    await storage.keep_windows(ONE, f'"{SENTINEL}"'.encode())
    cleared = SessionIdentity(user="Ana", chat="cleared")
    await fill(storage, f"{SENTINEL} d", who=cleared)
    await storage.search(SENTINEL)
    await storage.clear(cleared, at=NOON)
    named = SessionIdentity(user="Ana", chat=SENTINEL)
    await fill(storage, "x", who=named)


def holding(directory: Path) -> list[str]:
    """The files that still contain the sentinel, or its beginning."""
    return [name for name, raw in contents(directory).items() if SENTINEL[:12].encode() in raw]


async def test_forget_leaves_no_byte_of_earlier_deletions(tmp_path: Path) -> None:
    """The index has words of removed messages, even if no session is left."""
    async with opened(tmp_path / "a.db") as storage:
        await fill(storage, SENTINEL, f"{SENTINEL} again")
        await fill(storage, "a bystander", who=TWO)
        await storage.search("bystander")
        await storage.delete(ONE)
        await storage.forget("Ana")
        assert holding(tmp_path) == []


async def test_forget_reports_what_it_could_not_reach(tmp_path: Path) -> None:
    """During a read, the log can't be emptied; running it again does."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, SENTINEL)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM messages").fetchall()
            await pragma(storage, "busy_timeout=10")
            erased = await storage.forget("Ana")
            assert erased.sessions == 1
            assert any("run `forget` again" in each for each in erased.remains)
        again = await storage.forget("Ana")
        assert not any("run `forget` again" in each for each in again.remains)
        assert holding(tmp_path) == []


async def test_a_search_indexes_long_histories_in_batches(tmp_path: Path) -> None:
    """All are found, on all branches; messages that are changed later are found as they are."""
    async with opened(tmp_path / "a.db") as storage:
        await storage.append(ONE, [entry(f"word {number}") for number in range(2500)])
        await storage.fork(ONE, parent=0, at=1)
        await storage.append(ONE, [entry("word branch")], branch=1)
        await fill(storage, "word of another", who=TWO)
        assert len(await storage.search("word", Filter(user="Ana"), limit=9999)) == 2501
        assert run(tmp_path / "a.db", "SELECT count(*) FROM texts") == [(2502,)]
        made = await fill(storage, "word at last")
        assert len(await storage.search("word", limit=9999)) == 2503
        await storage.rewrite(ONE, replaced=[entry("other", id=made[0].id)])
        assert len(await storage.search("word", limit=9999)) == 2502
        assert said(await storage.search("other")) == ["other"]
        assert await storage.verify() == []


# --- how it is used


async def test_numbers_beyond_64_bits_are_rejected(tmp_path: Path) -> None:
    """With our own error."""
    async with opened(tmp_path / "a.db") as storage:
        with pytest.raises(StoreError, match="nothing was written"):
            await storage.append(ONE, [entry("a", usage=Usage(input=2**70))])
        assert await storage.session(ONE) is None


async def test_a_store_that_is_not_open_is_an_error(tmp_path: Path) -> None:
    """Before opening and after closing."""
    storage = SQLiteStorage(tmp_path / "a.db")
    with pytest.raises(StoreError, match="not open"):
        await storage.session(ONE)
    await storage.open()
    await storage.close()
    with pytest.raises(StoreError, match="not open"):
        await fill(storage, "a")


def test_an_unknown_durability_is_rejected(tmp_path: Path) -> None:
    """The error lists the known ones."""
    with pytest.raises(InvalidInputError, match="power"):
        SQLiteStorage(tmp_path / "a.db", durability="forever")  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
async def test_durability_sets_the_synchronous_pragma(
    tmp_path: Path, durability: str, synchronous: int
) -> None:
    """NORMAL survives the end of the process, FULL a power cut."""
    storage = SQLiteStorage(tmp_path / "a.db", durability=durability)  # type: ignore[arg-type]  # parametrised
    await storage.open()
    found = await storage.shelf.read(lambda raw: raw.execute("PRAGMA synchronous").fetchone()[0])
    assert found == synchronous
    await storage.close()


def test_blocking_code_can_use_a_blocking_store(tmp_path: Path) -> None:
    """No call waits for an event loop."""
    storage = SQLiteStorage(tmp_path / "a.db", blocking=True)
    message = Message.user("a")
    calls = (
        storage.open(),
        storage.append(ONE, [Entry(message.id, message.to_json(), NOON)]),
        storage.search("a"),
        storage.forget("Ana"),
        storage.close(),
    )
    for call in calls:
        with pytest.raises(StopIteration):
            call.send(None)
