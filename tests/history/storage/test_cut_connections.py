"""Connections that are cut in the middle of a write, at any byte of the request or the answer.

What was acknowledged is stored, once; what is not stored, or may not be, is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from random import Random
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pytest

from dragoman import ChatHistory, Message
from dragoman.errors import StoreError
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.redis import RedisStorage
from dragoman.testing.conformance.stores.data import ONE, TWO
from tests.history.storage import backend_postgres, backend_redis
from tests.history.storage.test_servers_recovery import CALLS, NEW, everything, fill
from tests.history.torture import IN_FULL, IN_SHORT

Direction = Literal["request", "answer"]
DIRECTIONS: tuple[Direction, ...] = ("request", "answer")
WRITES = (
    "append", "rewrite", "clear", "fork", "activate", "keep_windows", "delete", "restore",
    "set_aside",
)  # fmt: skip


_DIGITS = 40  # bytes by which a write may be shorter than the last one


class Proxy:
    """Passes bytes to a server and back, counts them, and cuts the connection after some."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._there = parts.hostname or "127.0.0.1", parts.port or 0
        self._parts = parts
        self.passed: dict[Direction, int] = dict.fromkeys(DIRECTIONS, 0)
        self.is_down = False
        self._cut: tuple[Direction, int] | None = None
        self._stays_down = False
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def is_armed(self) -> bool:
        """Whether no connection has been cut yet."""
        return self._cut is not None

    def arm(self, direction: Direction, after: int, *, stays_down: bool = False) -> None:
        """Cut one connection after that many more bytes; then refuse all others, or none."""
        self.count()
        self._cut, self._stays_down = (direction, after), stays_down

    def count(self) -> None:
        """Count from here on."""
        self.passed = dict.fromkeys(DIRECTIONS, 0)
        self._cut, self.is_down = None, False

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[str]:
        """Serve; gives the address to use in place of the server's."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = f"{self._parts.username}@" if self._parts.username else ""
        try:
            yield self._parts._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.close()
            return
        there, back = await asyncio.open_connection(*self._there)
        self._writers |= {writer, back}
        with suppress(ConnectionError):
            await asyncio.gather(
                self._pass(reader, back, writer, "request"),
                self._pass(there, writer, back, "answer"),
            )

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        other: asyncio.StreamWriter,
        direction: Direction,
    ) -> None:
        while data := await reader.read(1 << 16):
            if self._cut is not None and self._cut[0] == direction:
                left = self._cut[1] - self.passed[direction]
                if len(data) >= left:
                    self._cut, self.is_down = None, self._stays_down
                    self.passed[direction] += left
                    writer.write(data[:left])
                    await writer.drain()
                    writer.close()
                    other.transport.abort()
                    return
            self.passed[direction] += len(data)
            writer.write(data)
            await writer.drain()
        writer.close()


class Server(NamedTuple):
    """A place on a server, reached directly and through a proxy."""

    name: str
    where: str
    proxy: Proxy

    def storage(self, url: str) -> Storage:
        """A storage there, not opened yet."""
        if self.name == "redis":
            return RedisStorage(url, prefix=self.where)
        return PostgresStorage(url, schema=self.where, connections=1)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[tuple[Storage, Storage]]:
        """Two storages: one through the proxy, one past it."""
        async with self.proxy.serving() as url:
            through, past = self.storage(url), self.storage(_URLS[self.name])
            await past.open()
            await through.open()
            try:
                yield through, past
            finally:
                self.proxy.count()
                await through.close()
                await past.close()


_URLS = {"redis": backend_redis.URL, "postgres": backend_postgres.URL}


@pytest.fixture(params=_URLS)
def server(request: pytest.FixtureRequest) -> Generator[Server]:
    """Each server."""
    name: str = request.param
    with _place(name) as where:
        yield Server(name, where, Proxy(_URLS[name]))


@contextmanager
def _place(name: str) -> Generator[str]:
    found = backend_redis.fresh_prefix() if name == "redis" else backend_postgres.schema()
    with found as where:
        yield where


async def renewed(storage: Storage) -> None:
    """The same content as before each write."""
    for who in (ONE, TWO, NEW):
        await storage.delete(who)
    await fill(storage)


async def sizes(server: Server, through: Storage, past: Storage, method: str) -> dict[Any, int]:
    """The bytes of a write in each direction."""
    for _ in range(2):  # the first time, statements are prepared and scripts are sent
        await renewed(past)
        await through.session(ONE)
        server.proxy.count()
        await CALLS[method](through)
    return dict(server.proxy.passed)


def positions(total: int, chance: Random) -> list[int]:
    """Where to cut: all, or some of each kind, with the first and the last bytes among them."""
    if IN_FULL:
        return list(range(1, total + 1))
    ends = {1, 2, 5, total // 2, total - 5, total - 1, total}
    found = sorted(each for each in ends if 1 <= each <= total)
    return chance.sample(found, 2) if IN_SHORT else found


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_that_is_cut_anywhere_happens_once(server: Server, method: str) -> None:
    """It is done when it returns; if it raises, it is done as a whole, or not at all."""
    chance = Random(f"{server.name} {method}")
    async with server.opened() as (through, past):
        total = await sizes(server, through, past, method)
        after = await everything(past)
        await renewed(past)
        before = await everything(past)
        for direction in DIRECTIONS:
            for place in positions(total[direction], chance):
                await renewed(past)
                await through.session(ONE)
                server.proxy.arm(direction, place)
                is_done = await _tried(through, method)
                if server.proxy.is_armed:  # times are not all written with as many digits
                    assert place > total[direction] - _DIGITS
                    server.proxy.count()
                found = await everything(past)
                wanted = [after] if is_done else [before, after]
                assert found in wanted, (direction, place)
                assert await past.verify() == []


async def _tried(storage: Storage, method: str) -> bool:
    try:
        await CALLS[method](storage)
    except StoreError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
async def test_a_message_whose_server_is_gone_is_reported_and_can_be_added_again(
    server: Server, direction: Direction
) -> None:
    """Whether the server has it or not: in the end it is there once."""
    chance = Random(f"{server.name} {direction}")
    async with server.opened() as (through, past):
        history, other = await ChatHistory.open(ONE, through), await ChatHistory.open(ONE, past)
        for number in range(3):
            await history.add(Message.user(f"before {number}"))
        server.proxy.count()
        await history.add(Message.user("before 3"))
        total = server.proxy.passed[direction]
        told = [message.id for message in await other.messages()]
        for place in positions(total, chance)[:: 1 if IN_FULL else 2]:
            message = Message.user(f"cut at {place}")
            server.proxy.arm(direction, place, stays_down=True)
            if direction == "answer" and place >= total:
                await history.add(message)
            else:
                with pytest.raises(StoreError):
                    await history.add(message)
            server.proxy.count()
            assert (await history.add(message)).id == message.id
            told.append(message.id)
            assert [each.id for each in await other.messages()] == told
            assert [each.id for each in await history.messages()] == told
        assert not history.damaged
        assert await past.verify() == []
