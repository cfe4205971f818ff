"""Damage in Redis is reported: counters, names, text, keys of a wrong type, missing keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.errors import Corrupt, NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damage_to, is_damaged
from dragoman.history.storage.protocol import MAIN
from dragoman.history.storage.redis import RedisStorage
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, entry, texts
from tests.history.storage.backend_redis import URL, fresh_prefix

redis = pytest.importorskip("redis")


class Place:
    """A store, and a client for the server behind it."""

    def __init__(self, storage: RedisStorage, client: Any, prefix: str) -> None:
        self.storage = storage
        self.client = client
        self.prefix = prefix

    def key(self, what: str) -> str:
        """One of the first session's keys."""
        return f"{self.prefix}:{{{ONE.digest}}}:{what}"


@asynccontextmanager
async def made() -> AsyncGenerator[Place]:
    """Two sessions, the first with a branch."""
    with fresh_prefix() as prefix, redis.Redis.from_url(URL) as client:
        storage = RedisStorage(URL, prefix=prefix)
        await storage.open()
        await storage.append(ONE, [entry(each, id=each, at=NOON) for each in ("a", "b", "c")])
        await storage.fork(ONE, parent=MAIN, at=2)
        await storage.append(ONE, [entry("d", id="d", at=NOON)], branch=1)
        await storage.append(TWO, [entry("other", id="o", at=NOON)])
        yield Place(storage, client, prefix)
        await storage.close()


Damage = Callable[[Place], Any]
HEADS: dict[str, Damage] = {
    **{
        f"{name} {value!r}": lambda p, name=name, value=value: p.client.hset(  # type: ignore[misc]
            p.key("session"), name, value
        )
        for name in ("identity", "stamp", "at", "document")
        for value in (b"\xff\xfe", b"", b"x", b"1e400", b"nan", b"[1]", b"-1", b"9" * 20)
    },
    **{
        f"{name} is gone": lambda p, name=name: p.client.hdel(p.key("session"), name)  # type: ignore[misc]
        for name in ("identity", "stamp", "at", "document")
    },
    "another's names": lambda p: p.client.hset(
        p.key("session"), "identity", b'[null,"other",null,null,null]'
    ),
    "too many names": lambda p: p.client.hset(p.key("session"), "identity", b'["a","b",1,2,3,4]'),
    "no hash": lambda p: (p.client.unlink(p.key("session")), p.client.set(p.key("session"), "x")),
    "no head": lambda p: p.client.unlink(p.key("session")),
}


@pytest.mark.parametrize("damage", HEADS.values(), ids=HEADS)
async def test_a_damaged_head_is_corrupt_and_can_be_repaired(damage: Damage) -> None:
    """No write accepts it, a listing shows it, `verify` reports it; then it is intact again."""
    async with made() as place:
        damage(place)
        storage = place.storage
        storage._seen.clear()  # what it knows of its own last write would hide the damage
        with pytest.raises(Corrupt):
            await storage.session(ONE)
        listed = await storage.sessions()
        assert [each.identity for each in listed if not is_damaged(each)] == [TWO]
        assert {each.identity for each in listed} <= {ONE, TWO}
        assert [problem for problem in await storage.verify() if ONE.digest in problem]
        before = {seq: place.client.hget(place.key("records"), seq) for seq in "1234"}
        for write in (
            lambda: storage.append(ONE, [entry("new")]),
            lambda: storage.rewrite(ONE, removed=["a"]),
            lambda: storage.clear(ONE, at=NOON),
            lambda: storage.fork(ONE, parent=MAIN, at=1),
        ):
            with pytest.raises(Corrupt):
                await write()
        assert before == {seq: place.client.hget(place.key("records"), seq) for seq in "1234"}
        assert await storage.set_aside(ONE, [], "its counters") == 0
        assert texts(await storage.rows(ONE)) == ["a", "b", "c"]
        assert texts(await storage.rows(ONE, branch=1)) == ["d"]
        assert await storage.verify() == []
        assert (await storage.append(ONE, [entry("new")])).last_seq >= 5
        assert await storage.verify() == []


