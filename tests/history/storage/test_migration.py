"""Stores of November 2026 are migrated once, when they are opened: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from dragoman.errors import Corrupt, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import message_of
from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.integrity import Tally, protected
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.history.storage.redis import RedisStorage
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.history.storage.sqlite.connection import Connection
from dragoman.testing.conformance.stores.data import NOON, entry, head, texts
from tests.environment import PATIENCE
from tests.history.golden import SESSION, WHO, rows
from tests.history.storage import backend_postgres, backend_redis, earlier

OTHER = SessionIdentity(chat="other", user="Ana")
EMPTY = SessionIdentity(chat="cleared", user="Ana")
_TALLY = str(Tally(16, 17, 17, 2))
GOLDEN = msgspec.structs.replace(SESSION[2], chain=_TALLY)
ROWS = [protected(msgspec.structs.replace(row, checksum=None, chain=None)) for row in rows(2)]
SESSIONS: Sequence[tuple[Session, Sequence[Row]]] = [
    (GOLDEN, ROWS),
    (
        Session(OTHER, 1, 2, NOON, NOON, chain="n1-1.2.2.0"),
        [
            protected(Row(e.id, e.body, e.at, seq=number))
            for number, e in enumerate([entry("one", at=NOON), entry("two", at=NOON)], 1)
        ],
    ),
    (Session(EMPTY, 4, 3, NOON, NOON, chain="n1-4.3.0.0"), []),
]


class Kind(NamedTuple):
    """How a store of one kind is planted and opened."""

    place: Callable[[Path], Any]
    plant: Callable[[str, Sequence[tuple[Session, Sequence[Row]]]], None]
    new: Callable[[str], Storage]


@contextmanager
def _file(tmp_path: Path) -> Generator[str]:
    yield str(tmp_path / "a.db")


@contextmanager
def _folder(tmp_path: Path) -> Generator[str]:
    yield str(tmp_path / "in")


@contextmanager
def _schema(_tmp_path: Path) -> Generator[str]:
    with backend_postgres.schema() as name:
        yield name


@contextmanager
def _prefix(_tmp_path: Path) -> Generator[str]:
    with backend_redis.fresh_prefix() as prefix:
        yield prefix


KINDS = {
    "redis": Kind(
        _prefix,
        earlier.plant_redis,
        lambda where: RedisStorage(backend_redis.URL, prefix=where),
    ),
    "postgres": Kind(
        _schema,
        earlier.plant_postgres,
        lambda where: PostgresStorage(backend_postgres.URL, schema=where, connections=2),
    ),
    "sqlite": Kind(
        _file,
        lambda where, sessions: earlier.plant_sqlite(Path(where), sessions),
        lambda where: SQLiteStorage(where, blocking=True),
    ),
    "files": Kind(
        _folder,
        lambda where, sessions: earlier.plant_files(Path(where), sessions),
        lambda where: FileStorage(where, blocking=True),
    ),
}


@pytest.fixture(params=KINDS)
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A store of November 2026 of each kind."""
    kind = KINDS[request.param]
    with kind.place(tmp_path) as where:
        kind.plant(where, SESSIONS)
        yield lambda: kind.new(where)


async def everything(storage: Storage) -> dict[SessionIdentity, tuple[Session, list[Row]]]:
    """All sessions with all their rows."""
    found = {}
    for session in await storage.sessions():
        branches = (MAIN, *(fork.number for fork in session.forks))
        held = [
            row
            for branch in branches
            for row in await storage.rows(session.identity, branch=branch)
        ]
        found[session.identity] = session, held
    return found


async def problems(storage: Storage) -> list[str]:
    """All but the remark on the golden session's seal: it has every field, and plain messages."""
    return [problem for problem in await storage.verify() if "a seal" not in problem]


