"""PostgreSQL connections that break, hang or time out: nothing is lost or duplicated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import time

import pytest

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import DuplicateIds
from dragoman.testing.conformance.stores.data import entry, seqs
from tests.history.storage.backend_postgres import URL, asked, opened, sql

psycopg = pytest.importorskip("psycopg")

ONE = SessionIdentity(agent="guide", chat="7", user="Ana")
TWO = SessionIdentity(agent="guide", chat="8", user="Bob")


class Proxy:
    """A proxy between a store and its server that cuts the connection at a chosen moment."""

    def __init__(self) -> None:
        self.marker: bytes | None = None
        self.keeps_request = False
        self.is_down = False
        self.refused = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self, marker: bytes, *, keeps_request: bool) -> None:
        """Cut once, at a request with the marker: before it is forwarded, or before its answer."""
        self.marker, self.keeps_request = marker, keeps_request

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        there = psycopg.conninfo.conninfo_to_dict(URL)
        return f"postgresql://{there['user']}@127.0.0.1:{port}/{there['dbname']}"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = psycopg.conninfo.conninfo_to_dict(URL)
        if self.is_down:
            self.refused += 1
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection(there["host"], int(there["port"]))
        self._writers |= {writer, up_writer}
        answers = asyncio.create_task(self._copy(up_reader, writer))
        while data := await reader.read(65536):
            if self.marker is not None and self.marker in data:
                self.marker = None
                answers.cancel()
                await asyncio.wait([answers])
                if not self.keeps_request:
                    up_writer.write(data)
                    await up_reader.read(65536)  # it was executed, but nobody is told
                break
            up_writer.write(data)
        writer.close()
        up_writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


@pytest.mark.parametrize("keeps_request", [True, False], ids=["request", "answer"])
@pytest.mark.parametrize("expected", [None, 1])
async def test_an_append_whose_connection_is_cut_is_stored_once(
    place: str, expected: int | None, keeps_request: bool
) -> None:
    """Whether its request or its answer was lost, the caller doesn't notice."""
    proxy = Proxy()
    async with proxy as url, opened(place, url) as storage:
        await storage.append(ONE, [entry()])
        new = entry("cut")
        proxy.cut(new.id.encode(), keeps_request=keeps_request)
        made = await storage.append(ONE, [new], expected=expected)
        assert proxy.marker is None
        assert (made.version, made.last_seq) == (2, 2)
        assert await seqs(storage) == [1, 2]
        assert (await storage.append(ONE, [entry()], expected=2)).last_seq == 3


async def test_several_messages_whose_answer_is_lost_are_stored_once(place: str) -> None:
    """All of them, in a new session."""
    proxy = Proxy()
    async with proxy as url, opened(place, url) as storage:
        several = [entry("a"), entry("b")]
        await storage.append(TWO, [entry()])
        proxy.cut(b"INSERT INTO", keeps_request=False)
        made = await storage.append(ONE, several)
        assert proxy.marker is None
        assert (made.version, made.last_seq) == (1, 2)
        assert await seqs(storage) == [1, 2]


async def test_an_outcome_that_can_not_be_determined_is_unknown(place: str) -> None:
    """The server is gone after the write was sent."""
    proxy = Proxy()
    async with proxy as url, opened(place, url, timeout=2, connections=1) as storage:
        await storage.append(ONE, [entry()])
        new = entry()
        proxy.cut(new.id.encode(), keeps_request=False)
        proxy.is_down = True
        with pytest.raises(StoreError, match="unknown") as raised:
            await storage.append(ONE, [new])
        assert raised.value.__context__ is None
    async with opened(place) as storage:
        assert await seqs(storage) == [1, 2]  # it had been executed
        with pytest.raises(DuplicateIds):
            await storage.append(ONE, [new])


async def test_a_server_that_is_gone_before_a_write_is_reported(place: str) -> None:
    """Then it is certain that nothing was written."""
    proxy = Proxy()
    async with proxy as url, opened(place, url, timeout=2, connections=1) as storage:
        await _terminate(place, storage)
        proxy.is_down = True
        with pytest.raises(StoreError, match="can't be reached"):
            await storage.rows(ONE)
        with pytest.raises(StoreError, match="nothing was written"):
            await storage.append(ONE, [entry()])


@pytest.mark.parametrize("keeps_request", [True, False], ids=["request", "answer"])
async def test_a_transaction_whose_commit_is_cut_happens_once(
    place: str, keeps_request: bool
) -> None:
    """The server is asked for its outcome; if it was rolled back, it is repeated."""
    proxy = Proxy()
    async with proxy as url, opened(place, url, prepared=False) as storage:
        old = entry()
        await storage.append(ONE, [old, entry()])
        proxy.cut(b"COMMIT\0", keeps_request=keeps_request)  # not READ COMMITTED
        assert await storage.rewrite(ONE, removed=[old.id]) == 2
        assert proxy.marker is None
        assert await seqs(storage) == [2]
        assert await storage.fork(ONE, parent=0, at=2, expected=2) == 1


