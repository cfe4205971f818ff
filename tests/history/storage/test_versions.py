"""Exports of versions 1 and 2 of the stored form, on every store."""

from __future__ import annotations

import pytest

from dragoman.history.records import message_of, read_line
from dragoman.history.storage.integrity import checksum_of
from dragoman.history.storage.protocol import MAIN, Row, Storage
from dragoman.history.transfer import export, import_lines
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import bare, entry, head
from tests.history.golden import MESSAGES, SESSION, VERSIONS, WHO, lines, rows

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
