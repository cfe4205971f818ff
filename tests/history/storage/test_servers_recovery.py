"""Idle connections dropped by the server: no operation fails, and each is executed once."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.history.storage.shelf import LostReply
from dragoman.testing.conformance.stores.data import (
    NOON,
    ONE,
    TWO,
    WINDOW,
    bare,
    copy_of,
    entry,
    texts,
)
from tests.history.storage import backend_postgres, backend_redis

NEW = SessionIdentity(chat="new")
_MADE = entry("made", id="made", at=NOON)
Call = Callable[[Storage], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "session": lambda s: s.session(ONE),
    "append": lambda s: s.append(ONE, [_MADE], branch=1),
    "rows": lambda s: s.rows(ONE),
    "row": lambda s: s.row(ONE, "a"),
    "count": lambda s: s.count(ONE),
    "rewrite": lambda s: s.rewrite(ONE, replaced=[entry("A", id="a", at=NOON)], removed=["b"]),
    "clear": lambda s: s.clear(ONE, at=NOON),
    "fork": lambda s: s.fork(ONE, parent=MAIN, at=1),
    "activate": lambda s: s.activate(ONE, MAIN),
    "keep_windows": lambda s: s.keep_windows(ONE, WINDOW),
    "delete": lambda s: s.delete(ONE),
    "restore": lambda s: s.restore(*_copied()),
    "set_aside": lambda s: s.set_aside(ONE, [1], "broken"),
    "sessions": lambda s: s.sessions(),
    "search": lambda s: s.search("a"),
    "totals": lambda s: s.totals("session"),
    "forget": lambda s: s.forget("Ana"),
    "verify": lambda s: s.verify(),
}
# What a session's own storage does, not the server.
_LOCAL = {"open", "close"}


def _copied() -> tuple[Session, list[Row]]:
    session, rows = copy_of(9, 2, 3, who=NEW)
    ids = [msgspec.structs.replace(row, id=f"r{row.seq}") for row in rows]
    return session, ids


def methods() -> list[str]:
    """All methods of a storage, so that a new one is not forgotten."""
    found = inspect.getmembers(Storage, inspect.iscoroutinefunction)
    return [name for name, _ in found if name not in _LOCAL]


async def fill(storage: Storage) -> None:
    """Data for every method."""
    await storage.append(ONE, [entry(each, id=each, at=NOON) for each in ("a", "b", "c")])
    await storage.fork(ONE, parent=MAIN, at=2)
    await storage.append(TWO, [entry("d", id="d", at=NOON)])


async def everything(storage: Storage) -> Any:
    """What is stored, without times that differ from run to run."""
    sessions = [
        msgspec.structs.replace(each, updated_at=0.0, created_at=0.0)
        for each in await storage.sessions()
    ]
    rows = [
        bare(row)
        for each in sessions
        for branch in (MAIN, *(fork.number for fork in each.forks))
        for row in await storage.rows(each.identity, branch=branch)
    ]
    return sessions, [(row.id, row.seq, row.branch, texts([row])) for row in rows]


def plain(answer: Any) -> Any:
    """An answer without times and new ids."""
    if isinstance(answer, Session):
        return msgspec.structs.replace(answer, updated_at=0.0, created_at=0.0)
    if isinstance(answer, Row):
        return (answer.id, answer.seq, answer.branch, texts([answer]))
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return answer.row.id if hasattr(answer, "row") else answer


class Dropping:
    """A store whose connections can be closed by the server."""

    def __init__(
        self, make: Callable[[], Storage], drop: Callable[[Storage], Awaitable[None]]
    ) -> None:
        self.make = make
        self.drop = drop


@asynccontextmanager
async def redis() -> AsyncGenerator[Dropping]:
    """Redis closes all connections of a client by their name."""
    from redis.asyncio import Redis

    from dragoman.history.storage.redis import RedisStorage

    with backend_redis.fresh_prefix() as prefix:
        url = f"{backend_redis.URL}?client_name={prefix}"

        async def drop(_: Storage) -> None:
            async with Redis.from_url(backend_redis.URL) as client:
                found = [each for each in await client.client_list() if each["name"] == prefix]
                assert found
                for each in found:
                    await client.client_kill_filter(_id=each["id"])

        yield Dropping(lambda: RedisStorage(url, prefix=prefix), drop)


@asynccontextmanager
async def postgres() -> AsyncGenerator[Dropping]:
    """PostgreSQL closes them by their process."""
    from dragoman.history.storage.postgres import PostgresStorage

    with backend_postgres.schema() as schema:

        async def drop(storage: Storage) -> None:
            assert isinstance(storage, PostgresStorage)
            pids = [each[0].info.backend_pid for each in storage.shelf.connections._pool.ready]
            assert pids
            ended = "SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid"
            await backend_postgres.asked(schema, ended, (pids,))

        yield Dropping(
            lambda: PostgresStorage(backend_postgres.URL, schema=schema, connections=4), drop
        )


_KEEPING = "keep_windows"
SERVERS = {"redis": redis, "postgres": postgres}


async def outcome(server: str, method: str, *, is_dropped: bool) -> Any:
    """The result of a method on a new store, and what is stored afterwards."""
    async with SERVERS[server]() as dropping:
        storage = dropping.make()
        await storage.open()
        try:
            await fill(storage)
            if is_dropped:
                await dropping.drop(storage)
            answer = plain(await CALLS[method](storage))
            return answer, await everything(storage)
        finally:
            await storage.close()


@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("server", SERVERS)
async def test_a_dropped_connection_is_not_noticed(server: str, method: str) -> None:
    """Each method has the same result and effect."""
    assert await outcome(server, method, is_dropped=True) == await outcome(
        server, method, is_dropped=False
    )


@pytest.mark.parametrize("method", methods())
async def test_a_lost_reply_of_redis_is_requested_again(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command was executed and its reply lost: nothing is done twice, and all is returned."""
    from redis.exceptions import ConnectionError as Broken

    from dragoman.history.storage.redis.connection import Server

    wanted = await outcome("redis", method, is_dropped=False)
    once = Server.once
    lost: list[bool] = []

    async def losing(self: Server, call: Callable[[], Awaitable[Any]]) -> Any:
        async def answered() -> Any:
            answer = await call()
            lost.append(len(lost) % 2 == 0)
            if lost[-1]:
                raise Broken
            return answer

        return await once(self, answered)

    async with redis() as dropping:
        storage = dropping.make()
        await storage.open()
        await fill(storage)
        with monkeypatch.context() as patched:
            patched.setattr(Server, "once", losing)
            answer = plain(await CALLS[method](storage))
        assert lost
        assert (answer, await everything(storage)) == wanted
        await storage.close()


