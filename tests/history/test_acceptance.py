"""Seed 001's own tests of its chat history, and items 22 to 28 of the acceptance list."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import (
    ChatHistory,
    ChatHistoryConfig,
    Message,
    Messages,
    Role,
    SessionIdentity,
    ToolCall,
    ToolResult,
    Usage,
)
from dragoman.errors import InvalidInputError, NotFound, StoreError
from dragoman.history import MemoryStorage
from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.protocol import Appended, Entry, Fork, Session
from dragoman.history.truncation import Summarise, notes
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="agent", chat="chat")
LONG = Message.assistant("Response", metadata={"usage": {"total_tokens": 1500}})


def texts(messages: Messages) -> list[str]:
    """The texts of these messages."""
    return [message.text for message in messages]


# --- seed 001, `ChatHistoryStorageTest`


async def test_seed_001_returns_messages_of_their_kind(backend: Backend) -> None:
    """`ChatHistoryStorage returns MessageArray from getMessages`."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add(Message.user("Hello"))
        messages = await history.messages()
        assert isinstance(messages, Messages)
        assert messages[0].role is Role.USER


@pytest.mark.parametrize("is_opened", [False, True])
async def test_seed_001_the_config_may_be_an_array(is_opened: bool) -> None:
    """`ChatHistoryConfig|array $config`: settings as a dict, which are checked."""
    given = {"context_window": 1000, "reserved_for_completion": 200, "store_meta": False}
    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, given) if is_opened else (
        ChatHistory(ONE, storage, given)
    )  # fmt: skip
    assert (history.config.limit, history.config.store_meta) == (800, False)
    assert ChatHistory.open_sync(ONE, storage, given).config == history.config
    refused: list[Any] = [{"window": 5}, {"context_window": "5"}, [], "x", 5]
    for wrong in refused:
        with pytest.raises(InvalidInputError):
            ChatHistory(ONE, storage, wrong)


async def test_seed_001_calls_hooks(backend: Backend) -> None:
    """`ChatHistoryStorage calls hooks`."""
    called: list[str] = []
    config = ChatHistoryConfig(
        on_before_save=lambda _: called.append("before_save"),
        on_after_load=lambda _: called.append("after_load"),
    )
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        await history.add(Message.user("Hello"))
        await history.save()
        assert called == ["before_save"]
        await (await ChatHistory.open(ONE, storage, config)).messages()
        assert called == ["before_save", "after_load"]


@pytest.mark.parametrize("autosave", [True, False])
async def test_seed_001_truncates_when_the_window_is_exceeded(
    backend: Backend, autosave: bool
) -> None:
    """`ChatHistoryStorage truncates when exceeding context window`."""
    config = ChatHistoryConfig(
        context_window=1000, reserved_for_completion=200, delete_truncated=True, autosave=autosave
    )
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        for message in (Message.system("System prompt"), Message.user("Hello"), LONG):
            await history.add(message)
        await history.save()
        assert await history.count() < 3
        assert (await history.messages())[0].kind == "system"


async def test_seed_001_uses_a_truncation_callback(backend: Backend) -> None:
    """`ChatHistoryStorage uses custom truncation callback`, which returns nothing there."""
    called: list[tuple[Any, ...]] = []
    config = ChatHistoryConfig(
        context_window=1000, truncation_callback=lambda *given: called.append(given)
    )
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        await history.extend([Message.user("Hello"), LONG])
        await history.save()
    assert called
    messages, tokens, given = called[0]
    assert (texts(messages), tokens >= 1500, given) == (["Hello", "Response"], True, config)


# --- acceptance


EVERY_KIND = (
    Message.system("s"),
    Message.developer("d"),
    Message.user("u"),
    Message.assistant("a"),
    Message.assistant(tool_calls=[ToolCall.create("c1", "f", {})]),
    Message.tool(ToolResult.success("c1", "r", tool_name="f")),
)


async def test_acceptance_22_extras_survive_a_reload_of_every_kind(backend: Backend) -> None:
    """Extras of the message and of its parts."""
    kept = {"openai-chat": {"seen": [1, None]}}
    given = [message.replace(extras=kept) for message in EVERY_KIND]
    given = [m.replace(parts=tuple(p.replace(extras=kept) for p in m.parts)) for m in given]
    async with backend.opened() as storage:
        await (await ChatHistory.open(ONE, storage)).extend(given)
    async with backend.opened() as storage:
        loaded = await (await ChatHistory.open(ONE, storage)).messages()
        assert all(map(Message.identical, loaded, given))


class Failing(MemoryStorage):
    """Every call fails while it is down."""

    is_down = True

    async def session(self, identity: SessionIdentity) -> Session | None:
        """Fail while it is down."""
        self._fail()
        return await super().session(identity)

    async def append(self, *arguments: Any, **options: Any) -> Appended:
        """Fail while it is down."""
        self._fail()
        return await super().append(*arguments, **options)

    def _fail(self) -> None:
        if self.is_down:
            msg = "down"
            raise StoreError(msg)


