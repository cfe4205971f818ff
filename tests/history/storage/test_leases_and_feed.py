"""Leases with fencing, and the feed of changes, on every shelf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import cast
from unittest import mock

import pytest

from dragoman.errors import Conflict, InvalidInputError, NotFound
from dragoman.history.owners import this_process
from dragoman.history.storage import ledger as module
from dragoman.history.storage.ledger import Fenced, Ledger
from dragoman.history.storage.protocol import MAIN, Session
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, entry, fill, texts
from tests.environment import PATIENCE
from tests.history.storage.backend_postgres import URL, sql
from tests.sampling import BACKENDS

New = Callable[[], Ledger]
_FED = [name for name in BACKENDS if name != "bucket"]  # whose service tells no changes


@pytest.fixture(params=BACKENDS)
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[New]:
    """Makes storages on one place of each kind."""
    place = import_module(f"tests.history.storage.backend_{request.param}").place(tmp_path)
    with place as make:
        yield cast("New", make)


@asynccontextmanager
async def two(new: New) -> AsyncGenerator[tuple[Ledger, Ledger]]:
    """Two storages on one place, open, with a session."""
    first, second = new(), new()
    await first.open()
    await second.open()
    await fill(first, "a")
    try:
        yield first, second
    finally:
        await first.close()
        await second.close()


class Clock:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock on which a contender watches."""
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


async def test_a_lease_is_taken_by_one_owner(new: New, clock: Clock) -> None:
    """Another gets it when it was not renewed while the other watched; then it has a new number."""
    async with two(new) as (first, second):
        one = await first.lease(ONE, "a", 10.0)
        assert one is not None
        assert await second.lease(ONE, "b", 10.0) is None
        clock.now += 9.0
        one = await first.renew(ONE, one)
        for _ in range(3):  # a renewed lease is not taken, however long one watches
            assert await second.lease(ONE, "b", 10.0) is None
            clock.now += 9.0
            one = await first.renew(ONE, one)
        assert await second.lease(ONE, "b", 10.0) is None
        clock.now += 11.0
        taken = await second.lease(ONE, "b", 10.0)
        assert taken is not None
        assert taken.number == one.number + 1


async def test_the_lease_of_a_process_that_is_gone_is_free(new: New, clock: Clock) -> None:
    """At once, on its machine; that of one which lives is not, nor one of another machine."""
    gone = f"{this_process().rpartition('/')[0]}/1"  # of this number, but started before
    elsewhere = gone.replace("process:", "process:other-")
    async with two(new) as (first, second):
        for owner, is_free in ((f"{this_process()} a", False), (elsewhere, False), (gone, True)):
            taken = await first.lease(ONE, owner, 10.0)
            assert taken is not None
            assert await second.holder(ONE) == (None if is_free else taken)
            found = await second.lease(ONE, "b", 10.0)
            assert (found is not None) is is_free
            await first.release(ONE, taken if found is None else found)
        assert await second.holder(ONE) is None
        assert await second.holder(TWO) is None
        assert await first.lease(ONE, "a", 10.0) is not None
        assert await second.holder(ONE) is not None
        clock.now += 11.0
        assert await second.holder(ONE) is None


async def test_a_jump_of_the_wall_clock_is_no_reason(new: New, clock: Clock) -> None:
    """Times of different machines are not compared."""
    async with two(new) as (first, second):
        assert await first.lease(ONE, "a", 10.0) is not None
        assert await second.lease(ONE, "b", 10.0) is None
        for jump in (86_400.0 * 365, 0.0):
            with mock.patch.object(module, "time", lambda jump=jump: jump):
                assert await second.lease(ONE, "b", 10.0) is None
        assert clock.now == 0.0


