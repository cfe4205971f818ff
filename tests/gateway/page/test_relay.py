"""Decisions for a run of another worker, as they are found in the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count, pairwise
from time import monotonic, time
from typing import Any

import pytest

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.errors import Conflict, NotFound
from dragoman.gateway.page import relay
from dragoman.gateway.page.relay import Relay, events_elsewhere, running, tell
from dragoman.history import MemoryStorage
from dragoman.history.records import body_of
from dragoman.history.storage.protocol import Entry
from tests.environment import PATIENCE

_numbers = count()
_RUN = f"{'0' * 40}-0-{'0' * 32}"


class _Run:
    """A run that only remembers what it was told."""

    def __init__(self, id: str = _RUN, identity: SessionIdentity | None = None) -> None:
        self.id = id
        self.identity = identity or SessionIdentity(chat="c")
        self.part: Message | None = None
        self.stopped = asyncio.Event()
        self.decided: list[tuple[str, bool, str]] = []

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Remember a decision."""
        self.decided.append((call_id, allow, reason))

    def draft(self) -> Message | None:
        """The part that came."""
        return self.part

    async def stop(self) -> None:
        """Remember that it was stopped."""
        self.stopped.set()

    async def events(self, pause: float) -> AsyncIterator[dict[str, Any] | None]:
        """Two events, and then none for a while."""
        yield {"type": "delta", "text": "a"}
        yield {"type": "delta", "text": "\ud800"}
        while True:
            yield None
            await asyncio.sleep(pause)


async def test_rows_that_are_no_decisions_are_skipped() -> None:
    """Half a character, JSON of another form, or no JSON: later decisions still arrive."""
    storage, run = MemoryStorage(), _Run()
    async with Relay(storage, run, has_others=True):
        for text in ("\ud800", '"\\ud800"', "{", "[]", "1e400", '{"stop": 5}', '{"call_id": []}'):
            message = Message.user(text)
            who = relay._identity(_RUN)  # pyright: ignore[reportPrivateUsage]
            await storage.append(who, [Entry(message.id, body_of(message), time())])
        await tell(storage, _RUN, {"call_id": "c", "allow": True, "reason": "\ud800"})
        await tell(storage, _RUN, {"stop": True})
        await asyncio.wait_for(run.stopped.wait(), PATIENCE)
    assert run.decided == [("c", True, "\ud800")]


async def test_another_worker_follows_a_run() -> None:
    """It finds the run by its branch, gets all events, and ends when the run does."""
    storage, run = MemoryStorage(), _Run()
    async with Relay(storage, run, has_others=True):
        assert await running(storage, "0" * 40, 0) == _RUN
        assert await running(storage, "0" * 40, 1) is None
        await tell(storage, _RUN, {"follow": True})
        events = events_elsewhere(storage, _RUN, 60)
        found = [await anext(events), await anext(events)]
        assert [each and each["text"] for each in found] == ["a", "\ud800"]
    assert [each async for each in events] == []
    assert await running(storage, "0" * 40, 0) is None
    assert await storage.sessions() == []


async def test_a_run_without_a_sign_of_life_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine was switched off: the branch is free, and nobody waits for the run."""
    storage, run = MemoryStorage(), _Run()
    monkeypatch.setattr(relay, "_LEASE", 0.2)
    monkeypatch.setattr(relay, "this_process", lambda: "process:elsewhere/1/1")
    async with Relay(storage, run, has_others=True):
        assert await running(storage, "0" * 40, 0) == _RUN
        await asyncio.sleep(0.3)
        assert await running(storage, "0" * 40, 0) is None
        with pytest.raises(NotFound):
            await tell(storage, _RUN, {"stop": True})
        assert [each async for each in events_elsewhere(storage, _RUN, 60)] == []


async def test_a_process_that_stood_still_stops_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another has taken the branch: two runs would answer at once, and what it has is its own."""
    storage, run, other = MemoryStorage(), _Run(), _Run(f"{'0' * 40}-0-{'1' * 32}")
    monkeypatch.setattr(relay, "_BEAT", 0.1)
    monkeypatch.setattr(relay, "this_process", lambda: f"process:gone/{next(_numbers)}/1")
    monkeypatch.setattr("dragoman.history.storage.ledger.is_gone", lambda owner: "gone/0" in owner)
    async with Relay(storage, run, has_others=False), Relay(storage, other, has_others=False):
        await asyncio.wait_for(run.stopped.wait(), PATIENCE)
        assert await running(storage, "0" * 40, 0) == other.id
    assert not other.stopped.is_set()


async def test_a_part_is_written_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what has grown, and once in a while however fast it grows."""
    storage, run = MemoryStorage(), _Run()
    monkeypatch.setattr(relay, "_DRAFT", 0.2)
    written: list[float] = []
    rewrite = storage.rewrite

    async def noted(*given: Any, **named: Any) -> int:
        written.append(monotonic())
        return await rewrite(*given, **named)

    monkeypatch.setattr(storage, "rewrite", noted)
    begun = monotonic()
    async with Relay(storage, run, has_others=False):
        for number in range(60):
            run.part = Message.assistant("word " * number or "w")
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        assert 1 <= len(written) <= (monotonic() - begun) / 0.2
        assert all(later - one > 0.15 for one, later in pairwise(written))


@pytest.mark.parametrize("follows", [True, False])
async def test_a_part_is_kept_where_it_belongs(follows: bool) -> None:
    """Behind the message that it answers; not if the conversation has gone on since."""
    storage, identity = MemoryStorage(), SessionIdentity(chat="c")
    async with ChatHistory(identity, storage) as history:
        question = await history.add(Message.user("Where?"))
        id = f"{identity.digest}-0-{'0' * 32}"
        place = relay._identity(id)  # pyright: ignore[reportPrivateUsage]
        part = Message.assistant("In Mo").with_metadata(relay.AFTER, question.id)
        await storage.append(place, [Entry(id, body_of(part.with_id(id)), time())])
        if not follows:
            await history.add(Message.assistant("In Mostar."))
        session = await storage.session(identity)
        assert session is not None
        await asyncio.gather(*(relay.recover(storage, session, 0) for _ in range(4)))
        said = [each.text for each in await history.messages()]
    assert said == ["Where?", "In Mo" if follows else "In Mostar."]
    assert await storage.session(place) is None


async def test_a_branch_has_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of workers that start one at once, one does; the branch of a dead one is free."""
    storage = MemoryStorage()
    relays = [
        Relay(storage, _Run(f"{'0' * 40}-0-{number:032}"), has_others=True) for number in range(5)
    ]
    told = await asyncio.gather(*(each.__aenter__() for each in relays), return_exceptions=True)
    assert sorted(map(repr, map(type, told))) == sorted(map(repr, [*[Conflict] * 4, type(None)]))
    monkeypatch.setattr("dragoman.history.storage.ledger.is_gone", lambda _: True)
    async with Relay(storage, _Run(), has_others=True):
        monkeypatch.undo()
        assert await running(storage, "0" * 40, 0) == _RUN
    await relays[told.index(None)].__aexit__()
