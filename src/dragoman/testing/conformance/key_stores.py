"""The behaviour of every key store: admission, charges, leases, usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from dragoman.errors import (
    AuthenticationError,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
)
from dragoman.gateway.keys import BatchSpent, Budget, KeyRecord, Keys, Reservation, Spent
from dragoman.gateway.keys.keys import KEPT_ENVELOPE_KEYS
from dragoman.gateway.keys.store import KEPT, LEASE, KeyStore
from dragoman.gateway.keys.urls import store_at
from dragoman.history.storage.shelf import Change
from dragoman.testing.conformance.loops import in_loop

NOON = 1_794_916_800.0  # 2026-11-17 12:00 UTC
DAY = 86_400.0
CENT = Decimal("0.01")


class Clock:
    """A clock that only moves when told to."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time."""
        return self.now


class Place:
    """An empty store that can be opened repeatedly: at a URL, or as a function makes it."""

    def __init__(self, url: str = "", make: Callable[[], KeyStore] | None = None) -> None:
        self.url = url
        self.clock = Clock()
        self._make = make

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncGenerator[Keys]:
        """Its keys, as another process would open them."""
        store = store_at(self.url) if self._make is None else self._make()
        options.setdefault("clock", self.clock)
        keys = Keys(store, **options)
        await keys.start()
        try:
            yield keys
        finally:
            await keys.close()


def spent(tokens: int = 0, cost: Decimal | None = CENT, model: str = "m") -> Spent:
    """The usage of a request."""
    return Spent(tokens_in=tokens, cost=cost, model=model, route="r")


async def limited(keys: Keys, *budgets: Budget, **limits: int) -> KeyRecord:
    """A key with budgets or limits."""
    _, secret = await keys.create(budgets=budgets, **limits)  # type: ignore[arg-type]  # numbers by name
    return await keys.authenticate(secret)


async def reserve(
    keys: Keys, key: KeyRecord, tokens: int = 0, cost: Decimal | None = CENT
) -> Reservation:
    """A request for some model."""
    return await keys.reserve(key, "m", tokens, cost)


# --- keys


@in_loop
async def test_a_created_key_is_found_by_its_secret(place: Place) -> None:
    """With all its fields, on another worker too."""
    budgets = (Budget("cost", Decimal("5.25"), "day"), Budget("tokens", Decimal(1000)))
    async with place.opened() as one, place.opened() as other:
        record, secret = await one.create(
            name="team", models=["gpt-*"], requests_per_minute=3, tokens_per_minute=4,
            max_concurrent=5, budgets=budgets, expires_at=NOON + 1, is_admin=True,
        )  # fmt: skip
        assert await other.authenticate(secret) == record
        assert list(await other.list()) == [record]
        assert (record.budgets, record.created_at) == (budgets, NOON)


@in_loop
async def test_a_revoked_key_is_rejected(place: Place) -> None:
    """At once where it was revoked, and elsewhere with the next lookup."""
    async with place.opened() as one, place.opened(remembered=0.0) as other:
        record, secret = await one.create()
        await one.authenticate(secret)
        await other.authenticate(secret)
        place.clock.now += 5
        revoked = await one.revoke(record.id)
        place.clock.now += 5
        assert await one.revoke(record.id) == revoked  # the first time counts
        assert revoked is not None
        assert revoked.revoked_at == NOON + 5
        for keys in (one, other):
            with pytest.raises(AuthenticationError, match="revoked"):
                await keys.authenticate(secret)


@in_loop
async def test_a_revoked_key_with_limits_reserves_nothing_more(place: Place) -> None:
    """Even if it is cached: the store checks at admission."""
    async with place.opened() as one, place.opened() as other:
        key = await limited(one, max_concurrent=5)
        before = await reserve(other, key)
        await one.revoke(key.id)
        with pytest.raises(AuthenticationError, match="revoked"):
            await reserve(other, key)
        await other.settle(before, spent(7))  # what was admitted is charged
        assert [row.tokens_in for row in await one.usage(key.id)] == [7]


@in_loop
async def test_only_existing_keys_can_be_revoked(place: Place) -> None:
    """For any id."""
    async with place.opened() as keys:
        for id in ("abcdefghijkm", "", "x" * 10_000, "a'; DROP TABLE keys; --", "\0\ud800"):
            with pytest.raises(NotFound, match="keys list"):
                await keys.revoke(id)


