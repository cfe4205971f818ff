"""Windows that no longer match what is stored, and long histories."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from dragoman import Message, Messages, ToolCall, ToolResult
from dragoman.history import ChatHistory, ChatHistoryConfig, MemoryStorage, SessionIdentity
from dragoman.history.remembered_cuts import Key
from dragoman.history.remembered_cuts import written as written_cuts
from dragoman.history.storage.protocol import Row, Storage
from dragoman.history.truncation import Cut, Summarise, notes
from dragoman.testing.conformance.stores.backends import Backend
from tests.history.test_windows_by_model import filled as filled_with
from tests.history.test_windows_by_model import turn

ONE = SessionIdentity(agent="guide", chat="7")
SMALL = ChatHistoryConfig(context_window=1_000, reserved_for_completion=200)
filled = partial(filled_with, config=SMALL)
LAZY = ChatHistoryConfig(context_window=1_000, reserved_for_completion=200, autosave=False)


def written(branch: int, cut: Cut) -> bytes:
    """The stored form of the cut of a branch, for the config's window."""
    return written_cuts({Key(branch, None, 800): cut}) or b""


def said(messages: Messages) -> list[str]:
    """The ids of the messages, without notes."""
    return [" ".join(m.text.split()[:2]) for m in messages if notes.kind_of(m) is None]


async def is_sound(history: ChatHistory, storage: Storage) -> Messages:
    """The window, which a new history sees alike, and which ends as the history does."""
    window = await history.window()
    assert window[-1].identical((await history.messages())[-1])
    assert said(window)[0] == "Be brief."
    assert window[1 if notes.kind_of(window[1]) is None else 2].role.value == "user"
    fresh = await ChatHistory.open(ONE, storage, SMALL)
    assert said(await fresh.window()) == said(window)
    return window


async def test_the_first_message_after_the_cut_may_be_removed(backend: Backend) -> None:
    """Or replaced, by this history or another."""
    async with backend.opened() as storage:
        history = await filled(storage)
        for change in ("replace", "remove", "remove by another"):
            window = await history.window()
            first = window[2]
            assert notes.kind_of(window[1]) == "marker"
            if change == "replace":
                await history.replace(first.id, "something else")
                assert said(await history.window())[1] == "something else"
            elif change == "remove":
                await history.remove(first.id)
            else:
                await (await ChatHistory.open(ONE, storage, SMALL)).remove(first.id)
            await is_sound(history, storage)


async def test_kept_messages_may_be_removed(backend: Backend) -> None:
    """Pinned messages and instructions are then left out; others move in."""
    async with backend.opened() as storage:
        history = await filled(storage, 2)
        pinned = (await history.messages())[1]
        await history.pin(pinned.id)
        await history.extend([m for n in range(2, 40) for m in turn(n)])
        assert said(await is_sound(history, storage))[1:3] == ["question 0", "answer 0"]
        await history.remove(pinned.id)
        assert "question 0" not in said(await history.window())
        fresh = await ChatHistory.open(ONE, storage, SMALL)
        assert "question 0" not in said(await fresh.window())


@pytest.mark.parametrize("config", [SMALL, LAZY], ids=["autosave", "lazy"])
async def test_messages_pinned_after_the_cut_come_back(
    backend: Backend, config: ChatHistoryConfig
) -> None:
    """With their turn; the marker has the new number of omitted messages."""
    async with backend.opened() as storage:
        history = await filled(storage, config=config)
        await history.save()
        before = await history.window()
        old = (await history.messages())[3]
        await history.pin(old.id)
        after = await history.window()
        assert said(after)[:3] == ["Be brief.", "question 1", "answer 1"]
        assert said(after)[3:] == said(before)[1:]
        left_out = 81 - len(said(after))
        assert f"({left_out} earlier" in next(m.text for m in after if notes.kind_of(m))
        await history.save()
        fresh = await ChatHistory.open(ONE, storage, SMALL)
        assert said(await fresh.window()) == said(after)


async def test_damaged_and_foreign_windows_are_recreated() -> None:
    """Broken JSON, a later version, another kind, impossible numbers, another branch's ids."""
    storage = MemoryStorage()
    history = await filled(storage)
    whole = said(await history.window())
    messages = await history.messages()
    side = await history.fork(messages[4].id)
    aside = await history.add("aside")
    await history.switch(0)
    for window in (
        b"",
        b"{",
        b'{"dragoman":2,"kind":"Window","value":{"branch":0,"cut":{}}}',
        b'{"dragoman":1,"kind":"Window","value":{"branch":0,"cut":{"first":7}}}',
        b'{"dragoman":99,"kind":"Windows","value":[]}',
        b'{"dragoman":2,"kind":"Windows","value":[{"branch":0,"cut":{},"more":1}]}',
        b'{"dragoman":2,"kind":"Windows","value":7}',
        Message.user("x").to_json(),
        written(0, Cut(first=messages[70].id, ratio=1e400)),
        written(0, Cut(first=messages[70].id, ratio=-1.0)),
        written(0, Cut(first=messages[70].id, left_out=-1)),
        written(side.number, Cut(first=messages[70].id)),
        written(0, Cut(first=aside.id)),
        written(0, Cut(first="msg_unknown")),
    ):
        await storage.keep_windows(ONE, window)
        fresh = await ChatHistory.open(ONE, storage, SMALL)
        assert said(await fresh.window()) == whole
    await storage.keep_windows(ONE, written(0, Cut(first=messages[79].id, kept=(aside.id,))))
    fresh = await ChatHistory.open(ONE, storage, SMALL)
    assert "aside" not in said(await fresh.window())


