"""Decisions for a run of another worker, as they are found in the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import time
from typing import Any

import pytest

from dragoman import Message
from dragoman.errors import Conflict, NotFound
from dragoman.gateway.page import relay
from dragoman.gateway.page.relay import Relay, events_elsewhere, running, tell
from dragoman.history import MemoryStorage
from dragoman.history.records import body_of
from dragoman.history.storage.protocol import Entry
from tests.environment import PATIENCE

_RUN = f"{'0' * 40}-0-{'0' * 32}"


class _Run:
    """A run that only remembers what it was told."""

    def __init__(self, id: str = _RUN) -> None:
        self.id = id
        self.stopped = asyncio.Event()
        self.decided: list[tuple[str, bool, str]] = []

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Remember a decision."""
        self.decided.append((call_id, allow, reason))

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
    async with Relay(storage, run):
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
    async with Relay(storage, run):
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
    """Its worker was killed: the branch is free, and nobody waits for the run."""
    storage, run = MemoryStorage(), _Run()
    async with Relay(storage, run):
        monkeypatch.setattr(relay, "_DEAD", 0)
        assert await running(storage, "0" * 40, 0) is None
        with pytest.raises(NotFound):
            await tell(storage, _RUN, {"stop": True})
        assert [each async for each in events_elsewhere(storage, _RUN, 60)] == []


async def test_a_branch_has_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of workers that start one at once, one does; the branch of a dead one is free."""
    storage = MemoryStorage()
    relays = [Relay(storage, _Run(f"{'0' * 40}-0-{number:032}")) for number in range(5)]
    told = await asyncio.gather(*(each.__aenter__() for each in relays), return_exceptions=True)
    assert sorted(map(repr, map(type, told))) == sorted(map(repr, [*[Conflict] * 4, type(None)]))
    monkeypatch.setattr(relay, "_DEAD", 0)
    async with Relay(storage, _Run()):
        monkeypatch.undo()
        assert await running(storage, "0" * 40, 0) == _RUN
    await relays[told.index(None)].__aexit__()
