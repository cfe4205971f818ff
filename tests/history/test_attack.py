"""An attacker with write access to an encrypted store, but without its keys, is detected.

A short version; `make torture` does it as often as was promised.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from dragoman import ChatHistory, Usage
from dragoman.errors import Corrupt, DragomanError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import message_in
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, Entry, Fork, Row, Session
from dragoman.history.storage.sealed import SealedStorage
from dragoman.testing.conformance.stores.data import NOON, entry
from tests.history.attacker import Taken, put, taken
from tests.history.torture import IN_FULL

pytestmark = pytest.mark.whole

ATTACKS = 1_000 if IN_FULL else 40
KEYS = {"2025": b"\1" * 32, "2026": b"\2" * 32}
WHO = tuple(SessionIdentity(chat=str(number)) for number in range(3))
AFTER = "after the attack"
Seen = dict[str, tuple[Any, ...] | None]


def sealed(inner: MemoryStorage, current: str = "2026") -> SealedStorage:
    """The store as its owner opens it."""
    return SealedStorage(inner, keys=KEYS, current=current)


def about(row: Row) -> tuple[Any, ...]:
    """A message and its position."""
    return (row.branch, row.seq, row.id, row.at, row.model, row.usage, row.body)


class Owner:
    """Writes to some sessions at random, while copies of the store are taken."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.inner = MemoryStorage()
        self.storage = sealed(self.inner, "2025")
        self.copies: list[Taken] = []
        self.written: set[tuple[str, tuple[Any, ...]]] = set()

    async def live(self, steps: int) -> None:
        """Make random writes."""
        for step in range(steps):
            if step == steps // 2:
                self.storage = sealed(self.inner)
                await self.storage.rotate()
            who = self.chance.choice(WHO)
            await self._step(who, step)
            for each in WHO:
                if await self.inner.session(each) is not None:
                    found = await taken(self.inner, each)
                    self.copies.append(found)
                    for row in await rows_of(self.storage, found[0]):
                        self.written.add((each.digest, about(row)))

    async def _step(self, who: SessionIdentity, step: int) -> None:
        session = await self.storage.session(who)
        if session is None or self.chance.random() < 0.5:
            branches = [MAIN, *(fork.number for fork in session.forks)] if session else [MAIN]
            added = [
                self._entry(f"{step}.{number}") for number in range(self.chance.choice((1, 3)))
            ]
            await self.storage.append(who, added, branch=self.chance.choice(branches))
            return
        rows = await rows_of(self.storage, session)
        one = self.chance.choice(rows) if rows else None
        match self.chance.randrange(8 if one else 2):
            case 0:
                await self.storage.fork(
                    who, parent=MAIN, at=self.chance.randint(0, session.last_seq)
                )
            case 1:
                choice = self.chance.choice([MAIN, *(fork.number for fork in session.forks)])
                await self.storage.activate(who, choice)
            case 2 | 3 | 4 | 5 if one is not None:
                await self.storage.rewrite(who, replaced=[self._entry(f"new {step}", id=one.id)])
            case 6 if one is not None:
                await self.storage.rewrite(who, removed=[one.id])
            case _:
                if self.chance.random() < 0.2:
                    await self.storage.clear(who, at=NOON)

    def _entry(self, text: str, id: str | None = None) -> Entry:
        usage = self.chance.choice((None, Usage(input=3, output=5)))
        return entry(text, id=id, model=self.chance.choice((None, "m-1")), usage=usage)


async def rows_of(storage: Any, session: Session) -> list[Row]:
    """All rows of all branches."""
    rows: list[Row] = []
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        rows += await storage.rows(session.identity, branch=branch)
    return rows


async def seen_by(storage: SealedStorage) -> Seen:
    """Everything that can be read, without windows; raises if a problem is found."""
    seen: Seen = {}
    for who in WHO:
        session = await storage.session(who)
        if session is None:
            seen[who.digest] = None
            continue
        rows = await rows_of(storage, session)
        for row in rows:
            assert await storage.row(who, row.id) == row
        numbers = (session.version, session.last_seq, session.created_at, session.active)
        seen[who.digest] = (*numbers, session.forks, [about(row) for row in rows])
    return seen


# --- what an attacker may do to a session

Attack = Callable[[Random, list[Taken], Session, list[Row]], tuple[Session, list[Row]]]


def _one(chance: Random, rows: list[Row]) -> int:
    return chance.randrange(len(rows))


