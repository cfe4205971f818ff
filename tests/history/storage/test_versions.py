"""Versions 1 and 2 of the stored form on every store: each reads or rejects the other's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman.history.records import message_of, read_line
from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.integrity import checksum_of
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.transfer import export, import_lines
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import WINDOW, bare, entry, head
from tests.environment import PATIENCE
from tests.history.golden import KEYS, MESSAGES, SESSION, VERSIONS, WHO, lines, rows
from tests.history.storage.version_1 import is_refused, plant, state

OLD = SESSION[1]
BRANCHES = (MAIN, 1, 2)


@pytest.fixture
def backend(new_backend: Backend) -> Backend:
    """Each backend, on a place where no store has been opened: earlier versions create theirs."""
    return new_backend


async def all_rows(storage: Storage) -> list[Row]:
    """The rows of all branches of the golden session."""
    return [row for branch in BRANCHES for row in await storage.rows(WHO, branch=branch)]


async def problems(storage: Storage) -> list[str]:
    """All but the remark on the golden session's seal: it has every field, and plain messages."""
    return [problem for problem in await storage.verify() if "a seal" not in problem]


async def expect_golden(storage: Storage, version: int, *more: str) -> None:
    """Assert that the golden session is there, intact, followed by later messages."""
    found = await all_rows(storage)
    golden, since = found[: len(MESSAGES)], found[len(MESSAGES) :]
    assert [bare(row) for row in golden] == [bare(row) for row in rows(version)]
    assert [message_of(row.body).text for row in since] == list(more)
    session = await head(storage, WHO)
    assert (session.forks, session.active) == (SESSION[version].forks, 2)
    assert SESSION[version].window in (session.window, session.windows)
    assert session.last_seq == 17 + len(more)
    assert await storage.count(WHO) == len(found)
    assert await storage.row(WHO, "msg_16") == found[15]
    assert [each.identity for each in await storage.sessions()] == [WHO]
    assert await problems(storage) == []


