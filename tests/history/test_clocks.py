"""Clocks that stand still or go backwards: nothing is lost, stale, or reported as damage."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from dragoman import Message
from dragoman.history import ChatHistory, ChatHistoryConfig, SessionIdentity
from dragoman.history.storage.protocol import Storage
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="guide", chat="7")
START = 1_763_294_400.0  # 2025-11-16 12:00 UTC
HOUR = 3_600.0


@pytest.fixture(params=["still", "backwards", "to and fro"])
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A clock that does not behave, everywhere in this process."""
    set_clock(monkeypatch, CLOCKS[request.param]())
    return str(request.param)


def still() -> Callable[[], float]:
    """The same time for ever."""
    return lambda: START


def backwards() -> Callable[[], float]:
    """Each time ten minutes earlier."""
    steps = count()
    return lambda: START - HOUR / 6 * next(steps)


def to_and_fro() -> Callable[[], float]:
    """As machines with different clocks have it."""
    steps = count()
    return lambda: START + HOUR * (next(steps) % 2)


CLOCKS: dict[str, Callable[[], Callable[[], float]]] = {
    "still": still,
    "backwards": backwards,
    "to and fro": to_and_fro,
}


def set_clock(monkeypatch: pytest.MonkeyPatch, now: Callable[[], float]) -> None:
    """Replace the clock wherever the histories have imported it."""
    for module in _of_histories():
        if getattr(module, "time", None) is time.time:
            monkeypatch.setattr(module, "time", now)


def _of_histories() -> Iterator[object]:
    for name, module in list(sys.modules.items()):
        if name.startswith("dragoman.history"):
            yield module


def said(messages: object) -> list[str]:
    """The texts."""
    return [message.text for message in messages]  # type: ignore[attr-defined]  # messages


async def recreated(storage: Storage, *words: str) -> None:
    """Delete the session by another history, and create it again with as many writes."""
    other = await ChatHistory.open(ONE, storage)
    await other.delete()
    for word in words:
        await other.add(Message.user(word))


async def test_a_recreated_session_is_never_mixed_with_the_deleted_one(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its time and its version are those of the one that a history has loaded."""
    set_clock(monkeypatch, still())
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        for word in ("a secret", "another"):
            await history.add(Message.user(word))
        assert said(await history.messages()) == said(await history.window()) == [
            "a secret", "another",
        ]  # fmt: skip
        await recreated(storage, "new", "newer")
        assert said(await history.messages()) == ["new", "newer"]
        assert said(await history.window()) == ["new", "newer"]


async def test_nor_if_it_is_written_to_before_it_is_read(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write follows what is stored, not what was loaded."""
    set_clock(monkeypatch, still())
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add(Message.user("a secret"))
        assert said(await history.window()) == said(await history.messages())
        await recreated(storage, "new")
        await history.add(Message.user("newer"))
        assert said(await history.window()) == ["new", "newer"]
        assert said(await history.messages()) == ["new", "newer"]


async def test_nor_if_its_own_removals_came_before(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the loaded messages are left."""
    set_clock(monkeypatch, still())
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        for word in ("first", "second", "third"):
            await history.add(Message.user(word))
        first, *_ = await history.messages()
        await history.remove(first.id)
        assert said(await history.messages()) == ["second", "third"]
        await recreated(storage, "1", "2", "3", "4")
        assert said(await history.messages()) == ["1", "2", "3", "4"]


@pytest.mark.usefixtures("clock")
async def test_a_conversation_is_complete_and_in_order(backend: Backend) -> None:
    """Order comes from numbers, not from times; nothing is reported as damaged."""
    config = ChatHistoryConfig(context_window=1_000, reserved_for_completion=200)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        words = [f"word {number}" for number in range(20)]
        for number, word in enumerate(words):
            role = Message.assistant if number % 2 else Message.user
            await history.add(role(word))
            assert said(await history.messages())[-1] == word
        middle = (await history.messages())[9]
        await history.replace(middle.id, "changed")
        await history.fork(middle.id)
        await history.add(Message.user("aside"))
        assert said(await history.messages()) == [*words[:9], "changed", "aside"]
        assert not history.damaged
        assert await storage.verify() == []
        fresh = await ChatHistory.open(ONE, storage, config)
        assert said(await fresh.window()) == said(await history.window())


@pytest.mark.usefixtures("clock")
async def test_what_is_deleted_stays_deleted(backend: Backend) -> None:
    """And what is cleared or created again is new."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.extend([Message.user("a"), Message.assistant("b")])
        await history.clear()
        assert said(await history.messages()) == []
        await history.add(Message.user("c"))
        await recreated(storage, "d")
        assert said(await history.messages()) == ["d"]
        assert await history.delete()
        assert said(await history.messages()) == []
        assert await storage.sessions() == []
