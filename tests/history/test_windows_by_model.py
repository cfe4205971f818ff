"""A window is cut for one model and limit, and hides nothing from any other."""

from __future__ import annotations

import asyncio
import logging
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Message, Messages, Usage
from dragoman.errors import ConfigError, ContextTooSmall, StoreError
from dragoman.history import ChatHistory, ChatHistoryConfig, MemoryStorage, SessionIdentity, Window
from dragoman.history.remembered_cuts import MAX_CUTS, Key, StoredWindow, read
from dragoman.history.storage.protocol import Session, Storage
from dragoman.history.storage.shelf import Change
from dragoman.history.tokens import estimate
from dragoman.history.truncation import Cut, LastTurns, Summarise, notes
from dragoman.model import document
from dragoman.testing.conformance.stores.backends import Backend
from tests.history.truncation.histories import run

ONE = SessionIdentity(agent="guide", chat="7")
CONFIG = ChatHistoryConfig(reserved_for_completion=0)
SMALL = ChatHistoryConfig(context_window=900, reserved_for_completion=0)


def turn(number: int, words: int = 50) -> list[Message]:
    """A question and its answer."""
    asked = Message.user(f"question {number} " + "word " * words)
    return [asked, Message.assistant(f"answer {number}")]


async def filled(
    storage: Storage, turns: int = 40, config: ChatHistoryConfig = CONFIG
) -> ChatHistory:
    """A session with instructions and that many turns."""
    history = await ChatHistory.open(ONE, storage, config)
    await history.extend([Message.system("Be brief."), *(m for n in range(turns) for m in turn(n))])
    return history


def own(window: Messages) -> list[str]:
    """The ids of the history's own messages."""
    return [message.id for message in window if notes.kind_of(message) is None]


async def head(storage: Storage) -> Session:
    """The stored session."""
    found = await storage.session(ONE)
    assert found is not None
    return found


async def legacy(storage: MemoryStorage, cut: Cut) -> None:
    """The single cut of an earlier release, on the first branch."""
    cut.settle()
    raw = document.write("Window", StoredWindow(0, cut))
    await storage._made(
        ONE, None, None, lambda head: Change(msgspec.structs.replace(head, window=raw))
    )


