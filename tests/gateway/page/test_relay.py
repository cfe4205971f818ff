"""Decisions for a run of another worker, as they are found in the store."""

from __future__ import annotations

import asyncio
from time import time

from dragoman import Message
from dragoman.gateway.page import relay
from dragoman.gateway.page.relay import Relay, tell
from dragoman.history import MemoryStorage
from dragoman.history.records import body_of
from dragoman.history.storage.protocol import Entry
from tests.environment import PATIENCE

_RUN = "0" * 32


class _Run:
    """A run that only remembers what it was told."""

    id = _RUN

    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self.decided: list[tuple[str, bool, str]] = []

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Remember a decision."""
        self.decided.append((call_id, allow, reason))

    async def stop(self) -> None:
        """Remember that it was stopped."""
        self.stopped.set()


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