async def test_a_former_owner_is_refused(new: New, clock: Clock) -> None:
    """Whatever it writes with the number of its lease; nothing is written."""
    async with two(new) as (first, second):
        one = await first.lease(ONE, "a", 10.0)
        assert one is not None
        await first.append(ONE, [entry("b", id="b")], fence=one.number)
        assert await second.lease(ONE, "b", 10.0) is None
        clock.now += 11.0
        two_ = await second.lease(ONE, "b", 10.0)
        assert two_ is not None
        fence = one.number
        for write in (
            lambda: first.append(ONE, [entry("late")], fence=fence),
            lambda: first.rewrite(ONE, removed=["b"], fence=fence),
            lambda: first.clear(ONE, at=NOON, fence=fence),
            lambda: first.fork(ONE, parent=MAIN, at=1, fence=fence),
            lambda: first.activate(ONE, MAIN, fence=fence),
            lambda: first.renew(ONE, one),
            lambda: first.release(ONE, one),
        ):
            with pytest.raises(Fenced, match="another owner") as raised:
                await write()
            assert isinstance(raised.value, Conflict)
        await second.append(ONE, [entry("c")], fence=two_.number)
        await first.append(ONE, [entry("d")])  # without a number nobody is refused
        assert texts(await second.rows(ONE)) == ["a", "b", "c", "d"]


async def test_a_lease_that_was_given_back_is_free(new: New) -> None:
    """At once; and the same owner may take its own again, after a restart."""
    async with two(new) as (first, second):
        one = await first.lease(ONE, "a", 10.0)
        assert one is not None
        await first.release(ONE, one)
        other = await second.lease(ONE, "b", 10.0)
        assert other is not None
        again = await second.lease(ONE, "b", 10.0)
        assert again is not None
        assert [other.number, again.number] == [one.number + 1, one.number + 2]


async def test_a_lease_ends_with_its_session(new: New) -> None:
    """The number is not valid for a session of the same name."""
    async with two(new) as (first, second):
        one = await first.lease(ONE, "a", 10.0)
        assert one is not None
        await second.delete(ONE)
        with pytest.raises(NotFound):
            await first.lease(ONE, "a", 10.0)
        await second.append(ONE, [entry("new")])
        with pytest.raises(Fenced):
            await first.append(ONE, [entry("late")], fence=one.number)
        with pytest.raises(Fenced):
            await first.renew(ONE, one)


async def test_a_lease_changes_nothing_else(new: New) -> None:
    """Neither the version nor a message; it survives all other writes."""
    async with two(new) as (first, second):
        before = await first.session(ONE)
        one = await first.lease(ONE, "a", 10.0)
        assert one is not None
        assert await second.session(ONE) == before
        await second.append(ONE, [entry("b")])
        await second.clear(ONE, at=NOON)
        await second.set_aside(ONE, [], "counted again")
        one = await first.renew(ONE, one)
        await first.append(ONE, [entry("c")], fence=one.number)
        assert await first.verify() == []


@pytest.mark.parametrize(("owner", "seconds"), [("", 1.0), ("a", 0.0), ("a", -1.0)])
async def test_a_lease_without_an_owner_or_a_time_is_refused(owner: str, seconds: float) -> None:
    """With our own error."""
    storage = import_module("dragoman.history.storage.memory").MemoryStorage()
    await fill(storage, "a")
    with pytest.raises(InvalidInputError):
        await storage.lease(ONE, owner, seconds)


async def test_of_many_contenders_one_gets_a_lease(new: New) -> None:
    """At the same time."""
    async with two(new) as (first, second):
        found = await asyncio.gather(
            *(each.lease(ONE, f"{n}", 10.0) for n in range(6) for each in (first, second))
        )
        assert len({lease.owner for lease in found if lease is not None}) == 1


# --- the feed


async def _changes(
    storage: Ledger, after: str, count: int, limit: int = 1000
) -> tuple[list[tuple[str, Session | None]], str]:
    """So many changes: PostgreSQL tells them when no earlier transaction of the server runs."""
    deadline = monotonic() + PATIENCE
    while True:
        told, cursor = await storage.changes(after, limit=limit)
        if len(told) >= count or monotonic() > deadline:
            return told, cursor
        await asyncio.sleep(0.01)


async def _told(
    storage: Ledger, after: str = "", count: int = 0, limit: int = 1000
) -> tuple[list[object], str]:
    told, cursor = await _changes(storage, after, count, limit)
    return [None if session is None else session.identity for _, session in told], cursor


