"""A failing key store: no usage is lost, and nothing is admitted unchecked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from secrets import token_hex

import pytest

from dragoman.errors import Corrupt, StoreError
from dragoman.gateway.keys import BatchSpent, Budget, Keys, Spent, UsageRow
from dragoman.gateway.keys.admission import Refusal
from dragoman.gateway.keys.records import Reservation
from dragoman.gateway.keys.store import Bill, Charge, Found, KeyStore
from dragoman.gateway.keys.urls import store_at
from dragoman.history.storage.memory import MemoryStorage
from tests.gateway.keys.conftest import Clock, Place
from tests.history.storage.backend_mariadb import end_connections
from tests.history.storage.backend_postgres import URL as POSTGRES
from tests.history.storage.backend_postgres import schema
from tests.history.storage.backend_redis import URL as REDIS

COST = Decimal("0.5")
TOOK = Spent(tokens_in=1, cost=COST, model="m", route="r")


class FailingStore(KeyStore):
    """A store that can be unreachable, or lose its answer."""

    def __init__(self) -> None:
        super().__init__(MemoryStorage())
        self.is_down = False

    def expect_up(self) -> None:
        """Raise while it is down."""
        if self.is_down:
            msg = "the store can't be reached"
            raise StoreError(msg)

    async def find(self, id: str) -> Found | None:
        """As before, if it is up."""
        self.expect_up()
        return await super().find(id)

    async def reserve(self, reservation: Reservation, now: float) -> Refusal | None:
        """As before, if it is up."""
        self.expect_up()
        return await super().reserve(reservation, now)

    async def settle(self, charge: Charge, now: float) -> bool:
        """Settle; while it is down the answer is lost."""
        done = await super().settle(charge, now)
        self.expect_up()
        return done

    async def charge_batch(self, bill: Bill) -> bool:
        """Charge; while it is down the answer is lost."""
        done = await super().charge_batch(bill)
        self.expect_up()
        return done

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:
        """As before, if it is up."""
        self.expect_up()
        await super().add_usage(rows, token, now)


async def test_nobody_is_admitted_while_the_store_is_down() -> None:
    """Cached keys without limits still work."""
    store = FailingStore()
    async with Keys(store, clock=Clock()) as keys:
        _, known = await keys.create()
        _, other = await keys.create()
        limited, _ = await keys.create(budgets=[Budget("cost", Decimal(1))])
        free = await keys.authenticate(known)
        store.is_down = True
        with pytest.raises(StoreError):
            await keys.authenticate(other)
        with pytest.raises(StoreError):
            await keys.reserve(limited, "m", 1, COST)
        held = await keys.reserve(await keys.authenticate(known), "m", 1, None)
        await keys.settle(held, TOOK)
        await keys._write_pending()
        store.is_down = False
        assert [(row.key, row.requests) for row in await keys.usage()] == [(free.id, 1)]


async def test_a_charge_is_retried_and_made_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whether the store failed, or only its answer was lost."""
    store = FailingStore()
    with caplog.at_level(logging.WARNING, "dragoman.gateway"):
        async with Keys(store, clock=Clock()) as keys:
            key, _ = await keys.create(budgets=[Budget("cost", Decimal(1))])
            held = await keys.reserve(key, "m", 1, COST)
            store.is_down = True
            await keys.settle(held, TOOK)
            await keys._write_pending()
            assert len(keys._unsettled) == 1
            store.is_down = False
            await keys._write_pending()
            assert (keys._unsettled, keys._live) == ({}, {})
            assert (await keys.standing(key)).spent["total"] == (1, 500_000_000)
    assert "charging a request to its key failed" in caplog.text


async def test_a_batch_is_charged_once_after_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    """It is retried until the store answers, or reported when the gateway ends."""
    store = FailingStore()
    spent = BatchSpent(model="m", route="r")
    spent.add(TOOK)
    with caplog.at_level(logging.WARNING, "dragoman.gateway"):
        async with Keys(store, clock=Clock()) as keys:
            key, _ = await keys.create(budgets=[Budget("cost", Decimal(1))])
            store.is_down = True
            for _ in range(2):
                await keys.charge_batch(key, "openai/f", [spent])
            await keys._write_pending()
            assert list(keys._unpaid) == ["openai/f"]
            store.is_down = False
            await keys._write_pending()
            assert keys._unpaid == {}
            assert (await keys.standing(key)).spent["total"] == (1, 500_000_000)
            store.is_down = True
            await keys.charge_batch(key, "openai/g", [spent])
    assert caplog.text.count("charging a batch to its key failed") == 2
    assert "1 requests could not be charged" in caplog.text


async def test_usage_that_was_sent_twice_counts_once(place: Place) -> None:
    """If its answer was lost."""
    row = UsageRow(key="k", day="2026-11-17", model="m", route="r", requests=1, nanos=5)
    async with place.opened() as keys:
        for token in ("one", "one", "two"):
            await keys._store.add_usage([row], token, place.clock.now)
        [found] = await keys.usage()
        assert (found.requests, found.nanos) == (2, 10)