@pytest.mark.parametrize("method", ["rewrite", "clear", "fork", "activate", "delete", "set_aside"])
async def test_a_write_is_not_repeated_over_another_writers(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a lost answer, another write is neither undone nor mistaken for it."""
    from dragoman.history.storage.redis.connection import Server

    async with redis() as dropping:
        storage, other = dropping.make(), dropping.make()
        await storage.open()
        await other.open()
        await fill(storage)
        run = Server.run
        turns: list[str] = []

        async def losing(self: Server, *arguments: Any) -> list[bytes]:
            answer = await run(self, *arguments)
            if self is storage.shelf.opened and not turns:  # type: ignore[attr-defined]
                turns.append("lost")
                await other.append(ONE, [entry("since", id="since", at=NOON)])
                if method != "delete":
                    await CALLS[_KEEPING](other)
                msg = "lost"
                raise LostReply(msg)
            return answer

        with monkeypatch.context() as patched:
            patched.setattr(Server, "run", losing)
            await CALLS[method](storage)
        assert (await storage.row(ONE, "since")) is not None
        session = await storage.session(ONE)
        assert session is not None
        assert len(session.forks) == {"clear": 0, "delete": 0, "fork": 2}.get(method, 1)
        assert await storage.verify() == []
        await storage.close()
        await other.close()


async def test_a_deletion_that_found_nothing_returns_that_after_a_loss() -> None:
    """A missing session is not reported as deleted."""
    async with redis() as dropping:
        storage = dropping.make()
        await storage.open()
        await fill(storage)
        await dropping.drop(storage)
        assert await storage.delete(NEW) is False
        await dropping.drop(storage)
        with pytest.raises(NotFound):
            await storage.fork(NEW, parent=MAIN, at=0)
        await storage.close()
