"""Who can read a SQLite store, and what others may have placed at its location."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.errors import Corrupt, StoreError
from dragoman.history.storage.sqlite import SQLiteStorage, connection
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, entry, fill, said, texts
from tests.history.storage import earlier
from tests.history.storage.test_sqlite import contents, fails, opened, pragma, run

SENTINEL = "zanzibarsentinel"


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Generator[int]:
    """Umasks that remove nothing, write access, or everything."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The modes of everything in a folder."""
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*")}


async def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """The database, its log, and every folder that is created for them."""
    async with opened(tmp_path / "deep" / "er" / "a.db") as storage:
        await fill(storage, "a")
        await storage.search("a")
        found = modes(tmp_path)
    assert found.pop("deep") == found.pop("deep/er") == 0o700
    assert set(found) == {"deep/er/a.db", "deep/er/a.db-wal", "deep/er/a.db-shm"}
    assert set(found.values()) == {0o600}, umask


_TRACED = """
import asyncio, os, sys
os.umask(0)
seen = []
def watch(event, arguments):
    if event in ("open", "sqlite3.connect") and str(arguments[0]).endswith("a.db"):
        there = os.path.exists(arguments[0])
        seen.append((event, oct(os.stat(arguments[0]).st_mode & 0o777) if there else "absent"))
sys.addaudithook(watch)
from dragoman.history.storage.sqlite import SQLiteStorage
asyncio.run(SQLiteStorage(sys.argv[1]).open())
print(seen)
"""


def test_a_database_is_private_before_sqlite_opens_it(tmp_path: Path) -> None:
    """There is no moment at which others could open it."""
    command = [sys.executable, "-c", _TRACED, str(tmp_path / "a.db")]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told.strip() == "[('open', 'absent'), ('sqlite3.connect', '0o600')]"


async def test_an_existing_file_keeps_its_mode_and_verify_reports_it(tmp_path: Path) -> None:
    """It may be shared with a group; world-readable files are reported."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a")
    for mode, told in ((0o644, 1), (0o660, 0), (0o602, 1)):
        path.chmod(mode)
        async with opened(path) as storage:
            assert len([text for text in await storage.verify() if "chmod 600" in text]) == told
        assert stat.S_IMODE(path.stat().st_mode) == mode


# --- a folder in a world-writable directory


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder like /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


async def test_a_shared_folder_is_fine_if_everything_is_ours(shared: Path) -> None:
    """Created there, reopened, and in our own folder below it."""
    for path in (shared / "a.db", shared / "mine" / "a.db"):
        for count in (1, 2):
            async with opened(path) as storage:
                await fill(storage, "a")
                assert await storage.count(ONE) == count


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "pipe"])
async def test_a_link_in_a_shared_folder_is_rejected(
    shared: Path, tmp_path: Path, end: str, kind: str
) -> None:
    """Its owner could redirect our conversations."""
    target, planted = tmp_path / "target", shared / f"a.db{end}"
    target.write_bytes(b"")
    if kind == "pipe":
        os.mkfifo(planted)
    else:
        (planted.symlink_to if kind == "symbolic link" else planted.hardlink_to)(target)
    await fails(shared / "a.db", StoreError, "world-writable directory")
    assert target.read_bytes() == b""


async def test_a_dangling_link_in_a_shared_folder_creates_nothing(
    shared: Path, tmp_path: Path
) -> None:
    """No file appears at its target."""
    (shared / "a.db").symlink_to(tmp_path / "target")
    await fails(shared / "a.db", StoreError, "world-writable directory")
    assert not (tmp_path / "target").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
@pytest.mark.parametrize("what", ["a.db", "a.db-wal", "a.db-shm", "."])
async def test_another_users_files_in_a_shared_folder_are_rejected(shared: Path, what: str) -> None:
    """So are their folders, and files in them."""
    folder = shared / "theirs" if what == "." else shared
    folder.mkdir(exist_ok=True)
    planted = folder if what == "." else folder / what
    if what != ".":
        planted.touch()
    os.chown(planted, 12345, 12345)
    await fails(folder / "a.db", StoreError, "use a directory of your own")


async def test_a_link_in_our_own_folder_is_followed(tmp_path: Path) -> None:
    """Files created at its target are private as well."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.db").symlink_to(tmp_path / "elsewhere" / "b.db")
    async with opened(tmp_path / "a.db") as storage:
        await fill(storage, "a")
    assert modes(tmp_path / "elsewhere") == {"b.db": 0o600}
    async with opened(tmp_path / "elsewhere" / "b.db") as storage:
        assert texts(await storage.rows(ONE)) == ["a"]


# --- code in the schema

