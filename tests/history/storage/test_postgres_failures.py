"""Which PostgreSQL errors mean that a connection is lost, and how each is handled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import StoreError
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.postgres.settings import Late, Lost, Refused, Unreachable, is_lost
from dragoman.testing.conformance.stores.data import NOON, ONE, entry
from tests.history.storage.backend_postgres import opened

psycopg = pytest.importorskip("psycopg")

LOST = {
    "57P01": "the server is being shut down, or an administrator ended the connection",
    "57P02": "another process of the server crashed",
    "57P03": "the server is starting, and takes no connection yet",
    "57P05": "it was idle for longer than the server allows",
    "25P03": "a transaction was idle for longer than the server allows",
    "08000": "a connection failed",
    "08003": "there is no connection",
    "08006": "a connection failed",
    "08P01": "what was said could not be understood",
}
KEPT = {
    "57014": "a statement was cancelled",
    "57P04": "the database was dropped",
    "25P02": "a transaction has failed",
    "25006": "the server is read-only",
    "23505": "a value is there already",
    "22003": "a number is too large",
    "40001": "another write was under way",
    "40P01": "two writes waited for each other",
    "42P01": "a table is missing",
    "53300": "too many connections",
    "XX000": "something inside of the server",
    None: "the client's own",
}


@pytest.mark.parametrize(
    ("state", "lost"), [*((s, True) for s in LOST), *((s, False) for s in KEPT)]
)
def test_lost_connections_are_recognized_by_their_code(state: str | None, lost: bool) -> None:
    """These codes and no others: a rejected statement must not be repeated."""
    assert is_lost(state) is lost


_RAISE = """
DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{}'; END $$"""


class _Failing:
    """The first statements with a marker fail on the server with a code."""

    def __init__(self, state: str, monkeypatch: pytest.MonkeyPatch, *, times: int = 1) -> None:
        self.attempts = 0
        self._times = times
        self._execute = psycopg.AsyncConnection.execute
        self._state = state
        monkeypatch.setattr(psycopg.AsyncConnection, "execute", self._failing())

    def _failing(self) -> Any:
        failing = self

        async def execute(connection: Any, query: bytes, *given: Any, **named: Any) -> Any:
            if b".messages" in query:
                failing.attempts += 1
                if failing.attempts <= failing._times:
                    await failing._execute(connection, _RAISE.format(failing._state))
            return await failing._execute(connection, query, *given, **named)

        return execute


@pytest.mark.parametrize("state", list(LOST))
async def test_after_a_lost_connection_everything_is_retried(
    place: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read, a write and an append, on a working connection."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a", id="a")])
        for ask, answer in (
            (lambda: storage.count(ONE), 1),
            (lambda: storage.clear(ONE, at=NOON), 2),
            (lambda: storage.append(ONE, [entry("b")]), None),
        ):
            with monkeypatch.context() as patched:
                failing = _Failing(state, patched)
                given = await ask()
            assert failing.attempts > 1
            assert answer is None or given == answer
        assert await storage.count(ONE) == 1


@pytest.mark.parametrize(
    ("state", "raised"), [("57P01", Lost), ("40001", Refused), ("40P01", Refused)]
)
async def test_a_write_that_never_succeeds_is_an_error(
    place: str, state: str, raised: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried a few times, then raised; earlier data stays."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a", id="a")])
        with monkeypatch.context() as patched:
            failing = _Failing(state, patched, times=100)
            with pytest.raises(raised):
                await storage.clear(ONE, at=NOON)
        assert 1 < failing.attempts < 100
        assert await storage.count(ONE) == 1


@pytest.mark.parametrize("state", ["57014", "23505", "22003", "42501", "53100", "XX000"])
async def test_a_rejected_statement_is_not_retried(
    place: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be rejected again: the error is raised at once."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a")])
        with monkeypatch.context() as patched:
            failing = _Failing(state, patched)
            with pytest.raises(Refused) as raised:
                await storage.count(ONE)
        assert (failing.attempts, raised.value.state) == (1, state)
        assert await storage.count(ONE) == 1


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_write_that_conflicted_with_another_is_retried(
    place: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has rolled it back."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a")])
        for ask in (
            lambda: storage.append(ONE, [entry("b")]),
            lambda: storage.clear(ONE, at=NOON),
        ):
            with monkeypatch.context() as patched:
                failing = _Failing(state, patched)
                await ask()
            assert failing.attempts > 1
        assert await storage.count(ONE) == 0