async def test_a_cut_made_before_the_first_save_is_stored() -> None:
    """The summary is requested once, and the cut doesn't move back."""
    asked: list[int] = []

    def sum_up(messages: Messages, _before: str) -> str:
        asked.append(len(messages))
        return "They talked."

    config = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, autosave=False,
        strategy=Summarise(sum_up, max_tokens=100),
    )  # fmt: skip
    storage = MemoryStorage()
    history = await filled(storage, config=config)
    before = await history.window()
    calls = len(asked)
    await history.save()
    after = await history.window()
    assert all(map(Message.identical, after, before))
    fresh = await ChatHistory.open(ONE, storage, config)
    assert all(map(Message.identical, await fresh.window(), before))
    assert len(asked) == calls


async def test_two_histories_that_cut_at_once_both_have_a_window(backend: Backend) -> None:
    """They agree on it from then on."""
    async with backend.opened() as storage:
        one = await filled(storage)
        two = await ChatHistory.open(ONE, storage, SMALL)
        await asyncio.gather(one.window(), two.window(600))
        assert said(await one.window()) == said(await two.window())


async def test_a_session_deleted_meanwhile_breaks_no_window() -> None:
    """There is nothing to store the cut with."""

    class Vanishing(MemoryStorage):
        async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
            await self.delete(identity)
            await super().keep_windows(identity, windows)

    history = await filled(Vanishing())
    assert said(await history.window())[-1] == "answer 39"


async def test_a_turn_with_pending_results_is_kept_whole() -> None:
    """The question, the calls, and the results so far."""
    history = await filled(MemoryStorage())
    calls = [ToolCall.create(f"call_{n}", "weather", {"city": "Mostar"}) for n in range(2)]
    asked = Message.user("The weather? " + "word " * 100)
    await history.extend([asked, Message.assistant(tool_calls=calls)])
    await history.add(Message.tool(ToolResult.success("call_0", "sunny", tool_name="weather")))
    window = await history.window(500)
    assert [m.kind for m in window][-3:] == ["user", "tool_call", "tool_result"]


@pytest.mark.parametrize("autosave", [True, False])
async def test_delete_truncated_removes_only_saved_messages(autosave: bool) -> None:
    """Unsaved changes come first; two concurrent removals don't conflict."""
    config = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, delete_truncated=True, autosave=autosave
    )
    storage = MemoryStorage()
    one = await filled(storage, config=config)
    two = await ChatHistory.open(ONE, storage, config)
    await one.save()
    kept = await one.count()
    assert kept < 81
    await one.extend([m for n in range(40, 60) for m in turn(n)])
    await two.extend([m for n in range(60, 80) for m in turn(n)])
    await asyncio.gather(one.save(), two.save())
    assert said(await one.messages())[-1] in {"answer 59", "answer 79"}
    assert await one.count() < kept + 80
    assert said(await one.window())[0] == "Be brief."


class Counting(MemoryStorage):
    """Counts the rows that are read."""

    read = 0

    async def rows(self, *arguments: Any, **options: Any) -> list[Row]:
        """Count that many rows."""
        found = await super().rows(*arguments, **options)
        self.read += len(found)
        return found

    async def row(self, *arguments: Any, **options: Any) -> Row | None:
        """Count one row."""
        self.read += 1
        return await super().row(*arguments, **options)


async def test_a_long_history_is_not_loaded_to_continue_it() -> None:
    """Adding reads nothing, `tail` only the end, and a window that was cut only its messages."""
    storage = Counting()
    await filled(storage, 10_000)
    history = await ChatHistory.open(ONE, storage, SMALL)
    await history.add("one more")
    assert storage.read == 0
    assert said(await history.tail(2)) == ["answer 9999", "one more"]
    assert storage.read == 2
    window = await history.window()
    assert storage.read > 20_000  # it had not been cut yet
    storage.read = 0
    fresh = await ChatHistory.open(ONE, storage, SMALL)
    assert all(map(Message.identical, await fresh.window(), window))
    assert storage.read <= len(window) + 2
    storage.read = 0
    await fresh.extend(turn(10_000))
    await fresh.save()
    assert storage.read < 100
    assert len(await fresh.messages()) == 20_004


async def test_the_end_of_a_history_with_unsaved_changes_is_read_alone() -> None:
    """With `autosave=False`, removed messages are taken into account."""
    storage = Counting()
    await filled(storage, 1_000)
    history = await ChatHistory.open(ONE, storage, LAZY)
    *_, last = await history.tail(1)
    await history.remove(last.id)
    await history.add("one more")
    storage.read = 0
    assert said(await history.tail(2)) == ["question 999", "one more"]
    assert storage.read == 3
