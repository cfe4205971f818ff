"""What can be damaged: a store with sessions of all kinds, and what is read from it.

The module `backend_<name>` of a store that others can damage has `damaged`, a context with a
`Damager`; test_damage_conformance.py runs on all of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from importlib import import_module
from random import Random
from typing import Any, NamedTuple, Protocol, get_args

from dragoman import ChatHistory, SessionIdentity, Usage
from dragoman.errors import DragomanError
from dragoman.history.records import message_in
from dragoman.history.storage.protocol import MAIN, Group, Storage
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, WINDOW, entry
from tests.sampling import BACKENDS

THREE = SessionIdentity(chat="cleared", user="Ana")
LONG = SessionIdentity(chat="long", user="Ana")
PEOPLE = (ONE, TWO, THREE, LONG)


class Damage(NamedTuple):
    """What was done, whether that must be reported, and whether a repair has to succeed."""

    what: str
    is_told: bool = False
    is_reparable: bool = True


class Damager(Protocol):
    """One store that can be damaged and restored."""

    def new(self) -> Storage:
        """A storage on it, not opened yet."""
        ...

    async def keep(self) -> None:
        """Remember the current state."""
        ...

    async def put_back(self) -> None:
        """Restore the remembered state."""
        ...

    def damage(self, chance: Random, kind: str) -> Damage | None:
        """Applies random damage; `None` if the store refused it."""
        ...


def damageable() -> dict[str, Any]:
    """The modules of the backends that can be damaged, by the backends' names."""
    modules = {name: import_module(f"tests.history.storage.backend_{name}") for name in BACKENDS}
    return {name: module for name, module in modules.items() if hasattr(module, "damaged")}


def altered(chance: Random, kind: str, value: bytes) -> bytes:
    """Bytes with a bit flipped, or cut short."""
    if not value or kind == "cut":
        return value[: chance.randrange(len(value))] if value else b"\0"
    at = chance.randrange(len(value))
    return value[:at] + bytes([value[at] ^ 1 << chance.randrange(8)]) + value[at + 1 :]


@asynccontextmanager
async def opened(damager: Damager) -> AsyncGenerator[Storage]:
    """A new storage for each look: nothing is cached."""
    storage = damager.new()
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def make(storage: Storage) -> None:
    """Sessions with branches, edits, removals, windows and usage; a long one; some not indexed."""
    kept = [
        entry(f"alpha {n}", id=f"a{n}", at=1000.0 + n, usage=Usage(input=n), model="m")
        for n in range(12)
    ]
    await storage.append(ONE, kept[:3])
    await storage.append(ONE, kept[3:6])
    for each in kept[6:]:
        await storage.append(ONE, [each])
    big = entry("x" * 6000, id="big", at=NOON, model="m", usage=Usage(input=3))
    await storage.append(ONE, [big])
    edited = entry("alpha edited", id="a4", at=1004.0)
    await storage.rewrite(ONE, replaced=[edited], removed=["a7"])
    await storage.append(ONE, [entry(f"more {n}", id=f"b{n}", at=1100.0) for n in range(3)])
    await storage.fork(ONE, parent=MAIN, at=2)
    await storage.append(ONE, [entry("alpha branch"), entry("on it")], branch=1)
    await storage.fork(ONE, parent=1, at=19)
    await storage.append(ONE, [entry("twig", usage=Usage(1, 2, 3, 4, 5, 15))], branch=2)
    await storage.activate(ONE, 1)
    for n in range(4):
        each = entry(f"beta {n}", id=f"c{n}", at=2000.0 + n, usage=Usage(output=n))
        await storage.append(TWO, [each])
    await storage.fork(TWO, parent=MAIN, at=2)
    await storage.append(
        TWO, [entry("branch", id="d1", at=2100.0), entry("on", id="d2", at=2101.0)]
    )
    for n in range(2):
        await storage.append(TWO, [entry(f"leaf {n}", id=f"e{n}", at=2200.0)], branch=1)
    await storage.keep_windows(TWO, WINDOW)
    await storage.append(THREE, [entry("gone")])
    await storage.clear(THREE, at=1.0)
    await storage.append(THREE, [entry("alpha after"), entry("beta after")])
    for n in range(60):
        each = entry(f"long {n} " + "x" * (n % 7 * 30), id=f"f{n}", at=3000.0)
        await storage.append(LONG, [each])
    await storage.search("alpha")
    await storage.append(THREE, [entry("beta, which is not indexed")])


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
    sessions = await seen.ask("sessions", storage.sessions()) or ()
    seen.values["sessions"] = [(s.identity, s.version, s.last_seq, s.forks) for s in sessions]
    for words in ("alpha", "beta", "branch", "long"):
        hits = await seen.ask(words, storage.search(words, limit=100)) or ()
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
        number = branch.number
        await seen.ask(f"{name} count {number}", storage.count(who, number))
        await seen.ask(f"{name} rows {number}", _texts(storage, who, number))
        if await seen.ask(f"{name} switch", history.switch(number)) is not None:
            continue  # reported
        messages = await seen.ask(f"{name} on {number}", history.messages()) or ()
        seen.said[who] |= {message.id: message.text for message in messages}
        await seen.ask(f"{name} tail {number}", history.tail(3))
    for id in ids:
        await seen.ask(f"{name} {id}", history.message(id))
    seen.is_told = seen.is_told or bool(history.damaged)
    await history.close()


async def _texts(storage: Storage, who: SessionIdentity, branch: int) -> list[tuple[str, str]]:
    return [(row.id, message_in(row).text) for row in await storage.rows(who, branch=branch)]


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
            except DragomanError:
                broken.append(row.seq)
    return broken