RECORDS: dict[str, Damage] = {
    "a line of bytes": lambda p: p.client.hset(p.key("records"), "2", b"\xff\xfe"),
    "an empty line": lambda p: p.client.hset(p.key("records"), "2", b""),
    "half a line": lambda p: p.client.hset(
        p.key("records"), "2", p.client.hget(p.key("records"), "2")[:60]
    ),
    "another's line": lambda p: p.client.hset(
        p.key("records"), "2", p.client.hget(p.key("records"), "3")
    ),
    "another text": lambda p: p.client.hset(
        p.key("records"), "2", p.client.hget(p.key("records"), "2").replace(b'"b"', b'"B"')
    ),
    "another number": lambda p: p.client.hset(
        p.key("records"), "2", p.client.hget(p.key("records"), "2").replace(b'"seq":2', b'"seq":3')
    ),
    "no line": lambda p: p.client.hdel(p.key("records"), "2"),
    "a place elsewhere": lambda p: p.client.zadd(p.key("branch:0"), {"2": 2.5}),
    "a place of no number": lambda p: (
        p.client.zrem(p.key("branch:0"), "2"),
        p.client.zadd(p.key("branch:0"), {b"\xff": 2}),
    ),
}


@pytest.mark.parametrize("damage", RECORDS.values(), ids=RECORDS)
async def test_a_damaged_record_is_detected(damage: Damage) -> None:
    """The others are read as before; it can be set aside."""
    async with made() as place:
        damage(place)
        storage = place.storage
        first, second, third = await storage.rows(ONE)
        assert damage_to(second) is not None
        assert [damage_to(first), damage_to(third)] == [None, None]
        newest = await storage.rows(ONE, limit=2, newest=True)
        assert [damage_to(row) is None for row in newest] == [False, True]
        assert [problem for problem in await storage.verify() if "message 2" in problem]
        assert len(await storage.search("a")) == 1
        await storage.totals("day")
        await storage.append(ONE, [entry("new")])
        await storage.set_aside(ONE, [2], "broken")
        assert await storage.verify() == []
        assert texts(await storage.rows(ONE)) == ["a", "c", "new"]


IDS: dict[str, Damage] = {
    "no id": lambda p: p.client.hdel(p.key("ids"), "b"),
    "an id that leads to another": lambda p: p.client.hset(p.key("ids"), "b", "3 0"),
    "an id that leads to nobody": lambda p: p.client.hset(p.key("ids"), "b", "9 0"),
    "an id that leads to bytes": lambda p: p.client.hset(p.key("ids"), "b", b"\xff"),
    "an id on another branch": lambda p: p.client.hset(p.key("ids"), "b", "2 1"),
    "ids of another type": lambda p: (p.client.unlink(p.key("ids")), p.client.set(p.key("ids"), 1)),
    "no ids": lambda p: p.client.unlink(p.key("ids")),
    "a place that is gone": lambda p: p.client.zrem(p.key("branch:0"), "2"),
    "places of another type": lambda p: (
        p.client.unlink(p.key("branch:0")),
        p.client.set(p.key("branch:0"), 1),
    ),
    "no places": lambda p: p.client.unlink(p.key("branch:0")),
}


@pytest.mark.parametrize("damage", IDS.values(), ids=IDS)
async def test_ids_and_positions_are_rebuilt_from_the_records(damage: Damage) -> None:
    """`verify` reports that they don't match; nothing is lost."""
    async with made() as place:
        damage(place)
        storage = place.storage
        assert [problem for problem in await storage.verify() if ONE.digest in problem]
        assert next(each.identity for each in await storage.sessions()) in {ONE, TWO}
        try:
            row = await storage.row(ONE, "b")
        except Corrupt:
            pass
        else:
            assert row is None or damage_to(row) is not None or texts([row]) == ["b"]
        assert await storage.set_aside(ONE, [], "ids") == 0
        assert texts(await storage.rows(ONE)) == ["a", "b", "c"]
        assert [(await storage.row(ONE, id)) is not None for id in "abcd"] == [True] * 4
        assert await storage.verify() == []


