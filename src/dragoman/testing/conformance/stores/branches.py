"""Branches, windows, copies and damaged records, on every backend."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.errors import Conflict, Corrupt, NotFound
from dragoman.history.records import message_in, message_of
from dragoman.history.storage.protocol import (
    MAIN,
    Entry,
    Fork,
    Session,
)
from dragoman.testing.conformance.loops import in_loop
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    NOON,
    ONE,
    WINDOW,
    bare,
    copy_of,
    entry,
    fill,
    head,
    texts,
    unchanged,
)

# --- branches and the window


@in_loop
async def test_a_fork_is_a_branch_with_its_own_messages(backend: Backend) -> None:
    """Numbers continue over all branches; the new one becomes active."""
    async with backend.opened() as storage:
        await fill(storage, "a", "b")
        assert await storage.fork(ONE, parent=MAIN, at=1) == 1
        await storage.append(ONE, [entry("B")], branch=1)
        await storage.append(ONE, [entry("c")])
        assert await storage.fork(ONE, parent=1, at=3) == 2
        session = await head(storage)
        assert session.forks == (Fork(1, MAIN, 1), Fork(2, 1, 3))
        assert (session.active, session.version, session.last_seq) == (2, 6, 4)
        main = await storage.rows(ONE)
        assert [(row.seq, row.branch) for row in main] == [(1, 0), (2, 0), (4, 0)]
        other = await storage.rows(ONE, branch=1)
        assert [(row.seq, row.branch) for row in other] == [(3, 1)]
        assert await storage.rows(ONE, branch=2) == []


@in_loop
async def test_a_fork_of_a_missing_branch_is_not_found(backend: Backend) -> None:
    """Nothing changes."""
    async with backend.opened() as storage:
        await fill(storage, "a")
        before = await head(storage)
        with pytest.raises(NotFound):
            await storage.fork(ONE, parent=3, at=1)
        with pytest.raises(Conflict):
            await storage.fork(ONE, parent=MAIN, at=1, expected=7)
        await unchanged(storage, before, "a")


@in_loop
async def test_activating_a_branch_is_no_new_version(backend: Backend) -> None:
    """It is remembered (under encryption as a version); an unknown branch can't be activated."""
    async with backend.opened() as storage:
        await fill(storage, "a")
        await storage.fork(ONE, parent=MAIN, at=1)
        before = await head(storage)
        await storage.activate(ONE, MAIN)
        after = await head(storage)
        assert (after.active, after.version) == (MAIN, before.version)
        with pytest.raises(NotFound):
            await storage.activate(ONE, 2)
        assert await storage.session(ONE) == after


@in_loop
async def test_the_window_is_kept_byte_for_byte(backend: Backend) -> None:
    """Without a new version; None removes it."""
    window = '{"dragoman":1,"kind":"Window","value":{"note":"é 🙂"}}'.encode()
    async with backend.opened() as storage:
        await fill(storage, "a")
        assert (await head(storage)).windows is None
        await storage.keep_windows(ONE, window)
        session = await head(storage)
        assert (session.windows, session.version) == (window, 1)
        await fill(storage, "b")
        assert (await head(storage)).windows == window
        assert [each.windows for each in await storage.sessions()] == [window]
        await storage.keep_windows(ONE, None)
        assert (await head(storage)).windows is None


@in_loop
async def test_windows_replace_those_of_an_earlier_release(backend: Backend) -> None:
    """Both are read; storing the new one removes the old."""
    session, rows = copy_of(9, 2, 3, 5)
    old = msgspec.structs.replace(session, window=WINDOW)
    async with backend.opened() as storage:
        assert await storage.restore(old, rows)
        assert (await head(storage)).window == WINDOW
        await storage.keep_windows(ONE, WINDOW)
        found = await head(storage)
        assert (found.window, found.windows) == (None, WINDOW)


# --- restore, set_aside


@in_loop
async def test_a_copy_is_restored_completely(backend: Backend) -> None:
    """Numbers, branches, times, window and version are the copy's; writes continue from there."""
    session, rows = copy_of(9, 2, 3, 5, 8)
    async with backend.opened() as storage:
        assert await storage.restore(session, rows) is True
    async with backend.opened() as storage:
        assert bare(await head(storage)) == session
        assert [bare(row) for row in await storage.rows(ONE)] == [rows[0], rows[3]]
        assert [bare(row) for row in await storage.rows(ONE, branch=1)] == rows[1:3]
        appended = await storage.append(ONE, [entry("new")], branch=1, expected=9)
        assert (appended.version, appended.last_seq) == (10, 21)


