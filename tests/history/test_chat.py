"""A chat history: what is added can be read back, on every backend, with other writers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Image, Message, Messages, Refusal, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.errors import Conflict, InvalidInputError, NotFound, StoreError
from dragoman.history import ChatHistory, ChatHistoryConfig, MemoryStorage, SessionIdentity
from dragoman.history.storage.protocol import Appended, Entry
from dragoman.model import Origin
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="guide", chat="7", user="Ana")
CALL = ToolCall.create("call_1", "weather", {"city": "Mostar"})

EVERY_KIND = (
    Message.system("Be brief."),
    Message.developer("Metric units."),
    Message.user("What is this?", Image.from_url("https://example.com/bridge.png")),
    Message.assistant(
        Thinking("A bridge …", signature="sig"),
        Text("Let me look."),
        CALL,
        origin=Origin(dialect="anthropic", provider="anthropic", model="claude-x"),
        usage=Usage(input=10, output=4),
    ),
    Message.tool(ToolResult.success("call_1", "sunny", tool_name="weather")),
    Message.assistant(Refusal("I would rather not.")),
    Message.user("").with_extra("seen", value=True).with_metadata("mood", "good"),
)


def texts(messages: Messages) -> list[str]:
    """The texts of these messages."""
    return [message.text for message in messages]


async def test_every_kind_of_message_is_restored(backend: Backend) -> None:
    """With ids, metadata, extras, usage and origin."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.extend(EVERY_KIND)
    async with backend.opened() as storage:
        loaded = await (await ChatHistory.open(ONE, storage)).messages()
        assert len(loaded) == len(EVERY_KIND)
        assert all(map(Message.identical, loaded, EVERY_KIND))
        assert [message.kind for message in loaded] == [message.kind for message in EVERY_KIND]


async def test_the_last_messages_and_single_ones_can_be_read(backend: Backend) -> None:
    """By count and by id."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        assert await history.last() is None
        first, *_ = await history.extend(["a", "b", "c"])
        assert texts(await history.tail(2)) == ["b", "c"]
        assert texts(await history.tail(9)) == ["a", "b", "c"]
        assert texts(await history.tail(0)) == []
        last = await history.last()
        assert last is not None
        assert last.text == "c"
        assert (await history[first.id]).text == "a"
        assert await history.count() == 3
        with pytest.raises(NotFound):
            await history["msg_unknown"]


async def test_two_histories_of_one_session_see_each_other(backend: Backend) -> None:
    """What one adds, replaces or removes, the other reads."""
    async with backend.opened() as storage:
        one, two = await ChatHistory.open(ONE, storage), await ChatHistory.open(ONE, storage)
        added = await one.add("a")
        assert texts(await two.messages()) == ["a"]
        await two.add("b")
        assert texts(await one.messages()) == ["a", "b"]
        await two.replace(added.id, "A")
        assert texts(await one.messages()) == ["A", "b"]
        await one.remove(added.id)
        assert texts(await two.messages()) == ["b"]


async def test_adding_the_same_message_again_stores_it_twice(backend: Backend) -> None:
    """The second gets a new id, in one call or two."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        message = Message.user("Hello?")
        await history.add(message)
        again = await history.add(message)
        assert again.id != message.id
        await history.extend([message, message])
        loaded = await history.messages()
        assert texts(loaded) == ["Hello?"] * 4
        assert len({each.id for each in loaded}) == 4


class Failing(MemoryStorage):
    """Stores, and then raises."""

    async def append(self, *arguments: Any, **options: Any) -> Appended:
        """Store, and raise."""
        await super().append(*arguments, **options)
        msg = "the connection was lost"
        raise StoreError(msg)


async def test_a_message_of_unknown_outcome_is_not_stored_twice() -> None:
    """After such a failure, the same message can be added again."""
    storage = Failing()
    history = await ChatHistory.open(ONE, storage)
    message = Message.user("Once.")
    with pytest.raises(StoreError):
        await history.add(message)
    assert (await history.add(message)).id == message.id
    assert texts(await history.messages()) == ["Once."]


