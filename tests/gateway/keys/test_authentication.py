"""Presented keys: hostile texts, guessing, and caching."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import AuthenticationError, RateLimited
from dragoman.gateway.keys import Keys
from dragoman.gateway.keys.authentication import Authenticator
from dragoman.gateway.keys.secret_form import SECRET_LENGTH, digest_of, id_of, new_id, new_secret
from dragoman.gateway.keys.store import Found, KeyStore
from dragoman.gateway.keys.throttling import Throttle
from dragoman.history.storage.memory import MemoryStorage
from tests.gateway.keys.conftest import NOON, Clock


class CountingStore(KeyStore):
    """A store that counts lookups."""

    def __init__(self) -> None:
        super().__init__(MemoryStorage())
        self.asked = 0

    async def find(self, id: str) -> Found | None:
        """As before."""
        self.asked += 1
        return await super().find(id)


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[tuple[Keys, CountingStore]]:
    """Keys in memory."""
    store = CountingStore()
    async with Keys(store, clock=Clock(), **options) as keys:
        yield keys, store


def patient() -> Throttle:
    """A keyring without throttling."""
    return Throttle(10**9)


def test_secrets_are_recognized() -> None:
    """By their form and checksum: each wrong or missing character is noticed."""
    id = new_id()
    secret = new_secret(id)
    assert (len(secret), id_of(secret)) == (SECRET_LENGTH, id)
    for at in range(len(secret)):
        other = "x" if secret[at] != "x" else "y"
        assert id_of(secret[:at] + other + secret[at + 1 :]) is None
        assert id_of(secret[:at] + secret[at + 1 :]) is None
    assert len({new_secret(id) for _ in range(100)}) == 100


@given(st.text() | st.from_regex(r"drg_[0-9a-z]{12}_[0-9A-Za-z]{49}", fullmatch=True))
def test_any_other_text_is_rejected(presented: str) -> None:
    """With the same error, which doesn't quote it."""

    async def work() -> None:
        async with opened(throttle=patient()) as (keys, _):
            with pytest.raises(AuthenticationError, match="the API key is not valid") as told:
                await keys.authenticate(presented)
            assert told.value.status == 401

    asyncio.run(work())


@pytest.mark.parametrize(
    "presented",
    ["", "drg_", "x" * 10_000_000, "\ud800" * SECRET_LENGTH, "\0" * SECRET_LENGTH,
     "é" * SECRET_LENGTH,
     "drg_' OR 1=1; --_" + "a" * 49, "drg_aaaaaaaaaaaa_" + "\u0661" * 49, "*", "drg_%_%"],
)  # fmt: skip
async def test_hostile_keys_do_not_reach_the_store(presented: str) -> None:
    """Texts that don't have the form of a key are rejected before."""
    async with opened() as (keys, store):
        with pytest.raises(AuthenticationError):
            await keys.authenticate(presented)
        assert store.asked == 0


async def test_another_keys_secret_is_wrong() -> None:
    """A well-formed secret with the id of an existing key."""
    async with opened() as (keys, store):
        record, secret = await keys.create()
        with pytest.raises(AuthenticationError, match="not valid"):
            await keys.authenticate(new_secret(record.id))
        assert store.asked == 1
        assert await keys.authenticate(secret) == record


async def test_a_key_is_cached_for_seconds() -> None:
    """A request needs no lookup; a revoked key works no longer than that."""
    ticks = Clock(0.0)
    async with opened() as (keys, store):
        record, secret = await keys.create()
        known = Authenticator(store, Clock(), seconds=5.0, monotonic_clock=ticks)
        for _ in range(3):
            assert await known.authenticate(secret, "") == record
        assert store.asked == 1
        await store.revoke(record.id, NOON)  # by another process
        ticks.now = 4.9
        await known.authenticate(secret, "")
        ticks.now = 5.0
        with pytest.raises(AuthenticationError, match="revoked"):
            await known.authenticate(secret, "")