class TestNothingIsHidden:
    """Requesting a small window changes no larger one."""

    async def test_a_small_window_hides_nothing_from_a_larger_one(self, backend: Backend) -> None:
        """Neither for another number, nor for another model, nor after reopening."""
        async with backend.opened() as storage:
            history = await filled(storage)
            assert len(await history.window(500)) < 20
            assert len(await history.window(60_000)) == 81
            assert len(await history.window("openai:gpt-4o")) == 81
            await history.to_wire("openai-chat", model="gpt-4")
        async with backend.opened() as storage:
            again = await ChatHistory.open(ONE, storage, CONFIG)
            assert len(await again.window(60_000)) == 81
            assert len(await again.window()) == 81
            assert len(await again.window(500)) < 20

    async def test_each_window_keeps_its_own_cut(self, backend: Backend) -> None:
        """Alternating models don't move each other's windows."""
        async with backend.opened() as storage:
            history = await filled(storage)
            sizes = (500, 900, 1_500)
            before = {size: await history.window(size) for size in sizes}
            for number in range(40, 42):
                await history.extend(turn(number, words=2))
                for size in sizes:
                    after = await history.window(size)
                    assert own(after)[: len(own(before[size]))] == own(before[size])
            fresh = await ChatHistory.open(ONE, storage, CONFIG)
            for size in sizes:
                assert own(await fresh.window(size)) == own(await history.window(size))

    async def test_two_models_of_one_size_have_two_cuts(self) -> None:
        """They are keyed by name."""

        class Model(msgspec.Struct):
            name: str
            context_window: int = 900

        storage = MemoryStorage()
        history = await filled(storage)
        for name in ("one", "two"):
            await history.window(Model(name))
        assert list(read(await head(storage))) == [Key(0, "one", 900), Key(0, "two", 900)]

    @pytest.mark.parametrize("name", ["x" * 100_000, "\ud800", "a\nb"])
    async def test_any_model_name_works(self, name: str) -> None:
        """However long, with any characters."""
        storage = MemoryStorage()
        history = await filled(storage, config=SMALL)
        await history.window(name)
        assert len((await head(storage)).windows or b"") < 10_000
        await history.window(10**30)

    async def test_eight_cuts_are_remembered(self, backend: Backend) -> None:
        """A ninth replaces the oldest."""
        async with backend.opened() as storage:
            history = await filled(storage)
            for size in range(500, 1_500, 50):
                await history.window(size)
            limits = [key.limit for key in read(await head(storage))]
            assert limits == list(range(1_500 - 50 * MAX_CUTS, 1_500, 50))
            assert len(history._state.live) == MAX_CUTS
            assert len(await history.window(500)) < 20

    async def test_a_summary_is_paid_for_once(self) -> None:
        """For the same branch, model and limit, also after other windows and reopening."""
        asked: list[int] = []

        def sum_up(messages: Messages, _before: str) -> str:
            asked.append(len(messages))
            return "They talked."

        config = ChatHistoryConfig(
            reserved_for_completion=0, strategy=Summarise(sum_up, max_tokens=100, batch=1_000)
        )
        storage = MemoryStorage()
        history = await filled(storage, config=config)
        first = await history.window(700)
        await history.window(1_200)
        assert len(asked) == 2
        again = await ChatHistory.open(ONE, storage, config)
        for each in (history, again):
            assert all(map(Message.identical, await each.window(700), first))
            await each.window(1_200)
            await each.window(60_000)
        await history.save()
        assert len(asked) == 2

    async def test_a_save_creates_no_unrequested_window(self) -> None:
        """With a named model, the window without one is not cut as well."""
        made: list[int] = []
        config = ChatHistoryConfig(
            context_window=900, reserved_for_completion=0,
            after_truncate=lambda messages, _: made.append(len(messages)),
        )  # fmt: skip
        history = await filled(MemoryStorage(), config=config)
        await history.window("somebody:unknown")
        await history.add("more")
        await history.save()
        assert len(made) == 1