# --- budgets


@in_loop
async def test_a_budget_admits_up_to_its_amount(place: Place) -> None:
    """Spent and reserved amounts count together."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", Decimal("0.03")))
        first = await reserve(keys, key)
        second = await reserve(keys, key, cost=2 * CENT)
        with pytest.raises(RateLimited, match=r"\$0\.03 in total is reserved") as told:
            await reserve(keys, key, cost=Decimal("0.000000001"))
        assert told.value.retry_after == 1.0
        await keys.settle(first, spent(cost=CENT))
        await keys.settle(second, spent(cost=CENT))
        await keys.release(await reserve(keys, key))
        with pytest.raises(QuotaExceeded, match=r"budget of \$0\.03 in total is used up") as over:
            await reserve(keys, key, cost=CENT + Decimal("0.000000001"))
        assert over.value.status == 429
        assert (await keys.standing(key)).spent["total"] == (0, 20_000_000)


@in_loop
async def test_a_token_budget_counts_input_and_output(place: Place) -> None:
    """Cached and reasoning tokens are included once."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("tokens", Decimal(100), "month"))
        taken = await reserve(keys, key, 60, None)
        took = Spent(tokens_in=40, tokens_out=20, tokens_cached=30, tokens_reasoning=10)
        await keys.settle(taken, took)
        with pytest.raises(QuotaExceeded, match="100 tokens per month") as told:
            await reserve(keys, key, 41, None)
        assert told.value.retry_after == 13.5 * DAY
        await reserve(keys, key, 40, None)


@in_loop
async def test_all_workers_share_the_keys_of_envelopes(place: Place) -> None:
    """Those that start at once create one; a new one signs once everybody has read it."""
    async with place.opened() as one, place.opened() as other:
        first, also = await asyncio.gather(one.envelope_keys(), other.envelope_keys())
        assert first == also
        [old] = first
        assert len(old) == 32
        place.clock.now += 1000
        await one.add_envelope_key()
        known = await other.envelope_keys()
        assert (known[0], len(known)) == (old, 2)
        place.clock.now += 200
        new = (await other.envelope_keys())[0]
        assert new == known[1]
        for _ in range(KEPT_ENVELOPE_KEYS - 1):
            await one.add_envelope_key()
        place.clock.now += 200
        latest = await one.envelope_keys()
        assert (len(latest), old in latest, new in latest) == (KEPT_ENVELOPE_KEYS, False, True)
        assert await one.list() == []


@in_loop
async def test_a_key_with_nothing_left_is_known_before_a_request(place: Place) -> None:
    """Asking reserves nothing, and refuses what the smallest request would be refused for."""
    async with place.opened() as keys:
        budget = await limited(keys, Budget("tokens", Decimal(100)))
        for _ in range(3):
            await keys.expect_open(budget)
        taken = await reserve(keys, budget, 100, None)
        with pytest.raises(RateLimited, match="reserved by"):
            await keys.expect_open(budget)
        await keys.settle(taken, Spent(tokens_in=100))
        with pytest.raises(QuotaExceeded, match="100 tokens in total is used up"):
            await keys.expect_open(budget)
        await keys.expect_open(budget, is_free=True)
        rate = await limited(keys, requests_per_minute=2)
        for _ in range(3):
            await keys.expect_open(rate)
        for _ in range(2):
            await keys.settle(await reserve(keys, rate, 1, None), Spent(tokens_in=1))
        with pytest.raises(RateLimited, match="2 requests per minute"):
            await keys.expect_open(rate, is_free=True)
        assert (await keys.standing(budget)).held == []