async def test_an_expected_version_excludes_other_writers(backend: Backend) -> None:
    """A conflict has both versions, and changes nothing."""
    async with backend.opened() as storage:
        one, two = await ChatHistory.open(ONE, storage), await ChatHistory.open(ONE, storage)
        await one.add("a", expected_version=0)
        await two.add("b", expected_version=1)
        with pytest.raises(Conflict) as raised:
            await one.add("c", expected_version=one.version)
        assert (raised.value.expected, raised.value.actual) == (1, 2)
        assert texts(await one.messages()) == ["a", "b"]
        assert one.version == 2


async def test_cleared_is_not_absent(backend: Backend) -> None:
    """A cleared session exists and is empty; a deleted one is gone."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add("a")
        await history.clear()
        assert await history.messages() == Messages()
        assert await storage.session(ONE) is not None
        await history.add("b")
        assert texts(await history.messages()) == ["b"]
        assert await history.delete()
        assert await storage.session(ONE) is None
        assert not await history.delete()


async def test_without_autosave_nothing_is_written_until_save(backend: Backend) -> None:
    """Other readers don't see additions, replacements and removals before."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        other = await ChatHistory.open(ONE, storage)
        kept, replaced, removed = await other.extend(["a", "b", "c"])
        added = await history.add("d")
        await history.replace(replaced.id, "B")
        await history.remove(removed.id)
        assert bool(history.is_dirty)
        assert texts(await history.messages()) == ["a", "B", "d"]
        assert texts(await history.tail(2)) == ["B", "d"]
        assert (await history[added.id]).text == "d"
        assert texts(await other.messages()) == ["a", "b", "c"]
        await history.save()
        assert not history.is_dirty
        assert texts(await other.messages()) == ["a", "B", "d"]
        assert (await other[kept.id]).text == "a"


async def test_without_autosave_a_cleared_history_starts_over(backend: Backend) -> None:
    """It has only messages added after clearing."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        await history.add("a")
        await history.save()
        await history.clear()
        await history.add("b")
        assert texts(await history.messages()) == ["b"]
        await history.save()
        assert texts(await (await ChatHistory.open(ONE, storage)).messages()) == ["b"]


class Counting(MemoryStorage):
    """Counts writes."""

    writes = 0

    async def append(self, *arguments: Any, **options: Any) -> Appended:
        """Count one."""
        self.writes += 1
        return await super().append(*arguments, **options)

    async def rewrite(self, *arguments: Any, **options: Any) -> int:
        """Count one."""
        self.writes += 1
        return await super().rewrite(*arguments, **options)


async def test_a_clean_save_does_nothing() -> None:
    """It calls neither the store nor the hooks."""
    calls: list[str] = []
    config = ChatHistoryConfig(autosave=False, on_before_save=lambda _: calls.append("save"))
    storage = Counting()
    history = await ChatHistory.open(ONE, storage, config)
    await history.add("a")
    await history.save()
    await history.save()
    assert (storage.writes, calls) == (1, ["save"])


async def test_hooks_are_called_in_order_and_get_the_message() -> None:
    """Sync and async ones, around adding, saving and loading."""
    calls: list[tuple[str, str]] = []

    async def after_add(message: Message, history: ChatHistory) -> None:
        calls.append(("after_add", message.text))
        assert texts(await history.tail(1)) == [message.text]

    config = ChatHistoryConfig(
        on_before_add=lambda message, _: calls.append(("before_add", message.text)),
        on_after_add=after_add,
        on_before_save=lambda _: calls.append(("before_save", "")),
        on_after_save=lambda _: calls.append(("after_save", "")),
        on_before_load=lambda _: calls.append(("before_load", "")),
        on_after_load=lambda _: calls.append(("after_load", "")),
    )
    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, config)
    await history.add("a")
    assert calls == [
        ("before_add", "a"),
        ("before_save", ""),
        ("after_save", ""),
        ("after_add", "a"),
    ]
    calls.clear()
    fresh = await ChatHistory.open(ONE, storage, config)
    await fresh.messages()
    await fresh.messages()
    assert calls == [("before_load", ""), ("after_load", "")]


@pytest.mark.parametrize("hook", ["on_before_add", "on_before_save"])
@pytest.mark.parametrize("autosave", [True, False])
async def test_a_veto_of_a_hook_leaves_no_trace(hook: str, autosave: bool) -> None:
    """Its exception reaches the caller unchanged."""

    def veto(*_: Any) -> None:
        msg = "no"
        raise PermissionError(msg)

    storage = MemoryStorage()
    config = ChatHistoryConfig.from_dict({hook: veto, "autosave": autosave})
    history = await ChatHistory.open(ONE, storage, config)

    async def add_and_save() -> None:
        await history.add("a")
        await history.save()

    with pytest.raises(PermissionError):
        await add_and_save()
    assert await storage.count(ONE) == 0


async def test_a_failing_after_hook_undoes_and_duplicates_nothing() -> None:
    """The message is stored; adding it again after the error changes nothing."""

    def fail(*_: Any) -> None:
        msg = "late"
        raise PermissionError(msg)

    config = ChatHistoryConfig(on_after_add=fail)
    history = await ChatHistory.open(ONE, MemoryStorage(), config)
    message = Message.user("a")
    for _ in range(2):
        with pytest.raises(PermissionError):
            await history.add(message)
    assert texts(await history.messages()) == ["a"]


async def test_metadata_is_stored_if_wanted_and_usage_always(backend: Backend) -> None:
    """With `store_meta=False` only usage and the pin are kept."""
    config = ChatHistoryConfig(store_meta=False)
    said = Message.assistant("Hi", metadata={"usage": {"total_tokens": 12}, "mood": "good"})
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        added = await history.add(said)
        await history.pin(added.id)
        loaded = await (await ChatHistory.open(ONE, storage)).message(added.id)
        assert dict(loaded.metadata) == {"pinned": True}
        assert loaded.usage is not None
        assert loaded.usage.total == 12
        assert (await history.usage()).total == 12


async def test_the_usage_of_a_session_is_summed(backend: Backend) -> None:
    """Without that of other sessions."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        other = await ChatHistory.open(SessionIdentity(agent="guide", chat="8"), storage)
        for usage in (Usage(input=10, output=2), Usage(input=20, cache_read=5, output=3)):
            await history.add(Message.assistant("x", usage=usage))
            await other.add(Message.assistant("x", usage=usage))
        total = await history.usage()
        assert (total.input, total.cache_read, total.output) == (30, 5, 5)


