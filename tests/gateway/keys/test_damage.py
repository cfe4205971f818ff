"""Damage to a key store, and replies that it loses."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from secrets import token_hex

import msgspec
import pytest

from dragoman.errors import Corrupt, NotFound, QuotaExceeded, RateLimited, StoreError
from dragoman.gateway.keys import Budget, KeyRecord, Keys, Spent
from dragoman.gateway.keys.account import MAX_USAGE
from dragoman.gateway.keys.store import KeyStore
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.memory import MemoryShelf
from dragoman.history.storage.shelf import Change, LostReply
from tests.gateway.keys.conftest import Clock, Place
from tests.gateway.keys.test_outages import cut

NANO = Decimal("1e-9")
_LOST = "the connection broke"


async def altered(keys: Keys, id: str, place: int) -> None:
    """Change a byte of a key's document where it is stored."""
    store = keys._store
    shelf = store.ledger.shelf
    stored = await shelf.get(store.accounts.identity(id).digest)
    assert stored is not None
    document = bytearray(stored.document)
    document[place % len(document)] ^= 0x55
    damaged = stored._replace(stamp=stored.stamp + 1, document=bytes(document))
    assert await shelf.commit(stored.stamp, damaged, None)


@pytest.mark.parametrize("at", [0, 5, 40, 90, -1])
async def test_a_damaged_key_admits_nothing_and_can_be_revoked(place: Place, at: int) -> None:
    """Wherever it is damaged; other keys are not affected."""
    async with place.opened() as one, place.opened() as other:
        lost, secret = await one.create(name="lost", budgets=[Budget("cost", Decimal(1))])
        kept, _ = await one.create(name="kept", budgets=[Budget("cost", Decimal(1))])
        await altered(one, lost.id, at)
        with pytest.raises(Corrupt, match="revoke it and create another"):
            await other.authenticate(secret)
        for keys in (other, one):
            with pytest.raises(Corrupt, match="revoke it and create another"):
                await keys.reserve(lost, "m", 1, NANO)
        await one.settle(await one.reserve(kept, "m", 1, NANO), Spent(tokens_in=1, cost=NANO))
        assert [each.id for each in await other.list()] == [kept.id]
        assert list(other.damaged) == [lost.id]
        assert await other.revoke(lost.id) is None
        with pytest.raises(NotFound):
            await other.revoke("abcdefghijkm")
        assert [each.id for each in await one.list()] == [kept.id]
        assert not one.damaged


async def test_more_usage_than_a_document_holds(place: Place) -> None:
    """It is moved to rows, one for a day; a damaged row is neither counted nor overwritten."""
    async with place.opened() as one, place.opened() as other:
        key, _ = await one.create(max_concurrent=99)
        models = [f"m{number}" for number in range(MAX_USAGE + 20)]
        for _ in range(2):
            for keys in (one, other):
                await asyncio.gather(*(used(keys, key, model) for model in models))
        rows = await other.usage(key.id)
        assert {row.model: row.requests for row in rows} == dict.fromkeys(models, 4)
        identity = one._store.accounts.identity(key.id)
        account = await one._store.accounts.read(identity)
        assert account is not None
        assert len(account.usage) <= MAX_USAGE + len(models)
        ledger = one._store.ledger
        [row] = await ledger.rows(identity)
        damaged = msgspec.structs.replace(row, body=row.body.replace(b"m1", b"m0"))
        changed = lambda session: Change(session, [damaged], [row.id])  # noqa: E731
        await ledger.change(identity, changed, at=0.0, is_cached=False)
        await asyncio.gather(*(used(one, key, model) for model in models))
        rows = await other.usage(key.id)
        assert {row.model for row in rows} == {*models}
        assert damaged in await ledger.rows(identity)


async def used(keys: Keys, key: KeyRecord, model: str) -> None:
    """One request, as soon as it is admitted."""
    while True:
        try:
            held = await keys.reserve(key, model, 1, None)
        except RateLimited:
            await asyncio.sleep(0)
            continue
        await keys.settle(held, Spent(tokens_in=1, model=model, route="r"))
        return