async def test_acceptance_23_a_chain_reads_on_and_writes_to_all() -> None:
    """Absent sessions and failing members fall through; a failing write doesn't stop the others."""
    full = MemoryStorage()
    await (await ChatHistory.open(ONE, full)).add("there")
    absent = await ChatHistory.open(ONE, ChainStorage(MemoryStorage(), full))
    assert texts(await absent.messages()) == ["there"]
    failing = await ChatHistory.open(ONE, ChainStorage(Failing(), full))
    assert texts(await failing.messages()) == ["there"]
    primary, last = MemoryStorage(), MemoryStorage()
    history = await ChatHistory.open(ONE, ChainStorage(primary, Failing(), last))
    await history.add("to all")
    assert (await primary.count(ONE), await last.count(ONE)) == (1, 1)
    primary_only = await ChatHistory.open(ONE, ChainStorage(primary, full))
    assert texts(await primary_only.messages()) == ["to all"]


async def test_acceptance_24_scopes_do_not_interfere_and_a_clean_save_does_nothing(
    backend: Backend,
) -> None:
    """Two scopes on one store; the version tells of every write."""
    async with backend.opened() as storage:
        one = await ChatHistory.open(ONE.replace(scope="a"), storage)
        two = await ChatHistory.open(ONE.replace(scope="b"), storage)
        await one.add("one")
        await two.add("two")
        await two.clear()
        assert texts(await one.messages()) == ["one"]
        before = await storage.session(one.identity)
        await one.save()
        await one.save()
        assert await storage.session(one.identity) == before


@pytest.mark.parametrize("autosave", [True, False])
async def test_acceptance_25_metadata_only_if_wanted_usage_always(
    backend: Backend, autosave: bool
) -> None:
    """The stored metadata is what the history shows."""
    usage = Usage(input=3, output=4)
    said = Message.assistant("Hi", metadata={"mood": "good"}, usage=usage)
    async with backend.opened() as storage:
        for store_meta in (True, False):
            config = ChatHistoryConfig(store_meta=store_meta, autosave=autosave)
            identity = ONE.replace(scope=str(store_meta))
            history = await ChatHistory.open(identity, storage, config)
            await history.messages()
            added = await history.add(said)
            await history.save()
            there = (await (await ChatHistory.open(identity, storage)).messages())[0]
            assert dict(there.metadata) == ({"mood": "good"} if store_meta else {})
            assert there.usage == usage
            assert there.identical((await history.messages())[0])
            assert there.identical(added)


async def test_acceptance_26_a_failed_save_leaves_what_was_there(backend: Backend) -> None:
    """Load, change and save is lossless; corrupt data stays in place and is reported."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        first, second = await history.extend(["a", "b"])
        await history.save()
        await history.replace(first.id, "A")
        with pytest.raises(StoreError):
            await history.save(expected_version=99)
        assert texts(await (await ChatHistory.open(ONE, storage)).messages()) == ["a", "b"]
        assert texts(await history.messages()) == ["A", "b"]
        await history.save()
        loaded = await (await ChatHistory.open(ONE, storage)).messages()
        assert texts(loaded) == ["A", "b"]
        assert loaded[1].identical(second)
        if not backend.name.startswith("sealed"):  # which seals whatever it is given
            await storage.append(ONE, [Entry("broken", b"{}", 1.0)])
            await history.add("c")
            await history.save()
            assert texts(await history.messages()) == ["A", "b", "c"]
            assert len(history.damaged) == 1
            assert await storage.count(ONE) == 4


async def test_acceptance_27_a_cycle_of_parents_ends_and_a_fork_needs_a_message(
    backend: Backend,
) -> None:
    """An unknown id creates nothing."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add("a")
        before = await storage.session(ONE)
        with pytest.raises(NotFound):
            await history.fork("unknown")
        with pytest.raises(NotFound):
            await history.edit("unknown", "x")
        assert await storage.session(ONE) == before
    cyclic = MemoryStorage()
    forks = (Fork(1, 2, 0), Fork(2, 1, 0))
    await cyclic.restore(Session(ONE, 3, 3, 1.0, 1.0, active=2, forks=forks), [])
    history = await ChatHistory.open(ONE, cyclic)
    with pytest.raises(NotFound):
        await history.messages()
    await history.switch(0)
    assert texts(await history.messages()) == []


async def test_acceptance_28_truncation_keeps_calls_with_results_and_a_summary_may_fail() -> None:
    """It falls back to leaving turns out."""

    def fail(_messages: Messages, _before: str) -> str:
        raise ConnectionError

    config = ChatHistoryConfig(
        context_window=600, reserved_for_completion=100, strategy=Summarise(fail, max_tokens=50)
    )
    history = await ChatHistory.open(ONE, MemoryStorage(), config)
    for number in range(20):
        call = ToolCall.create(f"call_{number}", "weather", {"city": "Mostar"})
        await history.extend(
            [
                Message.user(f"Weather {number}? " + "word " * 20),
                Message.assistant(tool_calls=[call]),
                Message.tool(ToolResult.success(call.id, "sunny", tool_name="weather")),
                Message.assistant("Sunny."),
            ]
        )
        window = await history.window()
        calls = {c.id for m in window for c in m.tool_calls}
        results = {p.call_id for m in window for p in m.parts if isinstance(p, ToolResult)}
        assert calls == results
        assert window[0].role is Role.USER
    window = await history.window()
    assert notes.kind_of(window[0]) == "marker"