class TestWhatIsLeftOut:
    """Omitted messages are reported."""

    async def test_a_window_says_what_it_omits(self, backend: Backend) -> None:
        """How many, and where; it is a sequence of messages like any other."""
        async with backend.opened() as storage:
            history = await filled(storage)
            window = await history.window(500)
            assert isinstance(window, Window)
            assert window.omitted == 81 - len(own(window))
            assert notes.kind_of(window[window.omitted_at]) == "marker"
            assert isinstance(window, Messages)
            assert type(window[1:]) is Messages
            assert type(window.append(Message.user("more"))) is Messages
            assert len(await history.window(500)) == len(window)
            copy = pickle.loads(pickle.dumps(window))  # noqa: S301 - our own
            assert copy == window
            assert (copy.omitted, copy.omitted_at) == (window.omitted, window.omitted_at)
            whole = await history.window(60_000)
            assert (whole.omitted, whole.omitted_at) == (0, 0)

    async def test_what_is_removed_is_not_left_out(self, backend: Backend) -> None:
        """Omitted messages that are removed are no longer counted, also after reopening."""
        async with backend.opened() as storage:
            history = await filled(storage)
            omitted = (await history.window(900)).omitted
            await history.remove((await history.messages())[3].id)
            for each in (history, await ChatHistory.open(ONE, storage, CONFIG)):
                window = await each.window(900)
                assert window.omitted == omitted - 1
                assert f"({omitted - 1} earlier" in window[window.omitted_at].text

    async def test_added_messages_do_not_count_as_omitted(self) -> None:
        """The number stays, while the window grows; and goes up when it is cut again."""
        history = await filled(MemoryStorage())
        window = await history.window(900)
        for number in range(40, 60):
            await history.extend(turn(number))
            before, window = window, await history.window(900)
            assert window.omitted == 81 + 2 * (number - 39) - len(own(window))
            assert window.omitted >= before.omitted

    @pytest.mark.parametrize(
        "to", ["anthropic", "groq", "openai:some-model", dragoman.dialect("gemini")]
    )
    async def test_a_request_has_it_among_its_repairs(self, to: Any) -> None:
        """As the first one; a complete request has none."""
        history = await filled(MemoryStorage(), config=SMALL)
        window = await history.window()
        encoded = await history.to_wire(to, model="some-model")
        assert encoded.repairs[0].rule == "window"
        assert encoded.repairs[0].action == "dropped"
        assert encoded.repairs[0].path == f"messages[{window.omitted_at}]"
        assert encoded.repairs[0].reason.startswith(f"{window.omitted} earlier messages")
        whole = await (await ChatHistory.open(ONE, history.storage, CONFIG)).to_wire(to)
        assert all(repair.rule != "window" for repair in whole.repairs)

    async def test_a_request_may_name_a_provider_and_a_model(self) -> None:
        """As in `translate`: the model's window, and the host's quirks."""
        history = await filled(MemoryStorage())
        encoded = await history.to_wire("anthropic:claude-sonnet-4-5")
        assert encoded.body["model"] == "claude-sonnet-4-5"
        groq = await history.to_wire("groq:llama-3.3-70b-versatile", max_tokens=10)
        assert groq.body["model"] == "llama-3.3-70b-versatile"
        assert groq.body["messages"][0]["role"] == "system"
        named = await history.to_wire("groq", model="llama-3.3-70b-versatile", max_tokens=10)
        assert named.body == groq.body
        for name in ("nobody:unknown", "nobody", ":m", "groq:"):
            with pytest.raises(ConfigError):
                await history.to_wire(name)

    def test_the_blocking_history_does_too(self) -> None:
        """Both of the above."""
        with ChatHistory.open_sync(ONE, "memory:", CONFIG) as history:
            history.extend([message for number in range(40) for message in turn(number)])
            assert history.window(500).omitted > 0
            assert history.window(60_000).omitted == 0
            assert history.to_wire("anthropic:claude-sonnet-4-5").body["model"]


