"""The same history with additional hooks, as an agent adds them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import ChatHistory, ChatHistoryConfig, Message, Messages, SessionIdentity
from dragoman.errors import InvalidInputError, StoreError
from dragoman.history import BlockingChatHistory, MemoryStorage
from dragoman.history.config import Hook
from dragoman.history.hooks import NOTIFICATIONS
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(chat="7")
SMALL = {"context_window": 400, "reserved_for_completion": 100}


class Counted(MemoryStorage):
    """Counts how often it was closed."""

    closed = 0

    async def close(self) -> None:
        """Count one."""
        self.closed += 1
        await super().close()


def texts(messages: Messages) -> list[str]:
    """Their texts."""
    return [message.text for message in messages]


def noting(heard: list[Any], word: str, *, is_async: bool) -> Hook:
    """A hook that records a word and the history it was given."""

    def note(*arguments: Any) -> None:
        heard.append((word, arguments[-1]))

    async def note_later(*arguments: Any) -> None:
        await asyncio.sleep(0)
        note(*arguments)

    return note_later if is_async else note


@pytest.mark.parametrize("name", NOTIFICATIONS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("then", [False, True])
async def test_every_hook_is_called_after_the_history_s_own(
    name: str, first: bool, then: bool
) -> None:
    """Sync or async; both get the history that was used."""
    heard: list[Any] = []
    config: dict[str, Any] = {**SMALL, name: noting(heard, "own", is_async=first)}
    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(**config))
    watched = history.with_hooks(**{name: noting(heard, "more", is_async=then)})
    await used(watched)
    assert [word for word, _ in heard] == ["own", "more"] * (len(heard) // 2)
    assert heard
    assert all(given is watched for _, given in heard)
    heard.clear()
    await (await ChatHistory.open(ONE, storage)).add("It has to be loaded again now.")
    await used(history)
    assert heard
    assert all(word == "own" and given is history for word, given in heard)


async def used(history: ChatHistory) -> None:
    """Trigger every hook of a history."""
    await history.messages()
    await history.extend([f"{number} {'word ' * 50}" for number in range(20)])
    await history.messages()
    await history.window()


@pytest.mark.parametrize("autosave", [True, False])
async def test_everything_else_is_shared(backend: Backend, autosave: bool) -> None:
    """Messages, unsaved changes, the branch and the version, in both directions."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(autosave=autosave))
        watched = history.with_hooks(on_after_add=None)
        first = await watched.add("a")
        assert history.is_dirty is watched.is_dirty is not autosave
        await history.add("b")
        assert texts(await watched.messages()) == texts(await history.messages()) == ["a", "b"]
        await history.save()
        assert not watched.is_dirty
        await watched.fork(first.id)
        assert history.branch == watched.branch == 1
        assert texts(await history.messages()) == ["a"]
        assert history.version == watched.version > 0
        await watched.add("c")
        await watched.delete()
        assert (await history.count(), history.is_dirty) == (0, False)


async def test_hooks_can_be_stacked() -> None:
    """Each layer after the one before; the first that raises ends the sequence."""
    heard: list[Any] = []

    def veto(*_: Any) -> None:
        msg = "no"
        raise ValueError(msg)

    history = await ChatHistory.open(ONE, "memory:")
    twice = history.with_hooks(on_before_add=noting(heard, "a", is_async=True)).with_hooks(
        on_before_add=noting(heard, "b", is_async=False)
    )
    await twice.add("x")
    assert [word for word, _ in heard] == ["a", "b"]
    refused = twice.with_hooks(on_before_add=veto).with_hooks(
        on_before_add=noting(heard, "c", is_async=False)
    )
    with pytest.raises(ValueError, match="no"):
        await refused.add("y")
    assert [word for word, _ in heard] == ["a", "b", "a", "b"]
    assert texts(await history.messages()) == ["x"]


@pytest.mark.parametrize("who", ["history", "watched", "both"])
async def test_closing_either_closes_the_store_once(who: str) -> None:
    """Both are closed then."""
    storage = Counted()
    history = ChatHistory(ONE, storage, owns_storage=True)
    watched = history.with_hooks(on_after_add=print)
    closing: list[ChatHistory] = [history] if who == "history" else [watched]
    for each in [history, watched, history] if who == "both" else closing:
        await each.close()
    assert storage.closed == 1
    for each in (history, watched):
        with pytest.raises(StoreError, match="closed"):
            await each.add("a")


async def test_a_store_that_was_passed_in_stays_open() -> None:
    """As usual."""
    storage = Counted()
    history = await ChatHistory.open(ONE, storage)
    async with history.with_hooks(on_after_add=None) as watched:
        await watched.add("a")
    assert storage.closed == 0


async def test_a_failed_close_can_be_retried() -> None:
    """The store has not been released."""

    class Stuck(Counted):
        """Can't be closed at first."""

        async def close(self) -> None:
            await super().close()
            if self.closed == 1:
                msg = "stuck"
                raise StoreError(msg)

    storage = Stuck()
    history = ChatHistory(ONE, storage, owns_storage=True)
    with pytest.raises(StoreError):
        await history.close()
    await history.with_hooks().close()
    await history.close()
    assert storage.closed == 2


@pytest.mark.parametrize(
    ("hooks", "problem"),
    [
        ({"on_add": print}, "1 unknown hooks"),
        ({"strategy": print, "token_counter": print}, "2 unknown hooks"),
        ({"on_after_add": "x"}, "on_after_add must be callable, not str"),
    ],
)
@pytest.mark.parametrize("open_it", [ChatHistory, BlockingChatHistory], ids=["async", "blocking"])
def test_invalid_hooks_are_rejected(hooks: Any, problem: str, open_it: Any) -> None:
    """Callbacks that decide something can only be set once."""
    history = ChatHistory(ONE, MemoryStorage())
    watched = history if open_it is ChatHistory else BlockingChatHistory(history)
    with pytest.raises(InvalidInputError, match=problem):
        watched.with_hooks(**hooks)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("then", [False, True])
def test_the_blocking_history_accepts_more_hooks(backend: Backend, first: bool, then: bool) -> None:
    """They get the blocking history, and may call it."""
    heard: list[Any] = []

    def answer(message: Message, history: BlockingChatHistory) -> None:
        if message.text == "ping":
            history.add("pong")

    async def answer_later(message: Message, history: BlockingChatHistory) -> None:
        await asyncio.sleep(0)
        answer(message, history)

    own: Callable[..., Any] = noting(heard, "own", is_async=first)
    history = BlockingChatHistory.open(ONE, backend.new(), ChatHistoryConfig(on_after_add=own))
    watched = history.with_hooks(on_after_add=answer_later if then else answer)
    watched.add("ping")
    history.add("ping")
    assert texts(history.messages()) == ["ping", "pong", "ping"]
    assert [given for _, given in heard] == [watched, watched, history]
    watched._run(watched.storage.close())


def test_a_blocking_history_with_hooks_is_saved_and_closed(tmp_path: Path) -> None:
    """At the end of its block, with the one it was created from."""
    url = f"sqlite:///{tmp_path}/chats.db"
    history = ChatHistory.open_sync(ONE, url, ChatHistoryConfig(autosave=False))
    with history.with_hooks(on_after_save=None) as watched:
        history.add("a")
        assert watched.is_dirty
    with pytest.raises(StoreError, match="closed"):
        history.count()
    with ChatHistory.open_sync(ONE, url) as again:
        assert texts(again.messages()) == ["a"]