FOREIGN = [
    "CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM forks; END",
    "CREATE TRIGGER texts AFTER UPDATE ON heads BEGIN SELECT 1; END",
    "CREATE VIEW v AS SELECT body FROM messages",
    "CREATE VIEW texts AS SELECT 'x' AS text",
    "CREATE INDEX i ON messages (lower(id))",
    "CREATE UNIQUE INDEX i ON messages (at)",
    "CREATE TABLE t (a, b GENERATED ALWAYS AS (a + 1))",
    "CREATE TABLE t (a CHECK (a > 1))",
    "CREATE VIRTUAL TABLE t USING fts5 (a)",
    "CREATE VIRTUAL TABLE texts USING fts5 (text, content='aside')",
    "ALTER TABLE messages ADD COLUMN extra TEXT CHECK (extra IS NULL)",
    "ALTER TABLE messages ADD COLUMN extra TEXT",
    "ALTER TABLE heads ADD COLUMN extra INTEGER GENERATED ALWAYS AS (stamp + 1)",
    "DROP INDEX messages_by_id",
    "DROP TABLE aside",
    "ALTER TABLE heads RENAME TO sessions",
    "PRAGMA user_version=2",
    "PRAGMA user_version=0",
    "PRAGMA user_version=-1",
]


@pytest.mark.parametrize("statement", FOREIGN)
async def test_foreign_schema_objects_are_rejected(tmp_path: Path, statement: str) -> None:
    """A trigger, a view, a constraint or a table that isn't ours; nothing is written."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a")
    run(path, statement)
    before = contents(tmp_path)
    await fails(path, StoreError, "did not create|its tables don.t match")
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "statement", ["ANALYZE", "CREATE TABLE lost_and_found (a)", "VACUUM", "REINDEX"]
)
async def test_harmless_schema_objects_are_accepted(tmp_path: Path, statement: str) -> None:
    """Statistics, and the table that a recovery leaves; also with an index in use."""
    path = tmp_path / "a.db"
    async with opened(path) as storage:
        await fill(storage, "a")
        await storage.search("a")
    run(path, statement)
    async with opened(path) as storage:
        assert texts(await storage.rows(ONE)) == ["a"]
        assert said(await storage.search("a")) == ["a"]


async def test_an_old_file_with_a_trigger_is_rejected(tmp_path: Path) -> None:
    """Before it is upgraded."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as db:
        earlier.plant_sqlite(path, [])
        db.execute("CREATE TRIGGER t AFTER INSERT ON messages BEGIN SELECT 1; END")
    await fails(path, StoreError, "did not create")


async def test_functions_in_the_schema_are_not_trusted(tmp_path: Path) -> None:
    """The connection sets SQLite's option for that, too."""
    async with opened(tmp_path / "a.db") as storage:
        for name, value in (("trusted_schema", 0), ("secure_delete", 1)):
            assert await storage.shelf.read(_setting, name) == value


def _setting(raw: sqlite3.Connection, name: str) -> object:
    return raw.execute(f"PRAGMA {name}").fetchone()[0]


# --- removed data


def holding(folder: Path) -> list[str]:
    """The files that still contain the sentinel, or its beginning."""
    return [name for name, raw in contents(folder).items() if SENTINEL[:12].encode() in raw]


async def test_removed_sessions_leave_no_byte(tmp_path: Path) -> None:
    """Deleted or cleared: neither in rows nor in the search index."""
    async with opened(tmp_path / "a.db") as storage:
        for remove in (storage.delete, lambda who: storage.clear(who, at=NOON)):
            await fill(storage, *(f"{SENTINEL} {number}" for number in range(50)))
            await fill(storage, "a bystander", who=TWO)
            assert len(await storage.search(SENTINEL)) == 50
            await fill(storage, f"{SENTINEL} later")
            await remove(ONE)
            assert await storage.search(SENTINEL) == []
            await pragma(storage, "wal_checkpoint(TRUNCATE)")
            assert holding(tmp_path) == []
        assert said(await storage.search("bystander", limit=1)) == ["a bystander"]
    assert holding(tmp_path) == []


async def test_removed_and_replaced_messages_leave_no_byte_once_closed(tmp_path: Path) -> None:
    """Nor do messages replaced by a copy of the session."""
    async with opened(tmp_path / "a.db") as storage:
        made = await fill(storage, f"{SENTINEL} a", f"{SENTINEL} b", "c", f"{SENTINEL} d")
        await storage.search(SENTINEL)
        await storage.rewrite(ONE, replaced=[entry("a", id=made[0].id)], removed=[made[1].id])
        await storage.rewrite(ONE, removed=[made[3].id])
        assert await storage.search(SENTINEL) == []
    assert holding(tmp_path) == []


def test_an_emptied_file_is_reported_if_its_log_is_left(tmp_path: Path) -> None:
    """Without the log it looks like a new file."""
    path = tmp_path / "a.db"
    path.touch()
    path.with_name("a.db-wal").write_bytes(b"x" * 100)
    with pytest.raises(Corrupt, match="file is empty"):
        asyncio.run(SQLiteStorage(path).open())
    assert connection.exposed_files(tmp_path / "absent.db") == []