@in_loop
async def test_a_new_day_has_a_new_budget(place: Place) -> None:
    """A request belongs to the day on which it was admitted."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", 2 * CENT, "day"), Budget("cost", 5 * CENT))
        late = await reserve(keys, key, cost=2 * CENT)
        place.clock.now += DAY
        await keys.settle(late, spent(cost=2 * CENT))
        await keys.settle(await reserve(keys, key), spent(cost=2 * CENT))
        with pytest.raises(QuotaExceeded, match=r"\$0\.02 per day"):
            await reserve(keys, key)
        place.clock.now += DAY
        with pytest.raises(QuotaExceeded, match=r"\$0\.05 in total"):
            await reserve(keys, key, cost=2 * CENT)
        days = [(row.day, row.nanos) for row in await keys.usage(key.id)]
        assert days == [("2026-11-17", 20_000_000), ("2026-11-18", 20_000_000)]


@in_loop
async def test_a_month_is_a_calendar_month(place: Place) -> None:
    """Not thirty days."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", CENT, "month"))
        await keys.settle(await reserve(keys, key), spent(cost=CENT))
        place.clock.now = NOON + 13 * DAY  # the 30th of November
        with pytest.raises(QuotaExceeded):
            await reserve(keys, key)
        place.clock.now += DAY / 2  # midnight
        await reserve(keys, key)


@in_loop
async def test_an_unknown_cost_is_charged_as_estimated(place: Place) -> None:
    """Never as zero: otherwise a budget could be exceeded many times."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", 3 * CENT))
        await keys.settle(await reserve(keys, key, cost=2 * CENT), spent(cost=None))
        [row] = await keys.usage(key.id)
        assert (row.cost, row.unknown) == (2 * CENT, 1)
        with pytest.raises(QuotaExceeded):
            await reserve(keys, key, cost=2 * CENT)


@in_loop
async def test_a_model_without_a_price_needs_a_key_without_cost_budget(place: Place) -> None:
    """Otherwise the budget couldn't be enforced."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", CENT))
        with pytest.raises(PermissionDenied, match="price of this model is unknown"):
            await reserve(keys, key, cost=None)


@in_loop
async def test_more_may_be_spent_than_was_reserved(place: Place) -> None:
    """It is charged completely, and nothing is admitted afterwards."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", 2 * CENT))
        await keys.settle(await reserve(keys, key), spent(cost=Decimal(7)))
        assert (await keys.standing(key)).spent["total"] == (0, 7_000_000_000)
        with pytest.raises(QuotaExceeded):
            await reserve(keys, key, cost=Decimal(0))


@in_loop
async def test_an_empty_budget_admits_nothing_that_costs(place: Place) -> None:
    """Zero is a valid amount."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", Decimal(0)))
        with pytest.raises(QuotaExceeded):
            await reserve(keys, key, cost=Decimal("1e-30"))
        await reserve(keys, key, cost=Decimal(0))


@in_loop
async def test_large_sums_are_exact(place: Place) -> None:
    """A nano-dollar beside a million dollars is not lost."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", Decimal(9_000_000)))
        cost = Decimal("999999.999999999")
        for _ in range(8):
            await keys.settle(await reserve(keys, key, cost=CENT), spent(10**12, cost))
        expected = (8 * 10**12, 8 * 999_999_999_999_999)
        assert (await keys.standing(key)).spent["total"] == expected
        assert [row.cost for row in await keys.usage(key.id)] == [8 * cost]


# --- settling


@in_loop
async def test_settling_twice_charges_once(place: Place) -> None:
    """By the reservation's id, so that another worker may retry."""
    async with place.opened() as one, place.opened() as other:
        key = await limited(one, Budget("cost", Decimal(1)))
        held = await reserve(one, key)
        same = Reservation(id=held.id, key=key, tokens=0, nanos=held.nanos, day=held.day)
        await asyncio.gather(one.settle(held, spent()), other.settle(same, spent()))
        await one.settle(held, spent())
        await one.release(held)
        assert (await one.standing(key)).spent["total"] == (0, 10_000_000)
        assert [row.requests for row in await one.usage(key.id)] == [1]


@in_loop
async def test_a_released_reservation_is_not_charged_later(place: Place) -> None:
    """Its amount is available again."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", CENT))
        held = await reserve(keys, key)
        same = Reservation(id=held.id, key=key, tokens=0, nanos=held.nanos, day=held.day)
        await keys.release(held)
        await keys.settle(same, spent())
        assert await keys.usage(key.id) == []
        await reserve(keys, key)


@in_loop
async def test_reservations_of_a_crashed_worker_expire(place: Place) -> None:
    """After a lease; if the worker is alive after all, it is still charged, within a day."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", CENT), max_concurrent=1)
        held = await reserve(keys, key)
        place.clock.now += LEASE - 1
        with pytest.raises(RateLimited):
            await reserve(keys, key)
        place.clock.now += 2
        again = await reserve(keys, key)
        await keys.release(again)
        await keys.settle(held, spent(cost=CENT / 2))
        assert (await keys.standing(key)).spent["total"] == (0, 5_000_000)


