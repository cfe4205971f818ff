"""Random damage to PostgreSQL and Redis is never silent, and can be repaired."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, get_args

import pytest

from dragoman import ChatHistory, Message, SessionIdentity, Usage
from dragoman.errors import Corrupt, DragomanError
from dragoman.history.records import message_in
from dragoman.history.storage.protocol import MAIN, Group, Storage
from tests.history.storage import damaging
from tests.history.storage.damaging import KINDS, Damager, Kind
from tests.history.storage.making import ONE, TWO, entry
from tests.history.torture import IN_FULL, IN_SHORT

TIMES = 1_000 if IN_FULL else 2 if IN_SHORT else 5
PLACES = {"postgres": damaging.postgres, "redis": damaging.redis}
THREE = SessionIdentity(chat="cleared", user="Ana")
PEOPLE = (ONE, TWO, THREE)
# What no repair reaches: a session that is completely gone, or was replaced by another.
_BEYOND = ("not exist", "don't exist", "index has messages", "can't be found")


async def make(storage: Storage) -> None:
    """Sessions with branches, edits, removals and usage, all of them indexed."""
    kept = [entry(f"alpha {n}", usage=Usage(input=n), model="m") for n in range(6)]
    await storage.append(ONE, kept[:3])
    await storage.append(ONE, kept[3:])
    await storage.fork(ONE, parent=MAIN, at=2)
    await storage.append(ONE, [entry("alpha branch"), entry("on it")], branch=1)
    await storage.fork(ONE, parent=1, at=7)
    await storage.append(ONE, [entry("alpha twig")], branch=2)
    await storage.rewrite(
        ONE, replaced=[entry("alpha edited", id=kept[1].id)], removed=[kept[4].id]
    )
    await storage.activate(ONE, 1)
    for n in range(4):
        await storage.append(TWO, [entry(f"beta {n}", usage=Usage(output=n))])
    await storage.append(THREE, [entry("gone")])
    await storage.clear(THREE, at=1.0)
    await storage.append(THREE, [entry("alpha after"), entry("beta after")])
    await storage.search("alpha")


class Seen:
    """Everything read from a store's sessions, and whether a problem was reported."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.is_told = False
        self.said: dict[SessionIdentity, dict[str, str]] = {who: {} for who in PEOPLE}

    async def ask(self, name: str, question: Awaitable[Any]) -> Any:
        """Remember an answer, or our own error."""
        try:
            self.values[name] = await question
        except DragomanError as error:
            self.values[name] = type(error)
            self.is_told = True
            return None
        return self.values[name]


async def look(storage: Storage, ids: dict[SessionIdentity, list[str]]) -> Seen:
    """Read everything in every way."""
    seen = Seen()
    for who in PEOPLE:
        await _look_at(storage, who, ids.get(who, []), seen)
    sessions = await seen.ask("sessions", storage.sessions())
    seen.values["sessions"] = [each.identity for each in sessions or ()]
    for words in ("alpha", "beta", "branch"):
        hits = await seen.ask(words, storage.search(words)) or ()
        seen.values[words] = [(hit.identity, hit.row.id, hit.row.body) for hit in hits]
    for group in get_args(Group):
        await seen.ask(group, storage.totals(group))
    seen.is_told = seen.is_told or bool(await seen.ask("verify", storage.verify()))
    return seen


async def _look_at(storage: Storage, who: SessionIdentity, ids: list[str], seen: Seen) -> None:
    name = who.digest[:6]
    await seen.ask(f"{name} count", storage.count(who))
    history: ChatHistory | None = await seen.ask(f"{name} open", ChatHistory.open(who, storage))
    seen.values.pop(f"{name} open")
    if history is None:
        return
    for branch in await seen.ask(f"{name} branches", history.branches()) or ():
        if await seen.ask(f"{name} switch", history.switch(branch.number)) is not None:
            continue  # reported
        messages = await seen.ask(f"{name} on {branch.number}", history.messages()) or ()
        seen.said[who] |= {message.id: message.text for message in messages}
        await seen.ask(f"{name} tail {branch.number}", history.tail(2))
    for id in ids:
        await seen.ask(f"{name} {id}", history.message(id))
    seen.is_told = seen.is_told or bool(history.damaged)
    await history.close()


@asynccontextmanager
async def opened(damager: Damager) -> AsyncGenerator[Storage]:
    """A new storage for each look: nothing is cached."""
    storage = damager.new()
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def repaired(storage: Storage) -> list[str]:
    """Do what `dragoman history repair` does; returns the remaining problems."""
    for who in PEOPLE:
        try:
            await storage.set_aside(who, [], "its counters")
            await storage.set_aside(who, await _broken(storage, who), "it is broken")
        except DragomanError:
            continue  # it is gone
    return await storage.verify()


async def _broken(storage: Storage, who: SessionIdentity) -> list[int]:
    session = await storage.session(who)
    assert session is not None
    broken: list[int] = []
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        for row in await storage.rows(who, branch=branch):
            try:
                message_in(row)
            except Corrupt:
                broken.append(row.seq)
    return broken


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLACES)
async def test_no_damage_is_silent(name: str, kind: Kind) -> None:
    """What is read is unchanged, or damage is reported; writes make nothing worse; repair works."""
    chance = Random(f"{name} {kind}")
    with PLACES[name]() as damager:
        async with opened(damager) as storage:
            await make(storage)
            first = await look(storage, {})
            ids = {who: list(said) for who, said in first.said.items()}
            before = await look(storage, ids)
            assert not before.is_told
        damager.keep()
        for _ in range(TIMES):
            what = damager.damage(chance, kind)
            async with opened(damager) as storage:
                await _check(storage, before, ids, what)
            damager.put_back()


async def _check(
    storage: Storage, before: Seen, ids: dict[SessionIdentity, list[str]], what: str
) -> None:
    seen = await look(storage, ids)
    if not seen.is_told:
        assert seen.values == before.values, what
    await _append(storage)
    after = await look(storage, ids)
    for who in PEOPLE:
        assert seen.said[who].items() <= after.said[who].items(), what
    left = await repaired(storage)
    assert [each for each in left if not any(words in each for words in _BEYOND)] == [], what
    mended = await look(storage, ids)
    for who in PEOPLE:
        assert seen.said[who].items() <= mended.said[who].items(), what


async def _append(storage: Storage) -> None:
    for who in PEOPLE:
        try:
            history = await ChatHistory.open(who, storage)
            await history.add(Message.user("new"))
        except DragomanError:
            continue
        await history.close()
