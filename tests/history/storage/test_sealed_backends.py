"""Encryption on every backend: heads match every write, and attacks are reported."""

from __future__ import annotations

import pytest

from dragoman.errors import Corrupt
from dragoman.history.storage.protocol import MAIN
from dragoman.history.storage.sealed import SealedStorage
from dragoman.model.usage import Usage
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import NOON, ONE, entry, fill, head, texts
from tests.history.attacker import put, taken

KEYS = {"k": b"\1" * 32}


async def test_heads_match_on_every_store(bare_backend: Backend) -> None:
    """Numbers are predicted as each store assigns them; reopening finds no problem."""
    async with bare_backend.opened() as inner:
        storage = SealedStorage(inner, keys=KEYS, current="k")

        async def is_sound(*words: str) -> None:
            fresh = SealedStorage(inner, keys=KEYS, current="k")
            assert await fresh.verify() == []
            assert texts(await fresh.rows(ONE)) == list(words)

        used = Usage(input=3, output=5, cache_read=7, cache_write=11, thinking=13)
        odd = entry("a", model="m/1 é", usage=used, at=NOON + 0.123456)
        await storage.append(ONE, [odd, entry("b", usage=Usage()), entry("c", at=0.0)])
        await is_sound("a", "b", "c")
        made = await storage.rows(ONE)
        await storage.rewrite(ONE, replaced=[entry("B", id=made[1].id)], removed=[made[0].id])
        await is_sound("B", "c")
        assert await storage.fork(ONE, parent=MAIN, at=2) == 1
        assert await storage.fork(ONE, parent=1, at=2) == 2
        await storage.append(ONE, [entry("d"), entry("e")], branch=2)
        await storage.activate(ONE, 1)
        await is_sound("B", "c")
        assert (await head(inner)).active == 1
        assert await storage.set_aside(ONE, [2], "for the test") == 1
        await is_sound("c")
        await storage.rotate()
        await storage.clear(ONE, at=NOON)
        await is_sound()
        await fill(storage, "f")
        await is_sound("f")
        since = await storage.checkpoint()
        await storage.delete(ONE)
        assert len(await storage.verify(since=since)) == 1


async def test_an_attack_is_reported_on_every_store(bare_backend: Backend) -> None:
    """Checksums and tallies match the forged data: only the head reveals it."""
    async with bare_backend.opened() as inner:
        storage = SealedStorage(inner, keys=KEYS, current="k")
        made = await fill(storage, "a", "b", "c")
        _, old = await taken(inner, ONE)
        await storage.rewrite(ONE, replaced=[entry("B", id=made[1].id)])
        session, rows = await taken(inner, ONE)
        for given in (rows[:2], rows[1:], [rows[0], old[1], rows[2]]):
            await put(inner, session, given)
            assert await SealedStorage(inner, keys=KEYS, current="k").verify() != []
        await put(inner, session, rows)
        assert await SealedStorage(inner, keys=KEYS, current="k").verify() == []
        await fill(storage, "d")
        await put(inner, session, rows)
        with pytest.raises(Corrupt, match="earlier state"):
            await storage.session(ONE)