@in_loop
async def test_renewed_reservations_do_not_expire(place: Place) -> None:
    """However long an answer takes."""
    async with place.opened() as keys:
        key = await limited(keys, max_concurrent=1)
        held = await reserve(keys, key)
        for _ in range(3):
            place.clock.now += LEASE - 1
            await keys._store.renew([held], place.clock.now)
        with pytest.raises(RateLimited, match="1 concurrent requests"):
            await reserve(keys, key)


@in_loop
async def test_old_reservations_are_removed(place: Place) -> None:
    """So that the store does not grow for ever."""
    async with place.opened() as keys:
        key = await limited(keys, max_concurrent=9)
        held, live = await reserve(keys, key), await reserve(keys, key)
        place.clock.now += KEPT + LEASE + 1
        await keys._store.renew([live], place.clock.now)
        await keys._store.sweep(place.clock.now)
        await keys.settle(held, spent())
        await keys.settle(live, spent())
        assert [row.requests for row in await keys.usage()] == [1]


# --- rates


@in_loop
async def test_requests_per_minute(place: Place) -> None:
    """A minute's worth at once, then as the bucket refills."""
    async with place.opened() as keys:
        key = await limited(keys, requests_per_minute=6)
        for _ in range(6):
            await keys.release(await reserve(keys, key))
        with pytest.raises(RateLimited, match="6 requests per minute") as told:
            await reserve(keys, key)
        assert told.value.retry_after == pytest.approx(10, abs=0.01)
        place.clock.now += 10
        await reserve(keys, key)
        with pytest.raises(RateLimited):
            await reserve(keys, key)


@in_loop
async def test_tokens_per_minute_count_actual_usage(place: Place) -> None:
    """The estimate is reserved until it is known."""
    async with place.opened() as keys:
        key = await limited(keys, tokens_per_minute=100)
        held = await reserve(keys, key, 80)
        with pytest.raises(RateLimited, match="100 tokens per minute") as told:
            await reserve(keys, key, 30)
        assert told.value.retry_after == pytest.approx(6, abs=0.01)
        await keys.settle(held, spent(40))
        held = await reserve(keys, key, 60)
        await keys.release(held)
        held = await reserve(keys, key, 60)
        await keys.settle(held, spent(260))  # far more than was expected
        with pytest.raises(RateLimited) as told:
            await reserve(keys, key, 100)
        assert told.value.retry_after == pytest.approx(180, abs=0.01)


@in_loop
async def test_a_request_larger_than_a_minute_has_its_own_error(place: Place) -> None:
    """Waiting would not help."""
    async with place.opened() as keys:
        key = await limited(keys, tokens_per_minute=100)
        with pytest.raises(InvalidRequest, match="101 tokens, but the key allows 100 per minute"):
            await reserve(keys, key, 101)
        await reserve(keys, key, 100)


@in_loop
async def test_a_clock_that_is_set_back_blocks_nobody(place: Place) -> None:
    """Rates start over; budgets of the earlier day are unchanged."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", CENT, "day"), requests_per_minute=1)
        await keys.settle(await reserve(keys, key), spent(cost=CENT))
        place.clock.now += 30 * DAY
        await keys.settle(await reserve(keys, key, cost=Decimal(0)), spent(cost=Decimal(0)))
        place.clock.now -= 30 * DAY - 120
        with pytest.raises(QuotaExceeded):
            await reserve(keys, key)
        await reserve(keys, key, cost=Decimal(0))


@in_loop
async def test_concurrent_requests(place: Place) -> None:
    """Over all workers."""
    async with place.opened() as one, place.opened() as other:
        key = await limited(one, max_concurrent=2)
        first, _ = await reserve(one, key), await reserve(other, key)
        for keys in (one, other):
            with pytest.raises(RateLimited, match="2 concurrent requests"):
                await reserve(keys, key)
        await one.settle(first, spent())
        await reserve(other, key)


@in_loop
async def test_a_rejected_request_leaves_nothing_behind(place: Place) -> None:
    """Neither a reservation, nor a request in the rates."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", CENT), requests_per_minute=2, tokens_per_minute=10)
        for tokens, cost in ((1, 2 * CENT), (1, 3 * CENT)):
            with pytest.raises(QuotaExceeded):
                await reserve(keys, key, tokens, cost)
        held = await reserve(keys, key, 10, CENT)
        for _ in range(3):
            with pytest.raises(RateLimited):
                await reserve(keys, key, 1, Decimal(0))
        await keys.release(held)
        await reserve(keys, key, 10, CENT)