class TestWhatEarlierReleasesStored:
    """The single cut of earlier releases."""

    async def test_it_hides_no_stored_message(self) -> None:
        """A larger window shows all of them."""
        storage = MemoryStorage()
        history = await filled(storage)
        messages = await history.messages()
        note = notes.marker(70)
        await legacy(storage, Cut(messages[71].id, (messages[0].id,), (note,), 70))
        fresh = await ChatHistory.open(ONE, storage, CONFIG)
        window = await fresh.window(60_000)
        assert (len(window), window.omitted) == (81, 0)

    @pytest.mark.parametrize("left", [71, 51])
    async def test_its_notes_stay_if_messages_were_deleted(self, left: int) -> None:
        """If all or some omitted messages were: the summary is all that remains of them."""
        storage = MemoryStorage()
        history = await filled(storage)
        messages = await history.messages()
        note = notes.summary("They talked.", 70)
        await legacy(storage, Cut(messages[71].id, (messages[0].id,), (note,), 70))
        await history._keeper.rewrite({}, [message.id for message in messages[1:left]], None)
        fresh = await ChatHistory.open(ONE, storage, CONFIG)
        for size in (60_000, 700, 60_000):
            window = await fresh.window(size)
            assert any("They talked." in message.text for message in window)
        assert own(window) == [messages[0].id, *(m.id for m in messages[left:])]
        assert window.omitted == left - 1

    async def test_damaged_windows_are_ignored_with_a_warning(
        self, backend: Backend, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Those of a later release, and invalid ones; the warning is logged once."""
        async with backend.opened() as storage:
            history = await filled(storage)
            window = own(await history.window(500))
            for raw in (b'{"dragoman":99,"kind":"Windows","value":[]}', b'{"half":[1]}'):
                await storage.keep_windows(ONE, raw)
                with caplog.at_level(logging.WARNING, "dragoman.history"):
                    caplog.clear()
                    fresh = await ChatHistory.open(ONE, storage, CONFIG)
                    assert len(await fresh.window(60_000)) == 81
                    assert len(await fresh.window(60_000)) == 81
                assert "half" not in caplog.text
                assert len([r for r in caplog.records if "will be recomputed" in r.message]) == 1
                assert own(await fresh.window(500)) == window


class TestDeleted:
    """With `delete_truncated`, the notes are in every window."""

    CONFIG = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, delete_truncated=True,
        strategy=Summarise(lambda _messages, _before: "They talked.", max_tokens=50),
    )  # fmt: skip

    async def test_a_summary_of_deleted_messages_is_in_every_window(self, backend: Backend) -> None:
        """For other models and limits, now and later, also with other cuts."""
        async with backend.opened() as storage:
            history = await filled(storage, config=self.CONFIG)
            await history.window("somebody:unknown")
            await history.save()
            stored = await history.count()
            assert stored < 40
            fresh = await ChatHistory.open(ONE, storage, CONFIG)
            for size in (60_000, *range(700, 1_200, 50)):
                window = await fresh.window(size)
                assert any("They talked." in message.text for message in window)
            window = await fresh.window(60_000)
            assert any("They talked." in message.text for message in window)
            assert len(own(window)) == stored
            assert window.omitted == 81 - stored

    async def test_it_is_in_the_windows_of_branches(self, backend: Backend) -> None:
        """A branch that starts after the deleted messages is as much without them."""
        async with backend.opened() as storage:
            history = await filled(storage, config=self.CONFIG)
            await history.save()
            omitted = (await history.window()).omitted
            messages = await history.messages()
            for at in (6, 0):
                await history.fork(messages[at].id)
                await history.add("on the side")
                window = await history.window(60_000)
                assert [m.text for m in window if "They talked." in m.text]
                assert window.omitted == omitted

    async def test_it_stays_if_the_message_after_it_is_removed(self, backend: Backend) -> None:
        """The summary and the number of messages are not lost with it."""
        async with backend.opened() as storage:
            history = await filled(storage, config=self.CONFIG)
            await history.save()
            window = await history.window()
            for _ in range(3):
                await history.remove(own(window)[1])
                before, window = window, await history.window(60_000)
                assert window.omitted == before.omitted
                assert "They talked." in window[window.omitted_at].text
                assert own(window)[0] == own(before)[0]

    async def test_omitted_messages_are_deleted_at_the_next_save(self) -> None:
        """Though the cut is where it was."""
        history = await filled(MemoryStorage(), config=self.CONFIG)
        window = await history.window()
        assert await history.count() == 81
        await history.save()
        assert await history.count() == len(own(window))
        assert own(await history.window()) == own(window)


class TestReports:
    """Reports are about the windows that were sent, and messages don't tell which these were."""

    async def test_a_fork_is_not_sent_whole(self) -> None:
        """Reports of windows that were cut are not taken for those of the whole history."""
        history = await ChatHistory.open(ONE, MemoryStorage(), SMALL)
        for number in range(40):
            await history.add(turn(number)[0])
            sent = sum(map(estimate, await history.window()))
            await history.add(Message.assistant("Yes.", usage=Usage(sent, 3)))
        await history.fork((await history.messages())[-1].id)
        assert sum(map(estimate, await history.window())) <= 900


class TestStoreThatFails:
    """A window is a read: it does not fail because its cut can't be stored."""

    class Full(MemoryStorage):
        """Accepts no windows for now."""

        is_full = True

        async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
            """Fails as long as it is full."""
            if self.is_full:
                msg = "the disk is full"
                raise StoreError(msg)
            await super().keep_windows(identity, windows)

    async def test_the_cut_is_stored_later(self, caplog: pytest.LogCaptureFixture) -> None:
        """The window is sent, a warning says what failed, and the next save stores the cut."""
        storage = self.Full()
        history = await filled(storage)
        window = await history.window(900)
        assert window.omitted > 0
        assert "the disk is full" in caplog.text
        assert all(map(Message.identical, await history.window(900), window))
        await history.save()
        assert not read(await head(storage))
        storage.is_full = False
        await history.save()
        assert list(read(await head(storage))) == [Key(0, None, 900)]
        assert not history._state.cuts
        fresh = await ChatHistory.open(ONE, storage, CONFIG)
        assert all(map(Message.identical, await fresh.window(900), window))

    async def test_nothing_is_deleted_unless_its_notes_are_stored(self) -> None:
        """The summary would be lost with the messages."""
        storage = self.Full()
        history = await filled(storage, config=TestDeleted.CONFIG)
        with pytest.raises(StoreError, match="full"):
            await history.save()
        assert await history.count() == 81


class TestTogether:
    """Branches, pins, unsaved changes, hooks and concurrency."""

    async def test_each_branch_has_its_own_cuts(self) -> None:
        """A fork starts without a cut; the old branch keeps its own."""
        history = await filled(MemoryStorage())
        window = own(await history.window(500))
        messages = await history.messages()
        await history.fork(messages[-1].id)
        assert len(await history.window(60_000)) == 81
        await history.add("on the side")
        assert own(await history.window(500))[-1] != window[-1]
        await history.switch(0)
        assert own(await history.window(500)) == window

    async def test_pinned_messages_are_in_all_windows(self, backend: Backend) -> None:
        """Whichever was cut before."""
        async with backend.opened() as storage:
            history = await filled(storage)
            for size in (500, 900):
                await history.window(size)
            old = (await history.messages())[3]
            await history.pin(old.id)
            fresh = await ChatHistory.open(ONE, storage, CONFIG)
            for size in (500, 900, 1_500):
                assert old.id in own(await history.window(size))
                assert old.id in own(await fresh.window(size))

    async def test_changed_messages_change_in_every_window(self) -> None:
        """Replaced, removed and cleared, here and elsewhere, without reading everything again."""
        storage = MemoryStorage()
        history = await filled(storage)
        other = await ChatHistory.open(ONE, storage, CONFIG)
        for size in (500, 60_000):
            last = (await history.window(size))[-1]
            await history.replace(last.id, Message.assistant(f"here {size}"))
            assert (await history.window(size))[-1].text == f"here {size}"
            await other.replace(last.id, Message.assistant(f"there {size}"))
            assert (await history.window(size))[-1].text == f"there {size}"
            await history.remove(last.id)
            assert last.id not in own(await history.window(size))
            await other.add("one more")
            assert (await history.window(size))[-1].text == "one more"
        await other.delete()
        assert not await history.window(500)
        await history.add("anew")
        assert [m.text for m in await history.window(500)] == ["anew"]
        await history.clear()
        assert not await history.window(500)

    async def test_a_recreated_session_is_another_one(self) -> None:
        """Although its versions restart at the same number."""
        storage = MemoryStorage()
        history = await ChatHistory.open(ONE, storage, CONFIG)
        for number in range(3):
            await history.add(f"old {number}")
            await history.window()
        other = await ChatHistory.open(ONE, storage, CONFIG)
        await other.delete()
        for number in range(2):
            await other.add(f"new {number}")
        assert [m.text for m in await history.window()] == ["new 0", "new 1"]
        await other.add("new 2")
        assert [m.text for m in await history.window()] == ["new 0", "new 1", "new 2"]

    async def test_unsaved_changes_are_in_every_window(self) -> None:
        """With `autosave=False`, the cuts are stored with them."""
        config = ChatHistoryConfig(reserved_for_completion=0, autosave=False)
        storage = MemoryStorage()
        history = await filled(storage, config=config)
        small, large = own(await history.window(500)), own(await history.window(900))
        assert len(await history.window(60_000)) == 81
        assert await storage.session(ONE) is None
        await history.save()
        assert {key.limit for key in read(await head(storage))} >= {500, 900}
        fresh = await ChatHistory.open(ONE, storage, CONFIG)
        assert own(await fresh.window(500)) == small
        assert own(await fresh.window(900)) == large
        await history.clear()
        assert not await history.window(500)

    async def test_hooks_are_called_for_the_cut_of_each(self) -> None:
        """By the history that requests it; an unchanged window is no cut."""
        heard: list[str] = []
        history = await filled(MemoryStorage())
        twin = history.with_hooks(after_truncate=lambda *_: heard.append("twin"))
        await history.window(500)
        for size in (500, 500, 900, 900, 60_000):
            await twin.window(size)
        assert heard == ["twin"]

    async def test_concurrent_cuts_lose_nothing(self, backend: Backend) -> None:
        """Two processes that store cuts at the same time both have their windows."""
        async with backend.opened() as storage, backend.opened() as same:
            one = await filled(storage)
            two = await ChatHistory.open(ONE, same, CONFIG)
            if await two.count() == 0:
                pytest.skip("two histories in memory share nothing")
            expected = {size: own(await one.window(size)) for size in range(500, 1_500, 100)}
            await storage.keep_windows(ONE, None)
            found = await asyncio.gather(
                *(each.window(size) for size in expected for each in (one, two))
            )
            assert [own(window) for window in found[::2]] == [*expected.values()]
            assert [own(window) for window in found[1::2]] == [*expected.values()]

    async def test_a_strategy_that_does_more_than_fit_is_always_applied(self) -> None:
        """`LastTurns` keeps that many turns, whatever was cut for others."""
        config = ChatHistoryConfig(strategy=LastTurns(3, marker=False), reserved_for_completion=0)
        history = await filled(MemoryStorage(), config=config)
        for number in range(40, 44):
            for size in (5_000, 60_000, 900):
                assert len(await history.window(size)) == 7
            await history.extend(turn(number))


sizes = st.sampled_from([120, 200, 210, 300, 330, 500, 1_000])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 30)),
        st.tuples(st.just("window"), sizes),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    min_size=5,
    max_size=60,
)


