"""Windows: they fit, only move forward, and are stored."""

from __future__ import annotations

import pytest

from dragoman import Message, Messages, ToolCall, ToolResult, Usage
from dragoman.errors import ContextTooSmall, InvalidInputError
from dragoman.history import ChatHistory, ChatHistoryConfig, MemoryStorage, SessionIdentity
from dragoman.history.truncation import LastTurns
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="guide", chat="7")
SMALL = ChatHistoryConfig(context_window=1_000, reserved_for_completion=200)


def turn(number: int, words: int = 50) -> list[Message]:
    """A question and its answer."""
    return [
        Message.user(f"question {number} " + "word " * words),
        Message.assistant(f"answer {number}"),
    ]


async def filled(storage: object, turns: int, config: ChatHistoryConfig = SMALL) -> ChatHistory:
    """A session with instructions and that many turns."""
    history = await ChatHistory.open(ONE, storage, config)  # type: ignore[arg-type]  # a backend
    await history.add(Message.system("Be brief."))
    for number in range(turns):
        await history.extend(turn(number))
    return history


async def test_a_short_history_is_sent_completely() -> None:
    """The window is the whole history."""
    history = await filled(MemoryStorage(), 2)
    assert await history.window() == await history.messages()


async def test_a_long_history_is_cut_and_the_store_keeps_everything(backend: Backend) -> None:
    """The latest turns and the instructions stay, and a marker says that something is missing."""
    async with backend.opened() as storage:
        history = await filled(storage, 40)
        window = await history.window()
        assert len(window) < 40
        assert window[0].text == "Be brief."
        assert window[-1].text == "answer 39"
        assert any("left out" in message.text for message in window)
        assert await history.count() == 81


async def test_the_window_stays_the_same_until_it_must_move(backend: Backend) -> None:
    """Also in another process, and as messages are added: prompt caches depend on it."""
    async with backend.opened() as storage:
        before = await (await filled(storage, 40)).window()
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, SMALL)
        assert all(map(Message.identical, await history.window(), before))
        await history.extend(turn(40, words=3))
        after = await history.window()
        assert all(map(Message.identical, after[: len(before)], before))
        assert after[-1].text == "answer 40"


async def test_each_branch_has_its_own_window() -> None:
    """A cut of one branch doesn't affect another."""
    history = await filled(MemoryStorage(), 40)
    await history.window()
    first = (await history.messages())[2]
    await history.fork(first.id)
    assert len(await history.window()) == 3
    await history.switch(0)
    assert (await history.window())[-1].text == "answer 39"


async def test_a_pinned_message_stays_in_every_window(backend: Backend) -> None:
    """With the turn it belongs to."""
    async with backend.opened() as storage:
        history = await filled(storage, 2)
        pinned = (await history.messages())[1]
        await history.pin(pinned.id)
        for number in range(2, 40):
            await history.extend(turn(number))
        window = await history.window()
        assert [message.text.split()[:2] for message in window[1:3]] == [
            ["question", "0"],
            ["answer", "0"],
        ]
        await history.unpin(pinned.id)
        assert not (await history.message(pinned.id)).metadata


async def test_a_model_determines_the_size() -> None:
    """By name, by number, or as an object; for an unknown name the config applies."""

    class Model:
        context_window = 1_000

    history = await filled(MemoryStorage(), 40, ChatHistoryConfig(reserved_for_completion=200))
    assert len(await history.window("openai:gpt-4o")) == 81
    assert len(await history.window("somebody:unknown")) == 81
    assert len(await history.window(Model())) < 40
    assert len(await history.window(600)) < 20
    with pytest.raises(InvalidInputError):
        await history.window(3.5)  # type: ignore[arg-type]  # the point


async def test_a_turn_that_is_too_long_is_an_error() -> None:
    """The store is not changed."""
    history = await ChatHistory.open(ONE, MemoryStorage(), SMALL)
    await history.add("word " * 5_000)
    with pytest.raises(ContextTooSmall):
        await history.window()
    await history.save()
    assert await history.count() == 1


async def test_seed_001_save_removes_what_no_longer_fits() -> None:
    """With `delete_truncated`, by the usage in the metadata; the system message stays."""
    config = ChatHistoryConfig(
        context_window=1000, reserved_for_completion=200, delete_truncated=True
    )
    history = await ChatHistory.open(ONE, MemoryStorage(), config)
    await history.add(Message.system("System prompt"))
    await history.add(Message.user("Hello"))
    await history.add(Message.assistant("Response", metadata={"usage": {"total_tokens": 1500}}))
    await history.save()
    kept = await history.messages()
    assert len(kept) < 3
    assert kept[0].kind == "system"