# --- golden files on every store


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_golden_export_can_be_imported_and_exported(backend: Backend, version: int) -> None:
    """With every field of the format, including unused ones."""
    async with backend.opened() as storage:
        report = await import_lines(storage, lines(version, "export.jsonl"))
        assert (report.sessions, report.messages, report.problems) == (1, 17, [])
        found = await head(storage, WHO)
        assert bare(found) == bare(SESSION[version])
        await expect_golden(storage, version)
    async with backend.opened() as storage:
        session, *again = [read_line(line) async for line in export(storage)]
    assert session == found
    assert [bare(row) for row in again if isinstance(row, Row)] == [bare(r) for r in rows(version)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_golden_sealed_records_are_opened(backend: Backend, version: int) -> None:
    """In any store."""
    session, sealed = read_line(lines(version, "sealed.jsonl")[0]), rows(version, "sealed.jsonl")
    assert isinstance(session, Session)
    inner = backend.new()
    inner = inner._storage if isinstance(inner, SealedStorage) else inner
    storage = SealedStorage(inner, keys=KEYS, current="2026", accept_plain=False)
    await storage.open()
    try:
        await storage.restore(session, sealed)
        assert [bare(row) for row in await storage.rows(WHO)] == [
            bare(r) for r in rows(version)[:3]
        ]
        assert (await head(storage, WHO)).window == SESSION[version].window
        assert (await head(storage, WHO)).windows == SESSION[version].windows
    finally:
        await storage.close()


async def test_checksums_and_windows_follow_their_messages(bare_backend: Backend) -> None:
    """A replaced row gets a new checksum, a cleared session has no windows."""
    async with bare_backend.opened() as storage:
        await storage.restore(SESSION[2], rows(2))
        row = await storage.row(WHO, "msg_02")
        assert row is not None
        await storage.rewrite(WHO, replaced=[row])
        replaced, other = await storage.row(WHO, "msg_02"), await storage.row(WHO, "msg_03")
        assert replaced is not None
        assert other is not None
        assert (replaced.checksum, replaced.chain) == (checksum_of(row), "p1-0.2")
        assert (other.checksum, other.chain) == ("s3", "c3")
        await storage.append(WHO, [entry("on")])
        session = await head(storage, WHO)
        assert (session.windows, session.chain) == (SESSION[2].windows, "n1-18.18.18.2")
        await storage.clear(WHO, at=1.0)
        session = await head(storage, WHO)
        assert (session.windows, session.seal, session.chain) == (None, None, "n1-19.18.0.0")


# --- a store of version 1


async def test_a_store_of_version_1_is_read_unchanged(backend: Backend) -> None:
    """Reading upgrades nothing: programs of version 1 keep working."""
    await plant(backend.new(), OLD, rows(1))
    before = state(backend.new(), OLD)
    async with backend.opened() as storage:
        await expect_golden(storage, 1)
    assert state(backend.new(), OLD) == before


async def test_the_first_write_upgrades_it_to_version_2(backend: Backend) -> None:
    """In place; the session then has rows of both versions. Version 1 rejects it from then on."""
    await plant(backend.new(), OLD, rows(1))
    async with backend.opened() as storage:
        await storage.append(WHO, [entry("on")], branch=2, expected=OLD.version)
        await expect_golden(storage, 1, "on")
    assert is_refused(backend.new(), OLD)
    async with backend.opened() as storage:
        await expect_golden(storage, 1, "on")


@pytest.mark.parametrize(
    "change",
    [
        lambda storage: storage.rewrite(WHO, removed=["msg_16"]),
        lambda storage: storage.rewrite(WHO, replaced=rows(1)[:1]),
        lambda storage: storage.fork(WHO, parent=0, at=1),
        lambda storage: storage.activate(WHO, 1),
        lambda storage: storage.keep_windows(WHO, WINDOW),
        lambda storage: storage.set_aside(WHO, [1], "broken"),
        lambda storage: storage.clear(WHO, at=1.0),
    ],
)
async def test_any_other_write_upgrades_as_well(
    backend: Backend, change: Callable[[Storage], Any]
) -> None:
    """Whatever is changed."""
    await plant(backend.new(), OLD, rows(1))
    async with backend.opened() as storage:
        await change(storage)
        assert await problems(storage) == []
    assert is_refused(backend.new(), OLD)


async def test_a_session_of_version_1_can_be_deleted(backend: Backend) -> None:
    """And created again, in version 2."""
    await plant(backend.new(), OLD, rows(1))
    async with backend.opened() as storage:
        assert await storage.delete(WHO)
        assert await storage.session(WHO) is None
        assert await storage.count(WHO) == 0
        await storage.restore(SESSION[2], rows(2))
        await expect_golden(storage, 2)
    assert is_refused(backend.new(), OLD)


async def test_new_sessions_are_rejected_by_version_1(backend: Backend) -> None:
    """Like upgraded ones."""
    async with backend.opened() as storage:
        await storage.append(WHO, [entry("a")])
    assert is_refused(backend.new(), OLD)


async def test_concurrent_upgrades(backend: Backend) -> None:
    """It is done once, and all of them have written; readers continue."""
    await plant(backend.new(), OLD, rows(1))
    storages = [backend.new() for _ in range(5)]
    reader, *writers = storages
    for storage in storages:
        await storage.open()
    await expect_golden(reader, 1)
    await asyncio.gather(*(each.append(WHO, [entry("on")], branch=2) for each in writers))
    for storage in storages:
        await expect_golden(storage, 1, *["on"] * 4)
        await storage.close()


# --- upgraded by several processes at once

_PROCESSES, _WRITES = 4, 3


@pytest.mark.thorough
def test_processes_that_upgrade_at_once(tmp_path: Path) -> None:
    """It is done once; all that each of them has written is there, and nothing else."""
    where = str(tmp_path / "store")
    asyncio.run(plant(_stored(where), OLD, rows(1)))
    command = [sys.executable, "-m", "tests.history.storage.test_versions", where]
    with ExitStack() as running:
        writers = [
            running.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(_PROCESSES)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"open\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.close()
        assert [writer.wait(PATIENCE) for writer in writers] == [0] * _PROCESSES
    assert asyncio.run(_check_after(_stored(where))) == 17 + _PROCESSES * _WRITES
    assert is_refused(_stored(where), OLD)


def _stored(where: str) -> Storage:
    return FileStorage(Path(where), blocking=True)


async def _append_with_others(storage: Storage) -> None:
    """Append when all are ready."""
    await storage.open()
    print("open", flush=True)  # noqa: T201 - for the process that has started it
    sys.stdin.read()
    for _ in range(_WRITES):
        await storage.append(WHO, [entry("on")], branch=2)
    await storage.close()


async def _check_after(storage: Storage) -> int:
    """Assert that the session is intact; returns how many messages it has."""
    await storage.open()
    held = await storage.count(WHO)
    await expect_golden(storage, 1, *["on"] * (held - 17))
    await storage.close()
    return held


if __name__ == "__main__":  # one of several processes
    asyncio.run(_append_with_others(_stored(sys.argv[1])))
