"""Redis Cluster: the tests of every store, on three nodes, and what is special there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from dragoman.gateway.keys import Budget, Keys, Spent
from dragoman.history import SessionIdentity
from dragoman.history.storage.protocol import Entry, Filter
from dragoman.history.storage.redis import RedisStorage
from dragoman.testing.conformance.stores import *  # noqa: F403 - the tests
from dragoman.testing.conformance.stores import Backend
from tests.history.storage.redis_cluster import NODES, cluster

redis = pytest.importorskip("redis")


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The ports of the nodes."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def backend(ports: list[int]) -> Backend:
    """A prefix of its own."""
    prefix = uuid4().hex
    return Backend("cluster", lambda: RedisStorage(f"redis://127.0.0.1:{ports[0]}", prefix=prefix))


new_backend = backend


def identities(number: int) -> list[SessionIdentity]:
    """Sessions of one user."""
    return [SessionIdentity(chat=str(each), user="ana") for each in range(number)]


async def test_sessions_are_spread_and_listed_in_order(ports: list[int]) -> None:
    """Over all nodes; each list, page, feed and deletion has all of them."""
    prefix = uuid4().hex
    storage = RedisStorage(f"redis://127.0.0.1:{ports[1]}", prefix=prefix)
    await storage.open()
    await storage.watch()
    for identity in identities(120):
        await storage.append(identity, [Entry("1", b'"x"', 1.0), Entry("2", b'"y"', 2.0)])
    sizes = []
    for port in ports:
        with redis.Redis(port=port) as client:
            sizes.append(sum(1 for _ in client.scan_iter(f"{prefix}:*:session", count=1000)))
    assert sum(sizes) == 120
    assert min(sizes) > 120 / NODES / 3
    digests = [session.identity.digest for session in await storage.sessions()]
    assert digests == sorted(each.digest for each in identities(120))
    pages: list[str] = []
    while page := await storage.sessions(limit=7, after=pages[-1] if pages else ""):
        pages += [session.identity.digest for session in page]
    assert pages == digests
    told: set[str] = set()
    cursor = ""
    while len(told) < 120:
        changes, cursor = await storage.changes(cursor, limit=50)
        assert changes
        told |= {digest for digest, _ in changes}
    assert told == {*digests}
    assert await storage.changes(cursor) == ([], cursor)
    await storage.append(identities(5)[4], [Entry("3", b'"z"', 3.0)])
    [(digest, _)], cursor = await storage.changes(cursor)
    assert digest == identities(5)[4].digest
    await storage.prune(cursor)
    assert await storage.changes("") == ([], "")
    erased = await storage.forget("ana")
    assert (erased.sessions, erased.messages) == (120, 241)
    assert await storage.sessions(Filter(user="ana")) == []
    await storage.close()


async def test_a_client_for_the_cluster_may_be_passed_in(ports: list[int]) -> None:
    """It stays open; stores with a URL see the same."""
    from redis.asyncio.cluster import RedisCluster

    prefix = uuid4().hex
    client: Any = RedisCluster(host="127.0.0.1", port=ports[2])
    [me] = identities(1)
    async with client:
        given = RedisStorage(client, prefix=prefix)
        await given.open()
        await given.append(me, [Entry("1", b'"x"', 1.0)])
        await given.close()
        assert await client.ping()
    other = RedisStorage(f"redis://127.0.0.1:{ports[0]}", prefix=prefix)
    await other.open()
    assert [row.id for row in await other.rows(me)] == ["1"]
    await other.close()


async def test_cut_connections_lose_and_double_nothing(ports: list[int]) -> None:
    """Four writers, while all connections are ended again and again."""
    storage = RedisStorage(f"redis://127.0.0.1:{ports[0]}", prefix=uuid4().hex)
    await storage.open()
    sessions = identities(6)
    acknowledged: list[tuple[str, str]] = []
    running = [True]

    def cut() -> None:
        for port in ports:
            with redis.Redis(port=port) as client:
                client.client_kill_filter(_type="normal", skipme=True)

    async def write(writer: int) -> None:
        for number in range(40):
            session, id = sessions[number % len(sessions)], f"{writer}.{number}"
            await storage.append(session, [Entry(id, b'"x"', 1.0)])
            acknowledged.append((session.digest, id))

    async def cutting() -> None:
        while running[0]:
            await asyncio.sleep(0.05)
            await asyncio.to_thread(cut)

    cutter = asyncio.create_task(cutting())
    await asyncio.gather(*(write(writer) for writer in range(4)))
    running[0] = False
    await cutter
    found = [(each.digest, row.id) for each in sessions for row in await storage.rows(each)]
    assert sorted(found) == sorted(acknowledged)
    await storage.close()


async def test_keys_of_a_gateway(ports: list[int]) -> None:
    """Two workers spend one budget, exactly."""
    url = f"redis://127.0.0.1:{ports[0]}?prefix={uuid4().hex}"
    async with await Keys.open(url) as one, await Keys.open(url) as other:
        key, _ = await one.create(budgets=[Budget("tokens", Decimal(20))])
        for keys in (one, other) * 10:
            held = await keys.reserve(key, "m", 1, None)
            await keys.settle(held, Spent(tokens_in=1))
        assert (await other.standing(key)).spent["total"] == (20, 0)
        assert [each.id for each in await other.list()] == [key.id]