# --- usage


@in_loop
async def test_usage_of_a_key_without_limits_is_up_to_date(place: Place) -> None:
    """Although its requests don't use the store."""
    async with place.opened() as one, place.opened() as other:
        free, secret = await one.create()
        for model in ("b", "a", "b"):
            key = await one.authenticate(secret)
            took = Spent(
                tokens_in=5, tokens_out=3, tokens_cached=2, tokens_reasoning=1,
                cost=None if model == "a" else CENT, model=model, route="r",
            )  # fmt: skip
            await one.settle(await one.reserve(key, model, 10, None), took)
        await one.settle(await one.reserve(free, "x", 10, None), spent(1))
        assert [row.model for row in await one.usage()] == ["a", "b", "m"]
        [a, b, _] = await other.usage(free.id)
        assert (a.requests, a.nanos, a.unknown) == (1, 0, 1)
        assert (b.requests, b.tokens_in, b.tokens_out) == (2, 10, 6)
        assert (b.tokens_cached, b.tokens_reasoning, b.cost) == (4, 2, 2 * CENT)


@in_loop
async def test_usage_is_grouped_and_starts_at_a_day(place: Place) -> None:
    """By key, day, model or route."""
    async with place.opened() as keys:
        one, two = (await keys.create())[0], await limited(keys, max_concurrent=9)
        for _ in range(2):
            for key, model in ((one, "a"), (two, "a"), (two, "b")):
                await keys.settle(await reserve(keys, key), spent(1, model=model))
            place.clock.now += DAY
        by_model = [(row.model, row.requests) for row in await keys.usage(by=["model"])]
        assert by_model == [("a", 4), ("b", 2)]
        by_day = await keys.usage(two.id, by=["day"], since="2026-11-18")
        assert [(row.day, row.requests) for row in by_day] == [("2026-11-18", 2)]
        assert sum(row.requests for row in await keys.usage(by=["key"])) == 6


@in_loop
async def test_names_that_a_store_can_not_hold_are_shortened(place: Place) -> None:
    """Clients choose the model's name."""
    async with place.opened() as keys:
        key = await limited(keys, max_concurrent=9)
        free, _ = await keys.create()
        for model in ("\0", "\ud800", "x" * 10_000, "'; DROP TABLE usage; --", "é\u202e", "a\tb"):
            for each in (key, free):
                await keys.settle(await reserve(keys, each), spent(1, model=model))
        assert sum(row.requests for row in await keys.usage()) == 12
        assert max(len(row.model) for row in await keys.usage()) <= 800


@in_loop
async def test_a_cancelled_request_reserves_nothing(place: Place) -> None:
    """A client that disconnects during admission leaves no reservation."""
    async with place.opened() as keys:
        key = await limited(keys, max_concurrent=1)
        for _ in range(5):
            task = asyncio.create_task(reserve(keys, key))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.gather(*keys._tasks)
            await asyncio.gather(*keys._tasks)
        await reserve(keys, key)