async def test_records_of_another_type_are_moved_aside() -> None:
    """They are kept beside the session until its user is forgotten."""
    async with made() as place:
        place.client.unlink(place.key("records"))
        place.client.set(place.key("records"), "mine")
        with pytest.raises(Corrupt):
            await place.storage.rows(ONE)
        await place.storage.set_aside(ONE, [], "rubbish")
        assert place.client.get(place.key("aside:records")) == b"mine"
        assert await place.storage.verify() == []
        await place.storage.forget("Ana")
        assert not list(place.client.scan_iter(f"{place.prefix}:*{ONE.digest}*"))


async def test_a_damaged_session_can_be_deleted_and_forgotten() -> None:
    """Even if its numbers or its head's type are wrong."""
    async with made() as place:
        place.client.hset(place.key("session"), "stamp", "x")
        erased = await place.storage.forget("Ana")
        assert (erased.sessions, erased.messages) == (1, 4)
        await place.storage.append(ONE, [entry("a")])
        place.client.unlink(place.key("session"))
        place.client.set(place.key("session"), "x")
        assert await place.storage.delete(ONE) is True
        assert await place.storage.delete(ONE) is False
        assert not [
            key
            for key in place.client.scan_iter(f"{place.prefix}:*{ONE.digest}*")
            if b"done" not in key
        ]
        with pytest.raises(NotFound):
            await place.storage.set_aside(ONE, [], "gone")


async def test_records_of_an_unknown_owner_are_reported_as_remaining() -> None:
    """Erasure does not claim to be complete if the owner is unknown."""
    async with made() as place:
        place.client.hset(place.key("session"), "identity", b"\xff")
        erased = await place.storage.forget("Ana")
        assert erased.sessions == 0
        assert any("unreadable names" in text for text in erased.remains)


async def test_a_damaged_list_of_sessions_is_reported() -> None:
    """An invalid name, a missing one, and a key that is no list."""
    async with made() as place:
        place.client.zadd(f"{place.prefix}:sessions", {b"\xff\xfe": 0})
        place.client.zrem(f"{place.prefix}:sessions", TWO.digest)
        assert [each.identity for each in await place.storage.sessions()] == [ONE]
        problems = await place.storage.verify()
        assert {problem.split(": ")[1] for problem in problems} == {
            "it is in the list of sessions, but does not exist",
            "it is not in the list of sessions",
        }
        place.client.zrem(f"{place.prefix}:sessions", b"\xff\xfe")
        place.client.zadd(f"{place.prefix}:sessions", {TWO.digest: 0, ONE.digest: 7})
        assert "the list of sessions is damaged" in (await place.storage.verify())[0]
        await place.storage.set_aside(ONE, [], "list it again")
        assert await place.storage.verify() == []
        place.client.unlink(f"{place.prefix}:sessions")
        place.client.set(f"{place.prefix}:sessions", "x")
        with pytest.raises(Corrupt):
            await place.storage.sessions()
        assert "the list of sessions is damaged" in (await place.storage.verify())[0]
        for who in (ONE, TWO):
            await place.storage.set_aside(who, [], "list it again")
        assert await place.storage.verify() == []


async def test_a_session_that_changes_meanwhile_is_not_damaged() -> None:
    """`verify` reads several keys in turn, which may belong to different states."""
    with fresh_prefix() as prefix:
        storage = RedisStorage(URL, prefix=prefix)
        await storage.open()
        is_over = False

        async def write() -> None:
            number = 0
            while not is_over:
                number += 1
                session = SessionIdentity(chat=str(number % 3))
                await storage.append(session, [entry("hello", id=f"m{number}")])
                if number % 10 == 0:
                    await storage.delete(session)

        writers = [asyncio.create_task(write())]
        await asyncio.sleep(0.05)
        found = [problem for _ in range(4) for problem in await storage.verify()]
        is_over = True
        await asyncio.gather(*writers)
        assert found == []
        await storage.close()