async def test_a_fork_continues_from_an_earlier_message(backend: Backend) -> None:
    """The old branch is kept, and both can be read."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        first, second, third = await history.extend(["a", "b", "c"])
        branch = await history.fork(first.id)
        assert (branch.forked_at, branch.leaf, branch.is_active) == (first.id, first.id, True)
        added = await history.add("B")
        assert texts(await history.messages()) == ["a", "B"]
        assert texts(await history.tail(9)) == ["a", "B"]
        assert texts(await history.path(third.id)) == ["a", "b", "c"]
        assert texts(await history.path(second.id)) == ["a", "b"]
        main, side = await history.branches()
        assert (main.leaf, side.leaf) == (third.id, added.id)
        assert (main.forked_at, side.forked_at) == (None, first.id)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        assert texts(await history.messages()) == ["a", "B"]
        await history.switch(main)
        await history.add("d")
        assert texts(await history.messages()) == ["a", "b", "c", "d"]
        assert texts(await history.path(added.id)) == ["a", "B"]


async def test_an_edit_creates_a_branch_and_keeps_the_old_one(backend: Backend) -> None:
    """Branches of branches too, even from the first message."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        first, second = await history.extend(["a", "b"])
        await history.edit(second.id, "B")
        deeper = await history.add("c")
        await history.edit(deeper.id, "C")
        assert texts(await history.messages()) == ["a", "B", "C"]
        await history.edit(first.id, "A")
        assert texts(await history.messages()) == ["A"]
        assert texts(await history.path(deeper.id)) == ["a", "B", "c"]
        assert texts(await history.path(second.id)) == ["a", "b"]
        assert len(await history.branches()) == 4
        assert await history.count() == 1