class _OfTheClient:
    """An error of psycopg's own, without a code, on a closed or an open connection."""

    def __init__(self, kind: str, *, closes: bool, patched: pytest.MonkeyPatch) -> None:
        self.attempts = 0
        execute = psycopg.AsyncConnection.execute
        counting = self

        async def failing(connection: Any, query: bytes, *given: Any, **named: Any) -> Any:
            if b".messages" in query:
                counting.attempts += 1
                if counting.attempts == 1:
                    if closes:
                        await connection.close()
                    msg = "secret"
                    raise getattr(psycopg, kind)(msg)
            return await execute(connection, query, *given, **named)

        patched.setattr(psycopg.AsyncConnection, "execute", failing)


@pytest.mark.parametrize(
    "kind", ["OperationalError", "InterfaceError", "DatabaseError", "DataError"]
)
@pytest.mark.parametrize("closes", [True, False])
async def test_an_error_without_a_code_is_a_loss_if_the_connection_is_closed(
    place: str, kind: str, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its class; on an open connection it is a rejection."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a")])
        with monkeypatch.context() as patched:
            failing = _OfTheClient(kind, closes=closes, patched=patched)
            if closes:
                assert await storage.count(ONE) == 1
            else:
                with pytest.raises(Refused) as raised:
                    await storage.count(ONE)
                assert "secret" not in f"{raised.value}{raised.value.__context__}"
        assert failing.attempts == (2 if closes else 1)


def test_each_failure_says_whether_something_was_written() -> None:
    """Nothing was, unless that is unknown."""
    failures: list[StoreError] = [
        Refused("x", "23505"), Refused("x", "99999"), Late("x", 3.0), Lost("x"),
        Unreachable("x", "it is closed"),
    ]  # fmt: skip
    for failure in failures:
        assert "nothing was written" in str(failure)
    assert "99999" in str(failures[1])
    assert "3 seconds" in str(failures[2])


async def test_an_exhausted_pool_is_an_error(place: str) -> None:
    """It works again when a connection is returned; a closed pool is an error as well."""
    async with opened(place, connections=1, timeout=0.3) as storage:
        connection = await storage.shelf.connections._pool.take()
        with pytest.raises(Unreachable, match="all 1 connections are in use"):
            await storage.count(ONE)
        await storage.shelf.connections._pool.give(connection)
        assert await storage.count(ONE) == 0
        pool = storage.shelf.connections._pool
        on_loan = await pool.take()
        opened_ = storage.shelf.connections
    with pytest.raises(Unreachable, match="closed"):
        await opened_._taken()
    await pool.give(on_loan)
    assert on_loan.closed


async def test_connections_that_were_idle_too_long_are_not_used(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor those that are too old; they are closed and replaced."""
    from dragoman.history.storage.postgres import pool as module

    async with opened(place) as storage:
        for limit in ("_IDLE", "_OLD"):
            await storage.count(ONE)
            [(before, *_)] = storage.shelf.connections._pool.ready
            with monkeypatch.context() as patched:
                patched.setattr(module, limit, 0.0)
                await storage.count(ONE)
            [(after, *_)] = storage.shelf.connections._pool.ready
            assert before.closed
            assert not after.closed
            await storage.count(ONE)
            assert storage.shelf.connections._pool.ready[0][0] is after


async def test_a_cancelled_wait_for_a_connection_loses_none(place: str) -> None:
    """The next waiter gets it."""
    async with opened(place, connections=1) as storage:
        pool = storage.shelf.connections._pool
        connection = await pool.take()
        waiting = [asyncio.create_task(pool.take()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in waiting[:2]:
            task.cancel()
        await pool.give(connection)
        assert await waiting[2] is connection
        await pool.give(connection)
        assert isinstance(storage, PostgresStorage)
        assert await storage.count(ONE) == 0