async def test_everything_is_there(planted: Callable[[], Storage]) -> None:
    """Sessions, branches, windows, seals, rows and their checksums, as they were; also later."""
    for _ in range(2):
        storage = planted()
        await storage.open()
        found = await everything(storage)
        assert found == {session.identity: (session, [*held]) for session, held in SESSIONS}
        assert await problems(storage) == []
        assert texts([hit.row for hit in await storage.search("two")]) == ["two"]
        await storage.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda storage: storage.append(WHO, [entry("on")], branch=2, expected=16),
        lambda storage: storage.rewrite(WHO, replaced=ROWS[:1], removed=["msg_16"]),
        lambda storage: storage.fork(WHO, parent=0, at=1),
        lambda storage: storage.activate(WHO, 1),
        lambda storage: storage.keep_windows(WHO, None),
        lambda storage: storage.set_aside(WHO, [1], "broken"),
        lambda storage: storage.clear(WHO, at=1.0),
        lambda storage: storage.delete(WHO),
        lambda storage: storage.forget("Ana"),
    ],
)
async def test_it_can_be_written(
    planted: Callable[[], Storage], change: Callable[[Storage], Any]
) -> None:
    """Whatever is done first; the other sessions stay as they were."""
    storage = planted()
    await storage.open()
    before = await everything(storage)
    await change(storage)
    after = await everything(storage)
    assert await problems(storage) == []
    kept = [who for who in (WHO, OTHER, EMPTY) if who in after and after[who] == before[who]]
    assert kept in ([OTHER, EMPTY], [WHO])
    await storage.close()


async def test_several_that_open_it_at_once(planted: Callable[[], Storage]) -> None:
    """It is migrated once."""
    storages = [planted() for _ in range(4)]
    await asyncio.gather(*(asyncio.to_thread(_open, each) for each in storages[1:]))
    await storages[0].open()
    assert (await everything(storages[0]))[WHO] == (GOLDEN, ROWS)
    await storages[0].close()


def _open(storage: Storage) -> None:
    async def both() -> None:
        await storage.open()
        await storage.close()

    asyncio.run(both())


# --- damage


_DAMAGES = (
    "version = 'x'",
    "last_seq = -1",
    "created_at = 'x'",
    "active = 7",
    '"window" = 3',
    "chain = 'n1-9.9.9.9'",
    "chain = 'none'",
    "agent = 'nobody'",
)


@pytest.mark.parametrize("damage", _DAMAGES)
async def test_a_damaged_session_stays_damaged_and_can_be_repaired(
    tmp_path: Path, damage: str
) -> None:
    """It is not opened as if it were intact; its messages are there after a repair."""
    path = tmp_path / "a.db"
    earlier.plant_sqlite(path, SESSIONS)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE heads SET {damage} WHERE digest = ?", (WHO.digest,))  # noqa: S608
    storage = SQLiteStorage(path, blocking=True)
    await storage.open()
    with pytest.raises(Corrupt):
        await storage.session(WHO)
    assert len(await problems(storage)) == 1
    assert texts(await storage.rows(OTHER)) == ["one", "two"]
    assert await storage.set_aside(WHO, [], "counted again") == 0
    session = await head(storage, WHO)
    assert session.forks == GOLDEN.forks
    assert await storage.count(WHO) == 17
    assert [message_of(row.body) for row in await storage.rows(WHO)] == [
        message_of(row.body) for row in ROWS if not row.branch
    ]
    assert await problems(storage) == []
    await storage.close()


# --- what is refused


async def test_a_file_of_version_1_is_refused_and_untouched(tmp_path: Path) -> None:
    """The error says what reads it."""
    path = tmp_path / "a.db"
    path.touch(0o600)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(earlier.SQLITE)
        db.execute(f"PRAGMA application_id={0x44726167}")
        db.execute("PRAGMA user_version=1")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="November 2026"):
        await SQLiteStorage(path).open()
    assert path.read_bytes() == before