async def test_forking_at_an_unknown_message_creates_nothing(backend: Backend) -> None:
    """Nor does switching to an unknown branch."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add("a")
        with pytest.raises(NotFound):
            await history.fork("msg_unknown")
        with pytest.raises(NotFound):
            await history.switch(7)
        assert len(await history.branches()) == 1
        assert texts(await history.messages()) == ["a"]


async def test_a_damaged_message_is_reported_and_the_rest_loads(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """With its position and without its content; it stays in place."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add("a")
        if backend.name.startswith("sealed"):
            pytest.skip("a sealed store seals whatever it is given")
        broken = b'{"dragoman":1,"kind":"Message","value":{"secret":1}}'
        await storage.append(ONE, [Entry("msg_broken", broken, 1.0)])
        await history.add("b")
        assert texts(await history.messages()) == ["a", "b"]
        assert [each.seq for each in history.damaged] == [2]
        assert ONE.digest in history.damaged[0].where
        assert "secret" not in caplog.text + history.damaged[0].reason
        row = await storage.row(ONE, "msg_broken")
        assert row is not None
        assert row.body == broken


async def test_many_tasks_may_use_one_history(backend: Backend) -> None:
    """Each addition is stored once, in the order of its number."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await asyncio.gather(*(history.add(f"m{n}") for n in range(40)))
        assert sorted(texts(await history.messages())) == sorted(f"m{n}" for n in range(40))
        assert history.version == 40


async def test_two_scopes_share_a_store_without_interference(backend: Backend) -> None:
    """The scope is part of the key."""
    async with backend.opened() as storage:
        notes = await ChatHistory.open(ONE.replace(scope="notes"), storage)
        chat = await ChatHistory.open(ONE, storage)
        await notes.add("note")
        await chat.add("chat")
        await chat.clear()
        assert texts(await notes.messages()) == ["note"]


async def test_no_message_or_name_is_in_a_repr() -> None:
    """Neither content nor identities."""
    history = await ChatHistory.open(SessionIdentity(user="ana@example.com"), MemoryStorage())
    await history.add("secret")
    assert "secret" not in repr(history)
    assert "example" not in repr(history)


def test_an_invalid_config_is_explained() -> None:
    """Unknown settings, invalid token counts, hooks that can't be called."""
    for settings in (
        {"contextwindow": 1},
        {"context_window": "many"},
        {"context_window": 10, "reserved_for_completion": 11},
        {"autosave": "no"},
        {"strategy": "fit"},
        {"on_before_add": "log"},
    ):
        with pytest.raises(InvalidInputError):
            ChatHistoryConfig.from_dict(settings)


def test_the_defaults_are_seed_001s() -> None:
    """60,000 tokens, 1,000 of them for the answer."""
    config = ChatHistoryConfig.from_dict({})
    assert (config.context_window, config.reserved_for_completion) == (60_000, 1_000)
    assert config.exceeds_context_window(59_001)
    assert not config.exceeds_context_window(59_000)


async def test_an_uncertain_message_does_not_affect_others() -> None:
    """Added again together with another message, the other is stored as well."""

    class Once(Failing):
        calls = 0

        async def append(self, *arguments: Any, **options: Any) -> Appended:
            self.calls += 1
            if self.calls == 1:
                return await super().append(*arguments, **options)
            return await MemoryStorage.append(self, *arguments, **options)

    history = await ChatHistory.open(ONE, Once())
    message = Message.user("in doubt")
    with pytest.raises(StoreError):
        await history.add(message)
    await history.extend([message, "sure"])
    assert texts(await history.messages()) == ["in doubt", "sure"]


async def test_a_conflict_is_a_certain_outcome(backend: Backend) -> None:
    """A message that was rejected, then stored, and then added again is stored twice."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        message = Message.user("a")
        with pytest.raises(Conflict):
            await history.add(message, expected_version=7)
        await history.add(message)
        await history.add(message)
        assert texts(await history.messages()) == ["a", "a"]


async def test_many_messages_can_be_repeated(backend: Backend) -> None:
    """They get new ids, in the same order."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        given = [Message.user(f"{n}") for n in range(20)]
        await history.extend(given[::2])
        await history.extend(given)
        assert texts(await history.messages())[10:] == [f"{n}" for n in range(20)]