@in_loop
async def test_a_newer_copy_replaces_the_session(backend: Backend) -> None:
    """Nothing of the older one is left."""
    async with backend.opened() as storage:
        (old,) = await fill(storage, "old")
        await storage.fork(ONE, parent=MAIN, at=1)
        await storage.fork(ONE, parent=MAIN, at=1)
        session, rows = copy_of(4, 2, 4)
        assert await storage.restore(session, rows) is True
        assert bare(await head(storage)) == session
        assert [bare(row) for row in await storage.rows(ONE)] == rows
        assert await storage.row(ONE, old.id) is None
        assert await storage.count(ONE) == 2


@pytest.mark.parametrize("version", [2, 1])
@in_loop
async def test_an_equal_or_older_copy_is_rejected(backend: Backend, version: int) -> None:
    """The session is unchanged."""
    async with backend.opened() as storage:
        await fill(storage, "a", "b")
        before = await head(storage)
        assert await storage.restore(*copy_of(version, 1)) is False
        await unchanged(storage, before, "a", "b")


@in_loop
async def test_an_empty_copy_is_a_cleared_session(backend: Backend) -> None:
    """It exists, without messages."""
    async with backend.opened() as storage:
        session = Session(ONE, 5, 7, NOON, NOON)
        assert await storage.restore(session, []) is True
        assert bare(await head(storage)) == session
        await unchanged(storage, await head(storage))


@in_loop
async def test_rows_are_restored_in_any_order(backend: Backend) -> None:
    """Their numbers define the order."""
    session, rows = copy_of(9, 2, 4, 6)
    async with backend.opened() as storage:
        await storage.restore(session, rows[::-1])
        assert [bare(row) for row in await storage.rows(ONE)] == rows


@in_loop
async def test_messages_that_are_set_aside_leave_the_session(backend: Backend) -> None:
    """On any branch; the rest stays, the numbers continue, and the version is a new one."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b", "c")
        await storage.fork(ONE, parent=MAIN, at=0)
        await storage.append(ONE, [entry("d")], branch=1)
        version = (await head(storage)).version
        assert await storage.set_aside(ONE, [2, 4, 99], "it was broken") == 2
        assert texts(await storage.rows(ONE)) == ["a", "c"]
        assert await storage.rows(ONE, branch=1) == []
        assert await storage.row(ONE, kept[1].id) is None
        assert await storage.count(ONE) == 2
        assert (await head(storage)).version == version + 1
        assert (await storage.append(ONE, [entry("e")])).last_seq == 5


@in_loop
async def test_a_damaged_record_is_returned_unchanged(backend: Backend) -> None:
    """The reader has to notice; the others can be read."""
    broken = b'{"dragoman":1,"kind":"Message","value":{"role":"nobody"}}'
    async with backend.opened() as storage:
        await fill(storage, "a")
        await storage.append(ONE, [Entry("x", broken, NOON)])
        await fill(storage, "c")
        rows = await storage.rows(ONE)
        assert rows[1].body == broken
        with pytest.raises(Corrupt):
            message_of(rows[1].body)
        assert await storage.set_aside(ONE, [2], "unknown role") == 1
        assert texts(await storage.rows(ONE)) == ["a", "c"]


@in_loop
async def test_setting_aside_leaves_the_branches_unchanged(backend: Backend) -> None:
    """Where each begins, which is active, and all other messages; also if none is set aside."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry(f"m{n}") for n in range(4)])
        await storage.fork(ONE, parent=MAIN, at=3)
        await storage.append(ONE, [entry("a"), entry("b")], branch=1)
        await storage.fork(ONE, parent=1, at=5)
        await storage.append(ONE, [entry("c"), entry("d")], branch=2)
        before = await head(storage)
        for gone, left in (((), ["c", "d"]), ((8,), ["c"])):
            assert await storage.set_aside(ONE, gone, "damaged") == len(gone)
            now = await head(storage)
            assert (now.forks, now.active) == (before.forks, before.active)
            assert [message_in(row).text for row in await storage.rows(ONE, branch=2)] == left
            assert len(await storage.rows(ONE)) == 4
        assert await storage.verify() == []


__all__ = [name for name in globals() if name.startswith("test_")]