async def test_a_reservation_that_was_sent_twice_is_one(place: Place) -> None:
    """If it was made and the answer was lost."""
    async with place.opened() as keys:
        key, _ = await keys.create(max_concurrent=1)
        held = await keys.reserve(key, "m", 1, None)
        assert await keys._store.reserve(held, place.clock.now) is None
        assert sum(each.requests for each in (await keys.standing(key)).held) == 1


async def test_a_file_of_another_program_is_not_changed(tmp_path: Path) -> None:
    """Whether it is a database or not."""
    import sqlite3

    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("not a database, but a text of some length" * 100)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for path, problem in ((text, Corrupt), (database, StoreError)):
        before = path.read_bytes()
        with pytest.raises(problem):
            await Keys.open(f"sqlite:///{path}")
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    "url",
    ["postgresql://nobody:secret-word@127.0.0.1:1/x?timeout=1", "redis://:secret-word@127.0.0.1:1"],
)
async def test_an_unreachable_server_is_reported_without_the_password(url: str) -> None:
    """Errors end up in logs."""
    pytest.importorskip("psycopg" if url.startswith("post") else "redis")
    with pytest.raises(StoreError, match="can't be reached") as told:
        await Keys.open(url)
    assert "secret-word" not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


async def test_dropped_connections_are_not_noticed(place: Place) -> None:
    """After a restart of the server, the request is admitted and charged once."""
    name = f"cut-{token_hex(6)}"
    if place.url.startswith("sqlite"):
        pytest.skip("a file has no connections")
    kind = place.url.partition(":")[0]
    if kind != "mariadb":
        place.url += f"&{'client_name' if kind == 'redis' else 'application_name'}={name}"
    else:
        name = place.url.rpartition("/")[2]
    async with place.opened() as keys:
        key, _ = await keys.create(budgets=[Budget("cost", Decimal(9))])
        for _ in range(3):
            held = await asyncio.gather(*(keys.reserve(key, "m", 1, COST) for _ in range(6)))
            cut(name, kind)
            for each in held[:3]:
                await keys.settle(each, TOOK)
            cut(name, kind)
            await asyncio.gather(*(keys.settle(each, TOOK) for each in held[3:]))
        assert (await keys.standing(key)).spent["total"] == (18, 18 * 500_000_000)
        assert (await keys.standing(key)).held == []


async def test_what_postgres_refuses_is_explained_by_its_code() -> None:
    """The tables were dropped meanwhile: the error says so, and what to do."""
    import psycopg

    with schema() as name:
        async with Place(f"{POSTGRES}?schema={name}").opened() as keys:
            with psycopg.connect(POSTGRES, autocommit=True) as connection:
                connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())
            with pytest.raises(StoreError, match="its tables are missing; open the store again"):
                await keys.create()


def cut(name: str, kind: str) -> None:
    """Close all connections of this name on the server."""
    if kind == "mariadb":
        end_connections(name)
        return
    if kind == "postgresql":
        import psycopg

        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            connection.execute(ended, (name,))
        return
    import redis

    with redis.Redis.from_url(REDIS) as client:
        for each in client.client_list():
            if each["name"] == name:
                client.client_kill_filter(_id=each["id"])


async def test_usage_is_written_in_the_background() -> None:
    """Also again after the store has failed."""
    store = FailingStore()
    async with Keys(store, clock=Clock(), flush=0.001) as keys:
        key, _ = await keys.create()
        store.is_down = True
        await keys.settle(await keys.reserve(key, "m", 1, None), TOOK)
        await asyncio.sleep(0.01)
        store.is_down = False
        while not await store.usage(None, None):  # noqa: ASYNC110 - its writer is what is tested
            await asyncio.sleep(0.001)


async def test_pending_usage_is_written_at_shutdown(tmp_path: Path) -> None:
    """Nothing is lost."""
    url = f"sqlite:///{tmp_path / 'keys.db'}"
    keys = await Keys.open(url, flush=3600)
    key, _ = await keys.create()
    await keys.settle(await keys.reserve(key, "m", 1, None), TOOK)
    await keys.close()
    async with Keys(store_at(url)) as again:
        assert [row.requests for row in await again.usage()] == [1]


async def test_a_request_of_a_key_without_limits_never_waits() -> None:
    """Not even for the event loop: everything is in memory."""
    async with Keys(store_at("memory:")) as keys:
        _, secret = await keys.create(models=["m*"])
        await keys.authenticate(secret)

        async def request() -> None:
            key = await keys.authenticate(secret, "peer")
            await keys.settle(await keys.reserve(key, "m1", 5, COST), TOOK)
            await keys.release(await keys.reserve(key, "m1", 5, COST))

        running = request()
        with pytest.raises(StopIteration):
            running.send(None)
        assert [row.requests for row in await keys.usage()] == [1]