def lose(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Remove a message."""
    del rows[_one(chance, rows)]
    return session, rows


def cut(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Remove the end, and adjust the numbers."""
    rows = rows[: _one(chance, rows)]
    last = max((row.seq for row in rows), default=0)
    return msgspec.structs.replace(session, last_seq=chance.choice((last, session.last_seq))), rows


def swap(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Exchange a field of two messages."""
    a, b = _one(chance, rows), _one(chance, rows)
    fields = chance.choice((["body"], ["seq"], ["seq", "branch"], ["id"], ["body", "id"], ["at"]))
    one = {name: getattr(rows[a], name) for name in fields}
    two = {name: getattr(rows[b], name) for name in fields}
    rows[a] = msgspec.structs.replace(rows[a], **two)
    rows[b] = msgspec.structs.replace(rows[b], **one)
    return session, rows


def change(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Alter a field beside a message."""
    n = _one(chance, rows)
    changes = chance.choice((
        {"at": NOON + 7}, {"model": "m-2"}, {"usage": Usage(input=1)}, {"usage": None},
        {"id": "another"}, {"seq": session.last_seq}, {"seq": 1}, {"branch": 1}, {"branch": 7},
        {"model": None}, {"seq": rows[n].seq + 1},
    ))  # fmt: skip
    rows[n] = msgspec.structs.replace(rows[n], **changes)
    return session, rows


def flip(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Alter a byte of a message, or of the seal."""
    if session.seal is not None and chance.random() < 0.3:
        return msgspec.structs.replace(session, seal=_flipped(chance, session.seal)), rows
    n = _one(chance, rows)
    rows[n] = msgspec.structs.replace(rows[n], body=_flipped(chance, rows[n].body))
    return session, rows


def _flipped(chance: Random, raw: bytes) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << chance.randrange(8))]) + raw[at + 1 :]


def relabel(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Claim that a message has another key, or no position."""
    n = _one(chance, rows)
    try:
        document = msgspec.json.decode(rows[n].body)
    except ValueError:  # it was flipped before
        return session, rows
    if not isinstance(document.get("value"), dict):
        return session, rows
    for name, value in chance.choice((
        {"key": "2024"}, {"key": "2025"}, {"check": "00000000"}, {"place": None},
        {"place": f"{'0' * 16}.{rows[n].branch}.{rows[n].seq}"},
    )).items():  # fmt: skip
        document["value"][name] = value
    rows[n] = msgspec.structs.replace(rows[n], body=msgspec.json.encode(document))
    return session, rows


def forge(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Write plain text: in place of a message, or as an additional one."""
    given = entry("forged")
    n = _one(chance, rows) if rows else -1
    if rows and chance.random() < 0.5:
        rows[n] = msgspec.structs.replace(rows[n], body=given.body)
        return session, rows
    seq = session.last_seq + 1
    rows.append(Row(given.id, given.body, given.at, seq=seq))
    version = session.version + chance.choice((0, 1))
    return msgspec.structs.replace(session, last_seq=seq, version=version), rows


def replay_row(chance: Random, copies: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Put a message of any time and session in place of another, or add it."""
    all_rows = [row for _, given in copies for row in given]
    now = {row.id: row for row in rows}
    earlier = [row for row in all_rows if row.id in now and row.body != now[row.id].body]
    old = chance.choice(earlier if earlier and chance.random() < 0.6 else all_rows)
    same = [n for n, row in enumerate(rows) if row.id == old.id]
    if same:
        rows[same[0]] = old
    elif rows and chance.random() < 0.5:
        n = _one(chance, rows)
        rows[n] = msgspec.structs.replace(
            old, seq=rows[n].seq, branch=rows[n].branch, id=chance.choice((old.id, rows[n].id))
        )
    else:
        rows.append(old)
    return session, rows


def replay_head(chance: Random, copies: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Restore an earlier head of this or another session, with or without its numbers."""
    own = [copy for copy in copies if copy[0].identity == session.identity]
    old, _ = chance.choice(own if chance.random() < 0.8 else copies)
    if chance.random() < 0.5:
        return msgspec.structs.replace(session, seal=old.seal), rows
    return msgspec.structs.replace(old, identity=session.identity), rows


def replay_all(chance: Random, copies: list[Taken], session: Session, _: list[Row]) -> Any:
    """Restore an earlier state of the session, or put another session under its name."""
    own = [copy for copy in copies if copy[0].identity == session.identity]
    old, given = chance.choice(own if chance.random() < 0.8 else copies)
    return msgspec.structs.replace(old, identity=session.identity), list(given)


def renumber(chance: Random, _: list[Taken], session: Session, rows: list[Row]) -> Any:
    """Alter the numbers, the branches, or the active branch."""
    forks = session.forks
    moved = tuple(Fork(fork.number, fork.parent, max(0, fork.at - 1)) for fork in forks)
    changes = chance.choice((
        {"version": session.version + 1}, {"version": max(1, session.version - 1)},
        {"last_seq": session.last_seq + 1}, {"created_at": NOON + 3}, {"active": 1}, {"active": 0},
        {"forks": forks[:-1]}, {"forks": moved}, {"forks": (*forks, Fork(9, 0, 0))},
        {"seal": None},
    ))  # fmt: skip
    return msgspec.structs.replace(session, **changes), rows


ATTACKS_ON_SESSIONS: list[Attack] = [
    lose, cut, swap, change, flip, relabel, forge, replay_row, replay_head, replay_all, renumber,
]  # fmt: skip


async def attack(owner: Owner, chance: Random) -> None:
    """Do a few of these, to any sessions."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        who = chance.choice(WHO)
        if await owner.inner.session(who) is None:
            await put(owner.inner, *chance.choice(owner.copies))
            continue
        found = await taken(owner.inner, who)
        if chance.random() < 0.05:
            await owner.inner.delete(found[0].identity)
            continue
        doing = chance.choice(ATTACKS_ON_SESSIONS)
        if not found[1] and doing not in {forge, replay_row, replay_head, replay_all, renumber}:
            continue
        session, rows = doing(chance, owner.copies, found[0], list(found[1]))
        distinct = {row.id: row for row in rows}  # no store accepts an id or a number twice
        await put(owner.inner, session, list({r.seq: r for r in distinct.values()}.values()))


# --- the property


async def told_by(storage: SealedStorage, **since: Any) -> tuple[list[str], Seen | None]:
    """The output of `verify`, and what can be read; an error while reading counts as output."""
    problems = await storage.verify(**since)
    try:
        return problems, await seen_by(storage)
    except DragomanError as error:
        return [*problems, str(error)], None


async def expect_nothing_forged(owner: Owner, storage: SealedStorage) -> None:
    """Assert that every message that looks authentic was written by the owner, at its position."""
    for who in WHO:
        try:
            session = await storage.session(who)
            rows = [] if session is None else await rows_of(storage, session)
        except DragomanError:
            continue
        for row in rows:
            try:
                message_in(row)
            except Corrupt:
                continue
            is_later = message_in(row).text == AFTER
            assert is_later or (who.digest, about(row)) in owner.written


async def expect_only_untouched_histories(owner: Owner, before: Seen) -> None:
    """Assert that a history opens only if it holds what its owner wrote, now or earlier."""
    states = {(digest, key(before[digest])) for digest in before}
    for session, rows in owner.copies:
        states.add((session.identity.digest, frozenset(row.id for row in rows)))
    for who in WHO:
        storage = sealed(owner.inner)
        try:
            history = await ChatHistory.open(who, storage)
            held = [message.id for message in await history.messages()]
        except Corrupt:
            continue
        assert not history.damaged
        found = await storage.session(who)
        if found is not None:
            stored = frozenset(row.id for row in await rows_of(storage, found))
            assert (who.digest, stored) in states
            assert {*held} <= stored


def key(seen: tuple[Any, ...] | None) -> frozenset[str]:
    """The ids of the messages in what was seen of a session."""
    return frozenset(row[2] for row in seen[-1]) if seen else frozenset()


@pytest.mark.parametrize("number", range(ATTACKS))
async def test_no_attack_goes_unnoticed(number: int) -> None:
    """Either everything is read unchanged, or it is reported; and no forgery becomes authentic."""
    chance = Random(number)
    owner = Owner(chance)
    await owner.live(12)
    before, since = await seen_by(owner.storage), await owner.storage.checkpoint()
    assert await owner.storage.verify(since=since) == []
    await attack(owner, chance)

    fresh = sealed(owner.inner)
    await expect_nothing_forged(owner, fresh)
    told, seen = await told_by(fresh, since=since)
    assert told or seen == before

    told, seen = await told_by(owner.storage)  # which has seen all of it
    gone = seen is not None and any(before[digest] and not seen[digest] for digest in seen)
    assert told or gone or seen == before

    await expect_only_untouched_histories(owner, before)
    told = await sealed(owner.inner).verify()
    for write in (_append_everywhere, SealedStorage.rotate):
        later = sealed(owner.inner)
        await write(later)
        await expect_nothing_forged(owner, sealed(owner.inner))
        assert bool(await sealed(owner.inner).verify()) >= bool(told)


async def _append_everywhere(storage: SealedStorage) -> None:
    for who in WHO:
        added = entry(AFTER)
        try:
            await storage.append(who, [added])
        except DragomanError:
            continue
        await storage.rewrite(who, removed=[added.id])