async def test_a_cached_key_expires() -> None:
    """At its exact time."""
    clock = Clock()
    async with Keys(KeyStore(MemoryStorage()), clock=clock) as keys:
        _, secret = await keys.create(expires_at=NOON + 1)
        await keys.authenticate(secret)
        clock.now += 1
        with pytest.raises(AuthenticationError, match="expired"):
            await keys.authenticate(secret)


async def test_guessing_is_throttled() -> None:
    """By address; keys that exist still work, whether this process has seen them or not."""
    ticks = Clock(0.0)
    async with opened(throttle=Throttle(3, clock=ticks), remembered=0.0) as (keys, store):
        record, secret = await keys.create()
        _, expiring = await keys.create(expires_at=NOON + 1)
        revoked, old = await keys.create()
        await keys.revoke(revoked.id)
        for wrong in ("nonsense", new_secret(record.id), new_secret(new_id())):
            with pytest.raises(AuthenticationError):
                await keys.authenticate(wrong, "10.0.0.1")
        before = store.asked
        for wrong in ("nonsense", "é", "x" * 10_000, new_secret(record.id)):
            with pytest.raises(RateLimited) as told:
                await keys.authenticate(wrong, "10.0.0.1")
            assert (told.value.status, told.value.retry_after) == (429, 60.0)
        assert store.asked == before + 1  # only what has the form of a key
        assert await keys.authenticate(secret, "10.0.0.1") == record
        await keys.authenticate(expiring, "10.0.0.1")
        for _ in range(5):  # whoever has a key that once was valid guesses nothing
            with pytest.raises(AuthenticationError, match="revoked"):
                await keys.authenticate(old, "10.0.0.3")
        with pytest.raises(AuthenticationError):
            await keys.authenticate("nonsense", "10.0.0.2")
        ticks.now = 60.0
        with pytest.raises(AuthenticationError):
            await keys.authenticate("nonsense", "10.0.0.1")


def test_the_caches_of_an_attacked_process_are_bounded() -> None:
    """However many addresses and keys there are."""
    throttle = Throttle()
    for n in range(30_000):
        throttle.note(str(n))
    assert len(throttle._failures) == 10_000


async def test_no_secret_is_stored_or_shown() -> None:
    """Neither in the store nor in memory, nor in a record's repr."""
    async with opened() as (keys, store):
        record, secret = await keys.create()
        await keys.authenticate(secret)
        found = await store.find(record.id)
        assert found is not None
        assert found.digest == digest_of(secret)
        shown = repr((record, found, keys._authenticator._known))
        assert secret not in shown
        assert secret[-30:] not in shown


async def test_revoking_during_requests() -> None:
    """No later request is admitted by the process that revoked it."""
    async with opened() as (keys, _):
        record, secret = await keys.create()
        is_revoked = False

        async def ask() -> None:
            for _ in range(50):
                began_after = is_revoked
                try:
                    await keys.authenticate(secret)
                except (AuthenticationError, RateLimited):
                    assert (await keys.list())[0].revoked_at is not None
                else:
                    assert not began_after
                await asyncio.sleep(0)

        async def revoke() -> None:
            nonlocal is_revoked
            await asyncio.sleep(0.002)
            await keys.revoke(record.id)
            is_revoked = True

        await asyncio.gather(*(ask() for _ in range(10)), revoke())


async def test_a_cached_key_can_be_recalled() -> None:
    """Without the store, while it is cached and not revoked; never a key with an expiry."""
    now = [0.0]
    async with opened() as (keys, store):
        clock = Clock()
        known = Authenticator(store, clock, monotonic_clock=lambda: now[0])
        record, secret = await keys.create()
        _, ending = await keys.create(expires_at=clock() + 60)
        assert known.recall(secret) is None
        assert await known.authenticate(secret, "") == record
        await known.authenticate(ending, "")
        asked = store.asked
        assert known.recall(secret) == record
        assert known.recall(ending) is None
        assert [known.recall(text) for text in ("", "é", secret[:-1], "x" * 10**6)] == [None] * 4
        assert store.asked == asked
        known.forget(record.id)
        assert known.recall(secret) is None
        await known.authenticate(secret, "")
        now[0] = 3600.0
        assert known.recall(secret) is None