async def test_a_recreated_session_is_not_taken_for_the_old_one(backend: Backend) -> None:
    """Although it has reached the same version."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.extend(["a", "b"])
        assert texts(await history.messages()) == ["a", "b"]
        await storage.delete(ONE)
        await (await ChatHistory.open(ONE, storage)).extend(["x", "y"])
        assert texts(await history.messages()) == ["x", "y"]


async def test_messages_of_one_branch_are_not_on_another(backend: Backend) -> None:
    """When switching between them."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        first = await history.add("a")
        await history.fork(first.id)
        await history.switch(0)
        await history.messages()
        await history.switch(1)
        await history.add("side")
        await history.switch(0)
        assert texts(await history.messages()) == ["a"]
        await history.switch(1)
        assert texts(await history.messages()) == ["a", "side"]


@pytest.mark.parametrize("autosave", [True, False])
async def test_a_branch_that_was_cleared_falls_back_to_the_first(
    backend: Backend, autosave: bool
) -> None:
    """Unsaved messages can still be saved."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(autosave=autosave))
        first = await history.add("a")
        await history.fork(first.id)
        other = await ChatHistory.open(ONE, storage)
        if not autosave:
            await history.add("b")
        await other.clear()
        if autosave:
            await history.add("b")
        await history.save()
        assert history.branch == 0
        assert texts(await other.messages()) == ["b"]
        await history.switch(0)


async def test_a_message_removed_by_another_writer_does_not_stop_a_save(backend: Backend) -> None:
    """Removing it succeeds; replacing it fails with an error; the rest is saved."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        one, two, three = await history.extend(["a", "b", "c"])
        await history.save()
        other = await ChatHistory.open(ONE, storage)
        await history.remove(one.id)
        await history.add("d")
        await other.remove(one.id)
        await history.save()
        await history.replace(two.id, "B")
        await history.replace(three.id, "C")
        await history.add("e")
        await other.remove(two.id)
        with pytest.raises(NotFound, match="all other changes were saved"):
            await history.save()
        assert not history.is_dirty
        assert texts(await other.messages()) == ["C", "d", "e"]


async def test_without_autosave_a_message_can_be_repeated(backend: Backend) -> None:
    """In one call, in two, and after saving; the ids are the stored ones."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        message = Message.user("a")
        added = [*await history.extend([message, message]), await history.add(message)]
        await history.save()
        added.append(await history.add(message))
        await history.save()
        stored = await (await ChatHistory.open(ONE, storage)).messages()
        assert [m.id for m in stored] == [m.id for m in added]
        assert len({m.id for m in stored}) == 4


async def test_without_autosave_a_missing_message_can_not_be_changed(backend: Backend) -> None:
    """The error is raised at once, not at save."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)
        with pytest.raises(NotFound):
            await history.remove("msg_unknown")
        with pytest.raises(NotFound):
            await history.replace("msg_unknown", "x")
        assert not history.is_dirty


async def test_without_autosave_a_path_includes_unsaved_messages() -> None:
    """And unsaved changes."""
    history = await ChatHistory.open(ONE, MemoryStorage(), ChatHistoryConfig(autosave=False))
    one, two = await history.extend(["a", "b"])
    await history.save()
    three = await history.add("c")
    await history.add("d")
    await history.replace(one.id, "A")
    assert texts(await history.path(three.id)) == ["A", "b", "c"]
    await history.remove(one.id)
    assert texts(await history.path(two.id)) == ["b"]
    with pytest.raises(NotFound):
        await history.path(one.id)


async def test_a_failed_deletion_forgets_nothing() -> None:
    """Unsaved changes can still be saved."""

    class Stubborn(MemoryStorage):
        async def delete(self, identity: SessionIdentity) -> bool:  # noqa: ARG002 - as it must be
            msg = "not now"
            raise StoreError(msg)

    storage = Stubborn()
    history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(autosave=False))
    await history.add("a")
    with pytest.raises(StoreError):
        await history.delete()
    await history.save()
    assert await storage.count(ONE) == 1