async def test_delete_truncated_never_removes_another_branchs_messages() -> None:
    """Messages that another branch includes stay."""
    config = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, delete_truncated=True
    )
    history = await filled(MemoryStorage(), 3, config)
    fork_at = (await history.messages())[2]
    await history.fork(fork_at.id)
    await history.add("aside")
    await history.switch(0)
    for number in range(3, 40):
        await history.extend(turn(number))
    await history.save()
    assert await history.count() < 60
    await history.switch(1)
    assert [m.text.split()[0] for m in await history.messages()] == [
        "Be", "question", "answer", "aside",
    ]  # fmt: skip


async def test_seed_001_callback_chooses_what_to_keep() -> None:
    """It gets messages, tokens and the config, at save and before a send."""
    seen: list[tuple[int, int, ChatHistoryConfig]] = []

    def keep(messages: Messages, tokens: int, config: ChatHistoryConfig) -> Messages:
        seen.append((len(messages), tokens, config))
        return messages[-2:]

    config = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, truncation_callback=keep
    )
    history = await filled(MemoryStorage(), 40, config)
    await history.save()
    assert seen[0][0] == 81
    assert seen[0][1] > 800
    assert seen[0][2] is config
    assert [m.text for m in await history.window()][-1] == "answer 39"
    assert len(await history.window()) == 4


async def test_hooks_are_called_for_a_cut_and_may_prevent_it() -> None:
    """Before with what was to be sent, after with what is sent."""
    sizes: list[tuple[str, int]] = []
    config = ChatHistoryConfig(
        context_window=1_000,
        reserved_for_completion=200,
        before_truncate=lambda messages, _: sizes.append(("before", len(messages))),
        after_truncate=lambda messages, _: sizes.append(("after", len(messages))),
    )
    history = await filled(MemoryStorage(), 40, config)
    window = await history.window()
    assert sizes == [("before", 81), ("after", len(window))]

    def veto(*_: object) -> None:
        raise PermissionError

    storage = MemoryStorage()
    config = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, before_truncate=veto
    )
    history = await filled(storage, 40, config)
    with pytest.raises(PermissionError):
        await history.window()
    session = await storage.session(ONE)
    assert session is not None
    assert session.windows is None


async def test_unsaved_messages_are_sent_too() -> None:
    """With `autosave=False`, the window covers unsaved messages, and the cut is stored at save."""
    config = ChatHistoryConfig(context_window=1_000, reserved_for_completion=200, autosave=False)
    storage = MemoryStorage()
    history = await filled(storage, 40, config)
    window = await history.window()
    assert window[-1].text == "answer 39"
    assert len(window) < 40
    await history.save()
    assert await storage.count(ONE) == 81
    assert (await history.window())[-1].text == "answer 39"


async def test_reported_usage_overrides_estimates() -> None:
    """A short text that was reported as large is cut."""
    history = await ChatHistory.open(ONE, MemoryStorage(), SMALL)
    await history.extend([*turn(0, 5), *turn(1, 5)])
    await history.add(Message.user("and now?"))
    await history.add(Message.assistant("this", usage=Usage(input=2_000, output=5)))
    await history.add(Message.user("go on"))
    assert len(await history.window()) < 7


async def test_a_strategy_can_be_chosen() -> None:
    """Here, only the last turns."""
    history = await filled(
        MemoryStorage(), 10, ChatHistoryConfig(strategy=LastTurns(2, marker=False))
    )
    assert [message.text.split()[:2] for message in await history.window()] == [
        ["Be", "brief."],
        ["question", "8"],
        ["answer", "8"],
        ["question", "9"],
        ["answer", "9"],
    ]


async def test_a_custom_counter_is_used() -> None:
    """Sync or async, such as a provider's counting endpoint."""
    asked: list[int] = []

    async def count(messages: Messages) -> int:
        asked.append(len(messages))
        return 100 * len(messages)

    config = ChatHistoryConfig(
        context_window=1_000, reserved_for_completion=200, token_counter=count
    )
    history = await filled(MemoryStorage(), 10, config)
    assert len(await history.window()) <= 8
    assert asked


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "gemini", "openai-responses"])
async def test_a_window_can_be_encoded_in_any_dialect(name: str) -> None:
    """With tools and settings, and without loss."""
    history = await filled(MemoryStorage(), 1)
    call = ToolCall.create("call_1", "weather", {"city": "Mostar"})
    await history.extend(
        [
            Message.user("And the weather?"),
            Message.assistant(tool_calls=[call]),
            Message.tool(ToolResult.success("call_1", "sunny", tool_name="weather")),
        ]
    )
    encoded = await history.to_wire(name, model="some-model")
    assert b"sunny" in encoded.to_bytes()
    assert not encoded.losses


async def test_an_unknown_dialect_is_an_error() -> None:
    """Our own error."""
    history = await filled(MemoryStorage(), 1)
    with pytest.raises(InvalidInputError):
        await history.to_wire(7)  # type: ignore[arg-type]  # the point
