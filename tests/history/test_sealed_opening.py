"""An encrypted history that was tampered with opens only if that is asked for.

On every backend, whose checksums and tallies match what the attacker wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from dragoman import ChatHistory, Message
from dragoman.errors import ConfigError, Corrupt, InvalidInputError
from dragoman.history import ChainStorage, ChatHistoryConfig, MemoryStorage, SealedStorage
from dragoman.history.records import message_in, read_line
from dragoman.history.storage.protocol import Row, Session, Storage
from dragoman.history.transfer import export
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import NOON, ONE, entry, fill
from tests.history.attacker import put, taken

KEYS = {"k": b"\1" * 32}
WORDS = ("a", "b", "c")
Damage = Callable[[list[Row]], Sequence[Row]]


def _with(rows: list[Row], place: int, **changes: Any) -> list[Row]:
    rows[place] = msgspec.structs.replace(rows[place], **changes)
    return rows


def _flipped(body: bytes) -> bytes:
    at = body.index(b'"data":"') + 12
    return body[:at] + (b"A" if body[at : at + 1] != b"A" else b"B") + body[at + 1 :]


DAMAGES: dict[str, Damage] = {
    "first removed": lambda rows: rows[1:],
    "one removed": lambda rows: [rows[0], rows[2]],
    "last removed": lambda rows: rows[:2],
    "all removed": lambda _: [],
    "text altered": lambda rows: _with(rows, 1, body=_flipped(rows[1].body)),
    "texts swapped": lambda rows: _with(_with(rows, 0, body=rows[1].body), 1, body=rows[0].body),
    "time altered": lambda rows: _with(rows, 2, at=NOON + 7),
    "model altered": lambda rows: _with(rows, 2, model="m-2"),
    "forged": lambda rows: _with(rows, 1, body=entry("forged").body),
    "another id": lambda rows: _with(rows, 0, id="another"),
}


def sealed(inner: Storage) -> SealedStorage:
    """The store as its owner opens it, with a new object."""
    return SealedStorage(inner, keys=KEYS, current="k")


async def damage(inner: Storage, done: str) -> set[str]:
    """Store three messages, attack them, and return the ids of those left intact."""
    made = await fill(sealed(inner), *WORDS)
    session, rows = await taken(inner, ONE)
    left = DAMAGES[done](list(rows))
    await put(inner, session, left)
    return {row.id for row in left if row in rows} & {each.id for each in made}


async def exported(storage: Storage) -> list[Message]:
    """The messages that can be read in an export."""
    found: list[Message] = []
    async for line in export(storage):
        with suppress(Corrupt):
            read = read_line(line)
            if not isinstance(read, Session):
                found.append(message_in(read))
    return found


@pytest.mark.parametrize("done", DAMAGES)
async def test_it_opens_only_if_damage_is_accepted(bare_backend: Backend, done: str) -> None:
    """Otherwise it is `Corrupt`, and `verify` and `export` show what happened and what is left."""
    async with bare_backend.opened() as inner:
        intact = await damage(inner, done)
        with pytest.raises(
            Corrupt, match=r"history verify.*history export.*accept_damaged"
        ) as told:
            await ChatHistory.open(ONE, sealed(inner))
        assert not any(word in str(told.value) for word in ("forged", "m-2"))
        assert await sealed(inner).verify() != []
        assert {message.id for message in await exported(sealed(inner))} == intact
        history = await ChatHistory.open(ONE, sealed(inner), {"accept_damaged": True})
        assert {message.id for message in await history.messages()} == intact
        assert history.damaged


@pytest.mark.parametrize("done", DAMAGES)
async def test_after_repair_it_opens_again(bare_backend: Backend, done: str) -> None:
    """What is damaged has been set aside, and the rest has a new head."""
    async with bare_backend.opened() as inner:
        intact = await damage(inner, done)
        storage = sealed(inner)
        bad = [row.seq for row in await storage.rows(ONE) if row.id not in intact]
        await storage.set_aside(ONE, bad, "for the test")
        history = await ChatHistory.open(ONE, sealed(inner))
        assert {message.id for message in await history.messages()} == intact
        await history.add("more")
        assert (await ChatHistory.open(ONE, sealed(inner))).damaged == ()


async def test_an_untouched_one_opens(bare_backend: Backend) -> None:
    """With branches, replaced and removed messages, after a clear, and while others write."""
    async with bare_backend.opened() as inner:
        history = await ChatHistory.open(ONE, sealed(inner))
        first = await history.add("a")
        await history.extend(["b", "c"])
        again = await ChatHistory.open(ONE, sealed(inner))
        await again.fork(first.id)
        await again.add("d")
        await history.remove(first.id)
        assert len(await (await ChatHistory.open(ONE, sealed(inner))).messages()) > 0
        await history.clear()
        assert len(await (await ChatHistory.open(ONE, sealed(inner))).messages()) == 0


@pytest.mark.parametrize("done", DAMAGES)
async def test_one_that_is_open_stops(done: str) -> None:
    """What happens to it later is noticed by the next load, which raises as well."""
    inner = MemoryStorage()
    await fill(sealed(inner), *WORDS)
    history = await ChatHistory.open(ONE, sealed(inner))
    session, rows = await taken(inner, ONE)
    await put(inner, session, DAMAGES[done](list(rows)))
    with pytest.raises(Corrupt, match="accept_damaged"):
        await history.messages()


async def test_without_opening_it_first_it_is_no_different() -> None:
    """A history on a store that is already open may be used at once."""
    for done in DAMAGES:
        inner = MemoryStorage()
        await damage(inner, done)
        with pytest.raises(Corrupt, match="accept_damaged"):
            await ChatHistory(ONE, sealed(inner)).messages()


def test_the_blocking_twin_refuses_as_well() -> None:
    """It opens the same history."""
    import asyncio

    inner = MemoryStorage()
    asyncio.run(damage(inner, "one removed"))
    with pytest.raises(Corrupt, match="1 of its 3 messages are missing"):
        ChatHistory.open_sync(ONE, sealed(inner))
    with ChatHistory.open_sync(ONE, sealed(inner), {"accept_damaged": True}) as history:
        assert len(history.messages()) == 2


async def test_a_chain_is_as_strict_as_the_copy_it_reads() -> None:
    """After `repair`, which replaces that copy by an intact one, it opens."""
    one, two = MemoryStorage(), MemoryStorage()
    await fill(ChainStorage(sealed(one), sealed(two)), *WORDS)
    session, rows = await taken(one, ONE)
    await put(one, session, rows[:2])
    with pytest.raises(Corrupt, match="1 of its 3 messages are missing"):
        await ChatHistory.open(ONE, ChainStorage(sealed(one), sealed(two)))
    await ChainStorage(sealed(one), sealed(two)).repair()
    history = await ChatHistory.open(ONE, ChainStorage(sealed(one), sealed(two)))
    assert [message.text for message in await history.messages()] == [*WORDS]


async def test_a_store_without_encryption_loads_what_it_can() -> None:
    """Its checksums detect damage, not attackers: one damaged record doesn't cost the others."""
    inner = MemoryStorage()
    await fill(inner, *WORDS)
    session, rows = await taken(inner, ONE)
    await put(inner, session, _with(list(rows), 1, body=b"{"))
    for storage in (inner, ChainStorage(inner)):
        history = await ChatHistory.open(ONE, storage)
        assert [message.text for message in await history.messages()] == ["a", "c"]
        assert history.damaged


async def test_a_missing_key_is_no_damage() -> None:
    """It is a `ConfigError` that names the key."""
    inner = MemoryStorage()
    await fill(sealed(inner), *WORDS)
    other = SealedStorage(inner, keys={"new": b"\2" * 32}, current="new")
    with pytest.raises(ConfigError, match="k"):
        await ChatHistory.open(ONE, other)


def test_the_setting_is_a_boolean() -> None:
    """Like all settings, it is checked."""
    bad: Any = "keep"
    with pytest.raises(InvalidInputError, match="accept_damaged"):
        ChatHistoryConfig(accept_damaged=bad)