async def test_a_read_only_file_says_why_it_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not changed."""
    path = tmp_path / "a.db"
    earlier.plant_sqlite(path, SESSIONS)
    connect = sqlite3.connect

    def read_only(path: Path, **named: Any) -> Any:
        return connect(f"file:{path}?mode=ro", uri=True, **named)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with pytest.raises(StoreError, match="read-only"):
        await SQLiteStorage(path).open()
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


async def test_keys_of_version_1_are_refused_and_untouched() -> None:
    """The error says what reads them."""
    import redis

    with backend_redis.fresh_prefix() as prefix, redis.Redis.from_url(backend_redis.URL) as client:
        key = f"{prefix}:{{{WHO.digest}}}:head"
        client.hset(key, mapping={"version": "16", "last_seq": "17"})
        storage = RedisStorage(backend_redis.URL, prefix=prefix)
        await storage.open()
        for call in (storage.session(WHO), storage.append(WHO, [entry("a")])):
            with pytest.raises(StoreError, match="November 2026"):
                await call
        assert client.hgetall(key) == {b"version": b"16", b"last_seq": b"17"}
        assert list(client.scan_iter(f"{prefix}:*")) == [key.encode()]
        await storage.close()


async def test_a_program_that_has_the_file_open_can_do_no_harm(tmp_path: Path) -> None:
    """The program of November 2026 does not find what it reads or writes first."""
    path = tmp_path / "a.db"
    earlier.plant_sqlite(path, SESSIONS)
    with closing(sqlite3.connect(path)) as db:
        db.execute("SELECT version, indexed FROM heads").fetchall()
        storage = SQLiteStorage(path, blocking=True)
        await storage.open()
        await storage.close()
        for statement in (
            "SELECT version, last_seq FROM heads",
            "UPDATE heads SET version = version + 1",
            "SELECT * FROM forks",
        ):
            with pytest.raises(sqlite3.OperationalError, match="no such"):
                db.execute(statement)


# --- several processes, and processes that are killed

_PROCESSES = 4


@pytest.mark.thorough
@pytest.mark.parametrize("name", KINDS)
def test_processes_that_migrate_at_once(name: str, tmp_path: Path) -> None:
    """Everything is there, and all that each of them has written then."""
    kind = KINDS[name]
    with kind.place(tmp_path) as where, ExitStack() as running:
        kind.plant(where, SESSIONS)
        command = [sys.executable, "-m", __name__, "0", name, where]
        writers = [running.enter_context(subprocess.Popen(command)) for _ in range(_PROCESSES)]
        assert [writer.wait(PATIENCE) for writer in writers] == [0] * _PROCESSES
        assert asyncio.run(_check_after(kind.new(where))) == _PROCESSES


@pytest.mark.thorough
@pytest.mark.parametrize("name", KINDS)
def test_killed_at_any_statement_it_is_of_one_form_or_the_other(name: str, tmp_path: Path) -> None:
    """The next program migrates it, or finds it migrated."""
    kind = KINDS[name]
    step, ended = 0, -signal.SIGKILL
    while ended:
        step += 1
        folder = tmp_path / str(step)
        folder.mkdir()
        with kind.place(folder) as where:
            kind.plant(where, SESSIONS)
            command = [sys.executable, "-m", __name__, str(step), name, where]
            ended = subprocess.run(command, check=False, timeout=PATIENCE).returncode
            assert ended in {0, -signal.SIGKILL}
            assert asyncio.run(_check_after(kind.new(where))) in {0, 1}
    assert step > 5


async def _check_after(storage: Storage) -> int:
    """Assert that all is there; returns how many messages were added."""
    await storage.open()
    found = await everything(storage)
    assert await problems(storage) == []
    await storage.close()
    assert found[WHO] == (GOLDEN, ROWS)
    return len(found[OTHER][1]) - 2


async def _append(storage: Storage, step: int) -> None:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _count_statements(count)
    await storage.open()
    await storage.append(OTHER, [entry("on", at=NOON)])
    await storage.close()


def _count_statements(count: Callable[[], None]) -> None:
    """Call back before each statement of any store."""

    def execute(self: Connection, *arguments: Any) -> Any:
        count()
        return sqlite3.Connection.execute(self, *arguments)

    async def executed(self: Any, *arguments: Any, **named: Any) -> Any:
        count()
        return await of_postgres(self, *arguments, **named)

    async def sent(self: Any, *arguments: Any, **named: Any) -> Any:
        count()
        return await of_redis(self, *arguments, **named)

    async def read(self: Any, *arguments: Any, **named: Any) -> Any:
        answer = await from_redis(self, *arguments, **named)
        count()
        return answer

    with suppress(ImportError):
        from psycopg import AsyncConnection

        of_postgres = AsyncConnection.execute
        setattr(AsyncConnection, "execute", executed)  # noqa: B010 - as below
    with suppress(ImportError):
        from redis.asyncio import Connection as RedisConnection

        of_redis = RedisConnection.send_packed_command
        from_redis = RedisConnection.read_response
        setattr(RedisConnection, "send_packed_command", sent)  # noqa: B010 - as below
        setattr(RedisConnection, "read_response", read)  # noqa: B010 - as below
    setattr(Connection, "execute", execute)  # noqa: B010 - types don't allow more
    for name in ("write", "pwrite", "rename", "unlink", "mkdir"):
        setattr(os, name, _counted(getattr(os, name), count))


def _counted(call: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        count()
        return call(*arguments, **named)

    return counted


if __name__ == "__main__":
    asyncio.run(_append(KINDS[sys.argv[2]].new(sys.argv[3]), int(sys.argv[1])))
