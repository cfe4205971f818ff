"""How much a round of a thousand calls writes to each store, counted at the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import Agent, ChatHistory, SessionIdentity, ToolExecutor, tool
from dragoman.history.storage.protocol import Entry
from dragoman.testing.conformance.stores.backends import Backend
from tests.agent.scripts import asks, call, model
from tests.history.conftest import backend

__all__ = ["backend"]  # the fixture

_CALLS = 1000
_SIZE = 100
"""Characters of a result, besides its number."""
_MOST_BESIDE = 400
"""Bytes that a message, a result and the mark of a call take beside what the tool returned."""


@tool
async def step(number: int) -> str:
    """One of many."""
    return f"<{number}>" + "x" * _SIZE


class Counting:
    """Records every body that is passed to a storage to be written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, storage: Any) -> None:
        self.bodies: list[bytes] = []
        self.rewritten = 0
        append, rewrite = storage.append, storage.rewrite

        async def counted(identity: Any, entries: Sequence[Entry], **rest: Any) -> Any:
            self.bodies += [entry.body for entry in entries]
            return await append(identity, entries, **rest)

        async def counted_rewrite(*arguments: Any, **rest: Any) -> Any:
            self.rewritten += 1
            return await rewrite(*arguments, **rest)

        monkeypatch.setattr(storage, "append", counted)
        monkeypatch.setattr(storage, "rewrite", counted_rewrite)


async def test_a_round_that_is_saved_later_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without `autosave`, and with no other writer, the conversation is only read for requests."""
    read = 0
    messages = ChatHistory.messages

    async def counted(this: ChatHistory) -> Any:
        nonlocal read
        read += 1
        return await messages(this)

    monkeypatch.setattr(ChatHistory, "messages", counted)
    calls = asks(*(call("step", f"c{n}", number=n) for n in range(100)))
    agent = Agent(model(calls, "Done."), tools=[step], executor=ToolExecutor(limit=1))
    async with ChatHistory(SessionIdentity(chat="7"), "memory://", {"autosave": False}) as history:
        await agent.send("Go", history=history)
    assert read <= 1


@pytest.mark.parametrize("limit", [8, pytest.param(1, marks=pytest.mark.thorough)])
async def test_a_thousand_results_are_written_once_each(
    backend: Backend,
    limit: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is rewritten, and the bytes grow linearly with the number of calls."""
    calls = asks(*(call("step", f"c{n}", number=n) for n in range(_CALLS)))
    agent = Agent(model(calls, "Done."), tools=[step], executor=ToolExecutor(limit=limit))
    async with backend.opened() as storage:
        written = Counting(monkeypatch, storage)
        async with ChatHistory(SessionIdentity(chat="7"), storage) as history:
            await agent.send("Go", history=history)
            kept = await history.messages()
    assert written.rewritten == 0
    assert len(written.bodies) == len(kept)
    told = b"\n".join(written.bodies[2:-1])  # without the prompt, the calls and the answer
    assert all(told.count(b"<%d>" % number) == 1 for number in range(_CALLS))
    assert len(told) < _CALLS * (_SIZE + _MOST_BESIDE)
