"""The Redis backend: lost connections, pages, durability, and leftovers."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from dragoman.errors import ConfigError, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import message_of, read_line
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.protocol import DuplicateIds, Entry, Filter, Fork, unreadable_row
from dragoman.history.storage.redis import RedisStorage, checking, connection
from dragoman.history.storage.redis import storage as reading
from dragoman.history.storage.redis.connection import promise_of
from dragoman.testing.conformance.stores.data import copy_of, entry, stored
from tests.history.storage.backend_redis import URL, emptied, expect_server

ONE = SessionIdentity(agent="guide", chat="7", user="Ana")
spawn = multiprocessing.get_context("spawn")


@pytest.fixture
def prefix() -> Iterator[str]:
    """A new prefix, cleaned up afterwards."""
    expect_server()
    name = f"test-{token_hex(6)}"
    yield name
    emptied(name)


@asynccontextmanager
async def opened(prefix: str, url: Any = URL) -> AsyncGenerator[RedisStorage]:
    """A storage, open."""
    storage = RedisStorage(url, prefix=prefix)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


class Proxy:
    """A proxy to the server that breaks the connection on request."""

    def __init__(self) -> None:
        self.before: Callable[[], Awaitable[object]] | None = None
        self.after: Callable[[], Awaitable[object]] | None = None
        self.only = b""  # what a request has in it that breaks
        self.is_closed = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward requests, one at a time."""
        if self.is_closed:
            writer.close()
            return
        there = urlsplit(URL)
        back, on = await asyncio.open_connection(there.hostname, there.port or 6379)
        while request := await reader.read(1 << 20):
            is_script = b"EVALSHA" in request and self.only in request
            if is_script and self.before is not None:
                hook, self.before = self.before, None
                await hook()
                break
            on.write(request)
            reply = await back.read(1 << 20)
            if is_script and self.after is not None:
                hook, self.after = self.after, None
                await hook()
                break
            writer.write(reply)
        on.close()
        writer.close()


@asynccontextmanager
async def proxied(prefix: str) -> AsyncGenerator[tuple[Proxy, RedisStorage]]:
    """A storage behind a proxy, with one message."""
    proxy = Proxy()
    listener = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with opened(prefix, f"redis://127.0.0.1:{port}/0") as storage:
        await storage.append(ONE, [entry("first")])
        yield proxy, storage
    listener.close()


async def nothing() -> None:
    """Do nothing."""


async def test_an_append_whose_answer_was_lost_is_executed_once(prefix: str) -> None:
    """It is found by its ids, with its version."""
    async with proxied(prefix) as (proxy, storage):
        proxy.after = nothing
        appended = await storage.append(ONE, [entry("a"), entry("b")], expected=1)
        assert (appended.version, appended.last_seq) == (2, 3)
        assert await stored(storage) == ["first", "a", "b"]