class LosingShelf(MemoryShelf):
    """A shelf whose replies are lost, whether the commit was done or not."""

    is_blocking = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._draw = random.Random(seed)

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """As before, or nothing; then the reply may be lost."""
        await asyncio.sleep(0)
        luck = self._draw.random()
        if luck < 0.15:
            raise LostReply(_LOST)
        done = await super().commit(before, stored, change)
        if luck > 0.85:
            raise LostReply(_LOST)
        return done


@pytest.mark.parametrize("seed", range(6))
async def test_lost_replies_charge_once(seed: int) -> None:
    """Three workers on one budget: it is spent exactly, and nothing stays reserved."""
    shelf, clock = LosingShelf(seed), Clock()
    workers = [Keys(KeyStore(Ledger(shelf)), clock=clock, flush=3600) for _ in range(3)]
    for keys in workers:
        await keys.start()
    key, _ = await workers[0].create(budgets=[Budget("cost", 2000 * NANO)], max_concurrent=9)
    counts: list[int] = []

    async def client(keys: Keys, draw: random.Random) -> None:
        while True:
            cost = draw.randrange(1, 60)
            try:
                held = await keys.reserve(key, "m", 1, cost * NANO)
            except QuotaExceeded:
                return
            except RateLimited:
                await asyncio.sleep(0)
                continue
            standing = await keys.standing(key)
            live = sum(each.nanos for each in standing.held)
            assert standing.spent.get("total", (0, 0))[1] + live <= 2000
            assert sum(each.requests for each in standing.held) <= 9
            await keys.settle(held, Spent(tokens_in=2, cost=cost * NANO, model="m", route="r"))
            counts.append(cost)

    draws = [random.Random(seed * 100 + number) for number in range(24)]
    await asyncio.gather(*(client(workers[n % 3], draw) for n, draw in enumerate(draws)))
    for keys in workers:
        while keys._unsettled:
            await keys._write_pending()
    spent, held = await workers[0].standing(key)
    [row] = await workers[1].usage(key.id)
    assert (spent["total"], held) == ((2 * len(counts), sum(counts)), [])
    assert (row.requests, row.nanos) == (len(counts), sum(counts))
    for keys in workers:
        await keys.close()


async def spending(keys: Keys, key: KeyRecord, draw: random.Random, counts: list[int]) -> None:
    """A client that goes on until the budget is used up, whatever the store does."""
    while True:
        cost = draw.randrange(1, 60)
        try:
            held = await keys.reserve(key, "m", 1, cost * NANO)
        except QuotaExceeded:
            return
        except (RateLimited, StoreError):
            await asyncio.sleep(0.01)
            continue
        await keys.settle(held, Spent(tokens_in=2, cost=cost * NANO, model="m", route="r"))
        counts.append(cost)


@pytest.mark.slow
async def test_connections_that_are_cut_all_the_time_charge_once(place: Place) -> None:
    """Three workers on one budget: what was acknowledged counts once, and nothing else."""
    kind = place.url.partition(":")[0]
    if kind == "sqlite":
        pytest.skip("a file has no connections")
    name = f"cut-{token_hex(6)}"
    if kind == "mariadb":
        name = place.url.rpartition("/")[2]
    else:
        place.url += f"&{'client_name' if kind == 'redis' else 'application_name'}={name}"

    async def cutting() -> None:
        while True:
            await asyncio.to_thread(cut, name, kind)
            await asyncio.sleep(0.05)

    counts: list[int] = []
    async with place.opened() as one, place.opened() as two, place.opened() as three:
        key, _ = await one.create(budgets=[Budget("cost", 6000 * NANO)])
        cutter = asyncio.create_task(cutting())
        every = (one, two, three) * 8
        await asyncio.gather(
            *(spending(each, key, random.Random(n), counts) for n, each in enumerate(every))
        )
        cutter.cancel()
        await asyncio.wait([cutter])
        for keys in every:
            while keys._unsettled:
                await keys._write_pending()
        spent, _ = await one.standing(key)
        [row] = await two.usage(key.id)
    assert spent["total"] == (2 * len(counts), sum(counts))
    assert (row.requests, row.nanos) == (len(counts), sum(counts))
    assert sum(counts) <= 6000