@pytest.mark.parametrize("new", _FED, indirect=True)
async def test_the_feed_tells_what_changed(new: New) -> None:
    """Each session as it is now, in the order of their last changes, and that one was deleted."""
    async with two(new) as (first, second):
        assert await _told(first) == ([], "")
        await fill(second, "b", who=TWO)
        await second.append(ONE, [entry("c")])
        told, cursor = await _changes(first, "", 2)
        assert {session.last_seq for _, session in told if session is not None} == {1, 2}
        assert {digest for digest, _ in told} == {ONE.digest, TWO.digest}
        assert await _told(first, cursor) == ([], cursor)
        await second.delete(TWO)
        assert (await _told(first, cursor, 1))[0] == [None]
        await first.forget("Ana")
        told, _ = await _changes(first, cursor, 2)
        assert {digest for digest, _ in told} == {ONE.digest, TWO.digest}


@pytest.mark.parametrize("new", _FED, indirect=True)
async def test_every_kind_of_write_is_told(new: New) -> None:
    """By one storage to another, which was opened before."""
    async with two(new) as (first, second):
        _, cursor = await _told(first)
        for write in (
            lambda: second.append(ONE, [entry("b", id="b")]),
            lambda: second.rewrite(ONE, removed=["b"]),
            lambda: second.fork(ONE, parent=MAIN, at=1),
            lambda: second.activate(ONE, MAIN),
            lambda: second.keep_windows(ONE, None),
            lambda: second.set_aside(ONE, [1], "broken"),
            lambda: second.clear(ONE, at=NOON),
        ):
            await write()
            told, after = await _told(first, cursor, 1)
            assert told == [ONE]
            assert after != cursor
            cursor = after


@pytest.mark.parametrize("new", _FED, indirect=True)
async def test_the_feed_is_read_in_pages_and_pruned(new: New) -> None:
    """Nothing is skipped between two pages."""
    async with two(new) as (first, second):
        await first.watch()
        people = [type(ONE)(chat=str(n)) for n in range(7)]
        for who in people:
            await fill(second, "x", who=who)
        seen: list[object] = []
        cursor = ""
        while len(seen) < len(people):
            page, cursor = await _told(first, cursor, 1, 2)
            assert 0 < len(page) <= 2
            seen += page
        assert await _told(first, cursor) == ([], cursor)
        assert sorted(map(repr, seen)) == sorted(map(repr, people))
        assert {*seen} == {*people}
        await first.prune(cursor)
        await fill(second, "y")
        assert (await _told(first, cursor, 1))[0] == [ONE]
        assert await first.verify() == []


@pytest.mark.parametrize("new", _FED, indirect=True)
async def test_a_store_that_is_watched_is_opened_again(new: New) -> None:
    """The feed is part of it, and goes on."""
    async with two(new) as (first, _):
        await first.watch()
        third = new()
        await third.open()
        await fill(third, "z")
        assert (await _told(third, "", 1))[0] == [ONE]
        assert await third.verify() == []
        if third is not first and third.name != "memory":
            await third.close()


async def test_a_transaction_that_commits_late_is_not_missed(tmp_path: Path) -> None:
    """In PostgreSQL, numbers are given out before commits: the feed waits for the earlier one."""
    psycopg = pytest.importorskip("psycopg")
    postgres = import_module("tests.history.storage.backend_postgres")
    with postgres.place(tmp_path) as make:
        storage = make()
        await storage.open()
        await fill(storage, "a")
        await fill(storage, "b", who=TWO)
        await storage.watch()
        schema = storage.shelf.settings.schema
        async with await psycopg.AsyncConnection.connect(URL) as slow:
            await slow.execute(
                sql("UPDATE our.heads SET stamp = stamp WHERE digest = %s", schema), (TWO.digest,)
            )
            await storage.append(ONE, [entry("c")])
            assert (await _told(storage))[0] == []  # an earlier one may still come
            await slow.commit()
        told, cursor = await _told(storage, "", 2)
        assert {*told} == {ONE, TWO}
        assert (await _told(storage, cursor))[0] == []
        await storage.close()