@in_loop
async def test_a_cancelled_settlement_is_still_made(place: Place) -> None:
    """Usage is charged, whether or not somebody waits for the answer."""
    async with place.opened() as keys:
        key = await limited(keys, max_concurrent=1)
        held = await reserve(keys, key)
        task = asyncio.create_task(keys.settle(held, spent(3)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.gather(*keys._tasks)
        assert [row.tokens_in for row in await keys.usage()] == [3]
        await reserve(keys, key)


@in_loop
async def test_concurrent_first_openings(place: Place) -> None:
    """As the workers of a gateway do at startup."""

    async def work() -> None:
        async with place.opened() as keys:
            await keys.create()

    await asyncio.gather(*(work() for _ in range(4)))
    async with place.opened() as keys:
        assert len(await keys.list()) == 4


@in_loop
async def test_damaged_records_are_reported_separately(place: Place) -> None:
    """The others are listed; the id of a damaged one is known."""
    async with place.opened() as keys:
        kept, _ = await keys.create(name="kept")
        lost, _ = await keys.create(name="lost")
        await _damage(keys, lost.id)
        assert [each.id for each in await keys.list()] == [kept.id]
        assert list(keys.damaged) == [lost.id]


@in_loop
async def test_damaged_records_can_be_revoked(place: Place) -> None:
    """What the error about a damaged key advises works, and the key is no longer reported."""
    async with place.opened() as keys:
        kept, _ = await keys.create(name="kept")
        lost, _ = await keys.create(name="lost")
        await _damage(keys, lost.id)
        assert await keys.revoke(lost.id) is None
        assert await keys.revoke(lost.id) is None
        assert [each.id for each in await keys.list()] == [kept.id]
        assert not keys.damaged


async def _damage(keys: Keys, id: str) -> None:
    """Stores a document that is no key's."""
    store = keys._store
    identity = store.accounts.identity(id)
    session = await store.ledger.session(identity)
    assert session is not None
    damaged = msgspec.structs.replace(session, windows=b"no document")
    await store.ledger.change(identity, lambda _: Change(damaged), at=NOON, is_cached=False)


# --- batches


def batch_spent(cost: Decimal | None = CENT, *, model: str = "m", count: int = 2) -> BatchSpent:
    """The usage of a batch."""
    made = BatchSpent(model=model, route="openai")
    for _ in range(count):
        made.add(Spent(tokens_in=3, tokens_out=2, tokens_cached=1, tokens_reasoning=1, cost=cost))
    return made


@in_loop
async def test_a_batch_is_charged_once(place: Place) -> None:
    """Whoever reads its results again, at the same time or later, pays nothing."""
    async with place.opened() as one, place.opened() as other:
        key = await limited(one, Budget("cost", Decimal("0.05")))
        second = await limited(other, Budget("tokens", Decimal(100)))
        used = (batch_spent(), batch_spent(None, model="n", count=1))
        await asyncio.gather(*(keys.charge_batch(key, "openai/file-1", used)
                               for keys in (one, other) for _ in range(5)))  # fmt: skip
        place.clock.now += 400 * DAY
        await one._store.sweep(place.clock.now)
        await other.charge_batch(second, "openai/file-1", used)
        rows = [(row.model, row.route, row.requests, row.tokens_in, row.tokens_out, row.cost,
                 row.unknown) for row in await other.usage()]  # fmt: skip
        assert rows == [("m", "openai", 2, 6, 4, 2 * CENT, 0), ("n", "openai", 1, 3, 2, 0, 1)]
        assert not (await one.standing(second)).spent
        windows = ("total", "2026-11", "2026-11-17")
        assert (await one.standing(key)).spent == dict.fromkeys(windows, (15, 20_000_000))
        await other.charge_batch(second, "gemini/file-1", used)
        assert (await one.standing(second)).spent["total"] == (15, 20_000_000)


@in_loop
async def test_a_batch_counts_against_the_budget(place: Place) -> None:
    """It may overdraw it; then nothing else is admitted."""
    async with place.opened() as keys:
        key = await limited(keys, Budget("cost", 3 * CENT))
        await keys.charge_batch(key, "openai/file-1", [batch_spent(count=5)])
        with pytest.raises(QuotaExceeded):
            await reserve(keys, key)


@in_loop
async def test_a_key_without_limits_has_the_usage_of_its_batches(place: Place) -> None:
    """Absurd counts become the largest."""
    async with place.opened() as keys:
        key = await limited(keys)
        huge = BatchSpent(model="m" * 300, route="r")
        for _ in range(3):
            huge.add(Spent(tokens_in=10**12, cost=Decimal(1_000_000)))
        await keys.charge_batch(key, "anthropic/b1", [huge])
        [row] = await keys.usage(key.id)
        assert (row.requests, row.tokens_in, row.cost) == (3, 10**12, Decimal(1_000_000))


__all__ = [name for name in globals() if name.startswith("test_")]
__all__ += ["Place"]
