"""A save without changes does nothing: no call to the store, and no hook."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman import ChatHistory, ChatHistoryConfig, Message, SessionIdentity
from dragoman.history import MemoryStorage

ONE = SessionIdentity(chat="1")


class Watched(MemoryStorage):
    """A store that records all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if callable(found) and not name.startswith("_"):
            self.asked.append(name)
        return found


async def _add(history: ChatHistory, _first: Message) -> None:
    await history.add("more")


async def _replace(history: ChatHistory, first: Message) -> None:
    await history.replace(first.id, "other")


async def _remove(history: ChatHistory, first: Message) -> None:
    await history.remove(first.id)


async def _clear(history: ChatHistory, _first: Message) -> None:
    await history.clear()


async def _nothing(_history: ChatHistory, _first: Message) -> None:
    return


@pytest.mark.parametrize("change", [_add, _replace, _remove, _clear, _nothing])
@pytest.mark.parametrize("autosave", [True, False])
async def test_a_clean_save_does_nothing(
    change: Callable[[ChatHistory, Message], Awaitable[None]], autosave: bool
) -> None:
    """Whatever was changed and saved before."""
    calls: list[str] = []
    config = ChatHistoryConfig(
        autosave=autosave,
        on_before_save=lambda _: calls.append("before"),
        on_after_save=lambda _: calls.append("after"),
    )
    storage = Watched()
    history = await ChatHistory.open(ONE, storage, config)
    first = await history.add("a")
    await history.save()
    await change(history, first)
    await history.save()
    assert calls
    version, before = history.version, len(calls)
    storage.asked.clear()
    assert not history.is_dirty
    await history.save()
    await history.save(expected_version=version)
    assert (storage.asked, len(calls), history.version) == ([], before, version)


async def test_each_kind_of_change_makes_it_dirty_until_it_is_saved() -> None:
    """One save writes it: another reader sees it then, and not before."""
    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(autosave=False))
    first = await history.add("a")
    other = await ChatHistory.open(ONE, storage)
    for change, seen in ((_add, 2), (_replace, 2), (_remove, 1), (_clear, 0)):
        await history.save()
        had = await other.count()
        states = [history.is_dirty]
        await change(history, first)
        states.append(history.is_dirty)
        assert (states, await other.count()) == ([False, True], had)
        await history.save()
        assert (history.is_dirty, await other.count()) == (False, seen)