async def test_a_script_that_is_sent_twice_is_executed_once(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a client that repeats commands itself."""
    async with opened(prefix) as storage:
        await storage.append(ONE, [entry("first")])
        sent = storage.shelf.opened.run

        async def twice(*arguments: Any) -> list[bytes]:
            await sent(*arguments)
            return await sent(*arguments)

        monkeypatch.setattr(storage.shelf.opened, "run", twice)
        appended = await storage.append(ONE, [entry("a")], expected=1)
        assert (appended.version, appended.last_seq) == (2, 2)
        assert await stored(storage) == ["first", "a"]


async def test_a_read_is_repeated_on_a_new_connection(prefix: str) -> None:
    """The lost connection isn't reported."""
    async with proxied(prefix) as (proxy, storage):
        proxy.after = nothing
        assert await stored(storage) == ["first"]


async def test_a_server_that_stays_away_is_an_error(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that the outcome is unknown, and nothing else."""
    monkeypatch.setattr(connection, "_TRIES", (0.0, 0.0))
    async with proxied(prefix) as (proxy, storage):
        proxy.is_closed = True
        proxy.after = nothing
        with pytest.raises(StoreError, match="unknown") as raised:
            await storage.append(ONE, [entry("secret")])
        assert raised.value.__context__ is None
        assert raised.value.__cause__ is None
        proxy.is_closed = False
        assert await stored(storage) == ["first", "secret"]


async def test_no_password_is_shown(prefix: str) -> None:
    """Neither in the name nor in an error."""
    storage = RedisStorage("redis://me:secret@127.0.0.1:1/3", prefix=prefix)
    assert storage.name == "redis:127.0.0.1:1/3"
    with pytest.raises(StoreError) as raised:
        await storage.open()
    assert "secret" not in f"{raised.value!r}{raised.value.__context__!r}"
    with pytest.raises(InvalidInputError) as refused:
        await RedisStorage("http://me:secret@host").open()
    assert "secret" not in f"{refused.value!r}{refused.value.__context__!r}"


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra to install."""
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigError, match=r"dragoman\[redis\]"):
        await RedisStorage(URL).open()


async def test_a_client_can_be_passed_in(prefix: str) -> None:
    """Such as Sentinel's; it stays open."""
    from redis.asyncio import Redis

    async with Redis.from_url(URL) as client:
        async with opened(prefix, client) as storage:
            await storage.append(ONE, [entry("a")])
            assert await stored(storage) == ["a"]
        assert await client.exists(f"{prefix}:{{{ONE.digest}}}:session") == 1


@pytest.mark.parametrize("prefix", ["", "a{b}", "a*", "a b", "x" * 101])
def test_an_invalid_prefix_is_rejected(prefix: str) -> None:
    """Braces and stars have a special meaning."""
    with pytest.raises(InvalidInputError):
        RedisStorage(URL, prefix=prefix)


async def test_records_are_lines(prefix: str) -> None:
    """As in files and exports."""
    from redis.asyncio import Redis

    async with opened(prefix) as storage, Redis.from_url(URL) as client:
        await storage.append(ONE, [entry("a"), entry('"version":1, "quoted"')])
        await storage.fork(ONE, parent=0, at=1)
        await storage.append(ONE, [entry("b")], branch=1)
        lines: Any = await client.hvals(f"{prefix}:{{{ONE.digest}}}:records")  # type: ignore[misc, unused-ignore]
        rows = [*await storage.rows(ONE), *await storage.rows(ONE, branch=1)]
        assert {read_line(line) for line in lines} == set(rows)


async def test_ids_with_quotes_are_kept(prefix: str) -> None:
    """Whatever they look like."""
    async with opened(prefix) as storage:
        odd = [
            Entry(id, entry("odd").body, 1.0) for id in (',"version":1,', '"', "é🙂", "a b\n", "\\")
        ]
        await storage.append(ONE, odd)
        assert [row.id for row in await storage.rows(ONE)] == [each.id for each in odd]
        for each in odd:
            assert await storage.row(ONE, each.id) is not None
        assert await storage.verify() == []
        await storage.rewrite(ONE, replaced=odd[:2], removed=[each.id for each in odd[2:]])
        assert [row.id for row in await storage.rows(ONE)] == [each.id for each in odd[:2]]


async def test_pages_are_consistent(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewrite between two pages restarts the read; an append doesn't matter."""
    monkeypatch.setattr(reading, "PAGE", 3)
    async with opened(prefix) as storage, opened(prefix) as other:
        await storage.append(ONE, [entry(f"old{n}") for n in range(7)])
        page = connection.Server.page
        changes: list[Callable[[], Awaitable[object]]] = [
            lambda: other.append(ONE, [entry("new0")]),
            lambda: other.clear(ONE, at=1.0),
            lambda: other.append(ONE, [entry("new1"), entry("new2")]),
        ]

        async def changing(*arguments: Any) -> Any:
            found = await page(*arguments)
            if changes:
                await changes.pop(0)()
            return found

        monkeypatch.setattr(connection.Server, "page", changing)
        assert await stored(storage) == ["new1", "new2"]


async def test_pages_of_two_copies_are_not_mixed(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that was restored is restored again while it is read."""
    monkeypatch.setattr(reading, "PAGE", 3)
    async with opened(prefix) as storage, opened(prefix) as other:
        await storage.restore(*copy_of(9, *range(2, 16, 2)))
        later, rows = copy_of(30, *range(2, 16, 2))
        page, copies = connection.Server.page, [(later, rows)]

        async def changing(*arguments: Any) -> Any:
            found = await page(*arguments)
            if copies:
                assert await other.restore(*copies.pop()) is True
            return found

        monkeypatch.setattr(connection.Server, "page", changing)
        assert [row.id for row in await storage.rows(ONE)] == [row.id for row in rows]


async def test_pages_are_joined(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any direction, with any limit."""
    monkeypatch.setattr(reading, "PAGE", 3)
    async with opened(prefix) as storage:
        await storage.append(ONE, [entry(str(n)) for n in range(1, 11)])
        for limit in range(12):
            oldest = await storage.rows(ONE, after=2, upto=9, limit=limit)
            assert [row.seq for row in oldest] == list(range(3, 10))[:limit]
            newest = await storage.rows(ONE, after=2, upto=9, limit=limit, newest=True)
            assert [row.seq for row in newest] == list(range(3, 10))[max(0, 7 - limit) :]


async def test_inconsistencies_are_reported(prefix: str) -> None:
    """Ids that lead nowhere, counts that differ, sessions that are not listed."""
    from redis.asyncio import Redis

    key = f"{prefix}:{{{ONE.digest}}}"
    async with opened(prefix) as storage, Redis.from_url(URL) as client:
        other = SessionIdentity(chat="8")
        for who in (ONE, other):
            await storage.append(who, [entry("a"), entry("b"), entry("c")])
        assert await storage.verify() == []
        await client.hdel(f"{key}:records", "2")  # type: ignore[misc, unused-ignore]
        await client.hset(f"{key}:records", "3", "rubbish")  # type: ignore[misc, unused-ignore]
        await client.zrem(f"{prefix}:sessions", other.digest)
        damage = damage_to(unreadable_row(1, 0))
        assert sorted(problem.split(": ", 1)[1] for problem in await storage.verify()) == [
            "it has 2 records, and 3 ids",
            "it is not in the list of sessions",
            "message 2: its id points nowhere",
            f"message 2: {damage}",
            f"message 3: {damage}",
        ]
        assert [damage_to(row) for row in await storage.rows(ONE)] == [None, damage, damage]
        assert await storage.set_aside(ONE, [2, 3], "broken") == 1
        aside: Any = await client.lrange(f"{key}:aside", 1, -1)  # type: ignore[misc, unused-ignore]
        assert [text.split(b" ", 1)[1] for text in aside] == [b"3 broken\nrubbish"]
        assert await storage.verify() == [
            f"session {other.digest}: it is not in the list of sessions"
        ]


async def test_forget_leaves_no_key(prefix: str) -> None:
    """Records set aside go too, even of a deleted session."""
    from redis.asyncio import Redis

    async with opened(prefix) as storage, Redis.from_url(URL) as client:
        gone, bob = SessionIdentity(chat="8", user="Ana"), SessionIdentity(chat="9", user="Bob")
        for who in (ONE, gone, bob):
            await storage.append(who, [entry("a"), entry("b")])
        await storage.set_aside(gone, [1], "broken")
        await storage.delete(gone)
        await storage.fork(ONE, parent=0, at=1)
        await storage.append(ONE, [entry("c")], branch=1)
        erased = await storage.forget("Ana")
        assert (erased.sessions, erased.messages) == (1, 3)
        assert any("backups" in text for text in erased.remains)
        assert await storage.sessions(Filter(user="Ana")) == []
        left = {key.decode() async for key in client.scan_iter(f"{prefix}:*")}
        kinds = ("session", "records", "ids", "branch:0")
        own = {f"{prefix}:{{{bob.digest}}}:{what}" for what in kinds}
        assert left == {f"{prefix}:sessions", *own}


@pytest.mark.parametrize(
    ("settings", "promise"),
    [
        ({}, "unknown"),
        ({"appendonly": "yes", "appendfsync": "always", "save": ""}, "survives a power cut"),
        ({"appendonly": "yes", "appendfsync": "everysec", "save": ""}, "last second"),
        ({"appendonly": "yes", "appendfsync": "no", "save": ""}, "half a minute"),
        ({"appendonly": "no", "appendfsync": "always", "save": "3600 1"}, "snapshots only"),
        ({"appendonly": "no", "appendfsync": "always", "save": ""}, "none"),
    ],
)
def test_the_durability_of_the_settings_is_described(
    settings: dict[str, str], promise: str
) -> None:
    """In plain words."""
    assert promise in promise_of(settings)


async def test_the_servers_own_settings_are_queried(prefix: str) -> None:
    """Once it is open."""
    async with opened(prefix) as storage:
        assert storage.durability


async def test_keys_of_another_program_are_not_changed(prefix: str) -> None:
    """A key of another type is reported, and nothing is written."""
    from redis.asyncio import Redis

    async with opened(prefix) as storage, Redis.from_url(URL) as client:
        key = f"{prefix}:{{{ONE.digest}}}:session"
        await client.set(key, "mine")
        with pytest.raises(StoreError) as raised:
            await storage.append(ONE, [entry("secret")])
        assert "nothing was changed" in str(raised.value)
        assert "secret" not in f"{raised.value}{raised.value.__context__}"
        assert await client.get(key) == b"mine"


async def test_a_cancelled_append_is_complete_or_absent(prefix: str) -> None:
    """At whatever moment; the storage can still be used."""
    async with opened(prefix) as storage:
        for turns in range(12):
            batch = [entry(f"{turns}-{n}") for n in range(3)]
            task = asyncio.create_task(storage.append(ONE, batch))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(DuplicateIds):  # it was executed, then
                await storage.append(ONE, batch)
        assert await storage.count(ONE) == 36
        assert await storage.verify() == []


def _write(prefix: str, writer: int, count: int) -> None:
    async def run() -> None:
        async with opened(prefix) as storage:
            for number in range(count):
                await storage.append(ONE, [entry(f"{writer}-{number}")])

    asyncio.run(run())


async def test_concurrent_processes_lose_and_mix_up_nothing(prefix: str) -> None:
    """Numbers are contiguous, and each writer's messages are in its order."""
    writers = [spawn.Process(target=_write, args=(prefix, n, 100)) for n in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    async with opened(prefix) as storage:
        rows = await storage.rows(ONE)
        assert [row.seq for row in rows] == list(range(1, 401))
        said = [message_of(row.body).text.split("-") for row in rows]
        for writer in "0123":
            assert [n for who, n in said if who == writer] == [str(n) for n in range(100)]
        assert await storage.verify() == []


# --- what random mutants of the source survived


async def test_more_sessions_than_a_page_are_all_listed(prefix: str) -> None:
    """In order, for a list, a search, totals, a check and an erasure."""
    async with opened(prefix) as storage:
        people = [
            SessionIdentity(chat=str(n), user="Ana") for n in range(2 * checking._AT_ONCE + 1)
        ]
        for who in people:
            await storage.append(who, [entry("alpha")])
        digests = sorted(who.digest for who in people)
        listed = await storage.sessions()
        assert [each.identity.digest for each in listed] == digests
        behind = await storage.sessions(after=digests[checking._AT_ONCE - 1], limit=3)
        assert [each.identity.digest for each in behind] == digests[checking._AT_ONCE :][:3]
        found = await storage.sessions(limit=checking._AT_ONCE + 1)
        assert [each.identity.digest for each in found] == digests[: checking._AT_ONCE + 1]
        assert len(await storage.search("alpha", limit=1000)) == len(people)
        assert await storage.verify() == []
        assert (await storage.forget("Ana")).sessions == len(people)
        assert await storage.sessions() == []


async def test_no_branch_key_is_left_by_a_restore(prefix: str) -> None:
    """Neither of earlier branches, nor of rows on unknown branches."""
    from redis.asyncio import Redis

    async with opened(prefix) as storage, Redis.from_url(URL) as client:
        await storage.append(ONE, [entry("a"), entry("b")])
        await storage.fork(ONE, parent=0, at=1)
        await storage.append(ONE, [entry("c")], branch=1)
        session, rows = copy_of(9, 2, 4)
        strays = [msgspec.structs.replace(row, branch=7) for row in rows[1:]]
        assert await storage.restore(session, [rows[0], *strays]) is True
        assert await _branches(client, prefix) == ["0", "7"]
        assert (await storage.append(ONE, [entry("d")], branch=1)).last_seq == 21
        assert await _branches(client, prefix) == ["0", "1", "7"]
        later, only = copy_of(30, 6)
        assert await storage.restore(later, only) is True
        assert await _branches(client, prefix) == ["0"]
        await storage.append(ONE, [entry("e")], branch=1)
        await storage.clear(ONE, at=1.0)
        assert await _branches(client, prefix) == []
        assert await storage.fork(ONE, parent=0, at=0) == 1
        await storage.append(ONE, [entry("f")], branch=1)
        assert await storage.verify() == []
        await storage.delete(ONE)
        assert await _branches(client, prefix) == []


async def _branches(client: Any, prefix: str) -> list[str]:
    keys = [key.decode() async for key in client.scan_iter(f"{prefix}:*:branch:*")]
    return sorted(key.rpartition(":")[2] for key in keys)


async def test_a_branch_created_after_a_restore_has_a_new_number(prefix: str) -> None:
    """Above all existing ones, whatever the copy says."""
    async with opened(prefix) as storage:
        session, rows = copy_of(9, 2, 3)
        forks = (*session.forks, Fork(4, 1, 3))
        await storage.restore(msgspec.structs.replace(session, forks=forks), rows)
        assert await storage.fork(ONE, parent=4, at=3) == 5
        assert await storage.verify() == []