async def _asked(history: ChatHistory, size: int) -> list[str] | None:
    try:
        return own(await history.window(size))
    except ContextTooSmall:
        return None


async def _holds(taken: list[tuple[str, int]]) -> None:
    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, CONFIG)
    before: dict[int, list[str]] = {}
    for number, (step, value) in enumerate(taken):
        if step == "add":
            await history.extend(turn(number, value))
        elif step == "reopen":
            history = await ChatHistory.open(ONE, storage, CONFIG)
        else:
            window = await _asked(history, value)
            bare = await ChatHistory.open(ONE, storage, CONFIG)
            if window is None:
                continue
            everything = [message.id for message in await bare.messages()]
            assert window == everything[len(everything) - len(window) :]
            assert window == await _asked(history, value)
            assert window == await _asked(bare, value)
            earlier = before.get(value)
            if earlier is not None and window[: len(earlier)] != earlier:
                assert window[0] != earlier[0]  # it had to move
                fits = await _asked(await _copy(bare), value)
                assert fits is not None
                assert len(window) >= len(fits)
            before[value] = window


async def _copy(history: ChatHistory) -> ChatHistory:
    """The same messages without cuts."""
    copy = await ChatHistory.open(ONE, MemoryStorage(), CONFIG)
    await copy.extend(await history.messages())
    return copy


@given(taken=steps)
def test_any_sequence_of_windows(taken: list[tuple[str, int]]) -> None:
    """A window moves only when it must, and shows no less than a new one."""
    run(_holds(taken))