async def test_a_commit_that_can_not_be_checked_is_unknown(place: str) -> None:
    """The server is gone after the commit was sent."""
    proxy = Proxy()
    settings = {"timeout": 2, "connections": 1, "prepared": False}
    async with proxy as url, opened(place, url, **settings) as storage:
        await storage.append(ONE, [entry()])
        proxy.cut(b"COMMIT\0", keeps_request=False)
        proxy.is_down = True
        with pytest.raises(StoreError, match="unknown"):
            await storage.clear(ONE, at=time())


async def test_two_tasks_may_open_a_store_at_once(place: str) -> None:
    """One of them does; no connection leaks."""
    storage = PostgresStorage(f"{URL}?application_name={place}", schema=place)
    await asyncio.gather(*(storage.open() for _ in range(3)))
    await storage.append(ONE, [entry()])
    assert await storage.count(ONE) == 1
    await storage.close()
    while await asked(place, _CONNECTED, (place,)) != [(0,)]:  # noqa: ASYNC110 - they end soon
        await asyncio.sleep(0.01)


async def test_a_write_waits_for_a_server_that_comes_back(place: str) -> None:
    """Within its time limit."""
    proxy = Proxy()
    async with proxy as url, opened(place, url, connections=2) as storage:
        await _terminate(place, storage)
        proxy.is_down = True
        writing = [asyncio.create_task(storage.append(ONE, [entry()])) for _ in range(4)]
        while not proxy.refused:  # noqa: ASYNC110 - however long it takes
            await asyncio.sleep(0.01)
        proxy.is_down = False
        assert {made.last_seq for made in await asyncio.gather(*writing)} == {1, 2, 3, 4}


async def test_connections_broken_by_a_restart_are_replaced(place: str) -> None:
    """All idle connections are dead: reads and writes use new ones."""
    async with opened(place, connections=4) as storage:
        await asyncio.gather(*(storage.append(ONE, [entry()]) for _ in range(8)))
        await _terminate(place, storage)
        await asyncio.gather(*(storage.append(ONE, [entry()]) for _ in range(8)))
        await _terminate(place, storage)
        assert await seqs(storage) == list(range(1, 17))
        await _terminate(place, storage)
        assert await storage.clear(ONE, at=time()) == 17


async def test_a_backend_that_is_terminated_during_a_write(place: str) -> None:
    """It is killed while the write waits for a lock; the message is still stored once."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry()])
        async with _locked(place) as unlock:
            writing = asyncio.create_task(storage.append(ONE, [entry()]))
            await _terminate_waiting(place)
            await unlock()
            assert (await writing).last_seq == 2
        assert await seqs(storage) == [1, 2]


async def test_a_row_that_stays_locked_ends_in_an_error(place: str) -> None:
    """Nothing hangs for ever, nothing is written later, and the connection still works."""
    async with opened(place, timeout=0.5, connections=1) as storage:
        await storage.append(ONE, [entry()])
        async with _locked(place):
            with pytest.raises(StoreError, match=r"within 0\.5 seconds; nothing was written"):
                await storage.append(ONE, [entry()])
            with pytest.raises(StoreError, match="nothing was written"):
                await storage.clear(ONE, at=time())
        assert await seqs(storage) == [1]


async def test_cancelled_writes_leak_no_connection(place: str) -> None:
    """Whatever they were doing when they were cancelled, twice."""
    async with opened(place, timeout=5, connections=2) as storage:
        await storage.append(ONE, [entry()])
        async with _locked(place):
            for turn in range(12):
                task = asyncio.create_task(
                    storage.append(ONE, [entry()]) if turn % 2 else storage.delete(ONE)
                )
                for _ in range(turn):
                    await asyncio.sleep(0.001)
                task.cancel()
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        await asyncio.gather(*(storage.append(TWO, [entry()]) for _ in range(6)))
        assert await storage.count(TWO) == 6
        await asyncio.gather(*(storage.session(ONE) for _ in range(6)))


_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
_TERMINATE = "SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid"
_TERMINATE_WAITING = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND query LIKE %s"""


async def _terminate(place: str, storage: PostgresStorage) -> None:
    """End every idle connection of a store."""
    pids = [each[0].info.backend_pid for each in storage.shelf.connections._pool.ready]
    assert pids
    await asked(place, _TERMINATE, (pids,))


async def _terminate_waiting(place: str) -> None:
    """End the connection that waits for a lock on the schema's tables."""
    while not await asked(place, _TERMINATE_WAITING, (f'%"{place}".heads%',)):  # noqa: ASYNC110 - the server tells only when asked
        await asyncio.sleep(0.01)


@asynccontextmanager
async def _locked(place: str) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Lock all session rows; yields a function that unlocks them."""
    async with await psycopg.AsyncConnection.connect(URL) as other:
        await other.execute(sql("SELECT 1 FROM our.heads FOR UPDATE", place))
        yield other.rollback
