"""Users' hooks, strategies and counters may do anything, and break nothing."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import ChatHistory, ChatHistoryConfig, Message, Messages, SessionIdentity
from dragoman.errors import ContextTooSmall, InvalidInputError
from dragoman.history import MemoryStorage
from dragoman.history.blocking import BlockingChatHistory
from dragoman.history.truncation import Summarise
from dragoman.model import portal
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="guide", chat="7")
SMALL = {"context_window": 400, "reserved_for_completion": 100}


@pytest.fixture
def opened(backend: Backend) -> Iterator[Callable[..., BlockingChatHistory]]:
    """Opens blocking histories, and closes their stores."""
    made: list[BlockingChatHistory] = []

    def open_one(**settings: Any) -> BlockingChatHistory:
        config = ChatHistoryConfig.from_dict(settings)
        made.append(BlockingChatHistory.open(ONE, backend.new(), config))
        return made[-1]

    yield open_one
    for history in made:
        history._run(history.storage.close())


def texts(messages: Messages) -> list[str]:
    """The texts of these messages."""
    return [message.text for message in messages]


async def test_an_async_hook_may_add_to_its_own_history(backend: Backend) -> None:
    """The message that it adds goes through the hooks as well."""

    async def answer(message: Message, history: ChatHistory) -> None:
        if message.text == "ping":
            await history.add(Message.assistant("pong"))

    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(on_after_add=answer))
        await history.add("ping")
        assert texts(await history.messages()) == ["ping", "pong"]


def test_a_hook_of_the_blocking_history_may_add_to_it(
    opened: Callable[..., BlockingChatHistory],
) -> None:
    """On the background loop too, where it must not deadlock."""

    def answer(message: Message, history: BlockingChatHistory) -> None:
        if len(message.text) < 5:
            history.add(message.text + "!")

    history = opened(on_after_add=answer)
    history.add("hi")
    assert texts(history.messages()) == ["hi", "hi!", "hi!!", "hi!!!"]


def test_an_async_hook_of_the_blocking_history_may_add_to_it(
    opened: Callable[..., BlockingChatHistory],
) -> None:
    """With several levels of nested calls."""

    async def answer(message: Message, history: BlockingChatHistory) -> None:
        await asyncio.sleep(0)
        if len(message.text) < 5:
            history.add(message.text + "!")

    history = opened(on_after_add=answer)
    history.add("hi")
    assert texts(history.messages()) == ["hi", "hi!", "hi!!", "hi!!!"]


def test_a_hook_that_calls_itself_without_end_is_stopped(
    opened: Callable[..., BlockingChatHistory],
) -> None:
    """By Python, or by us if threads call each other; the history stays usable."""
    switch = {"is_on": True}

    def again(_: Message, history: BlockingChatHistory) -> None:
        if switch["is_on"]:
            history.add("again")

    history = opened(on_before_add=again)
    with pytest.raises(RecursionError):
        history.add("a")
    switch["is_on"] = False
    history.add("b")
    assert texts(history.messages()) == ["b"]


def test_a_hook_stopped_by_python_leaves_no_coroutine(
    opened: Callable[..., BlockingChatHistory],
) -> None:
    """Whichever call exceeds the stack: a coroutine that nobody awaits is a warning."""

    def again(_: Message, history: BlockingChatHistory) -> None:
        history.add("again")

    history = opened(on_before_add=again)

    def add(depth: int) -> None:
        if depth:
            add(depth - 1)
        else:
            history.add("a")

    for depth in range(9):  # calls between two calls of the hook
        with pytest.raises(RecursionError):
            add(depth)
    gc.collect()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, StopIteration, MemoryError])
@pytest.mark.parametrize("is_async", [False, True])
def test_any_exception_of_a_hook_reaches_the_caller(
    opened: Callable[..., BlockingChatHistory], error: type[BaseException], is_async: bool
) -> None:
    """The background loop stays alive."""
    switch = {"is_on": True}

    def fail(*_: Any) -> None:
        if switch["is_on"]:
            raise error

    async def fail_later(*_: Any) -> None:
        fail()

    history = opened(on_before_add=fail_later if is_async else fail)
    # No coroutine may raise StopIteration: Python turns it into another error.
    with pytest.raises((error, RuntimeError)):
        history.add("a")
    switch["is_on"] = False
    history.add("b")
    assert texts(history.messages()) == ["b"]


def test_async_callbacks_of_the_blocking_history_may_call_it(
    opened: Callable[..., BlockingChatHistory],
) -> None:
    """A counter, a callback and a summarizing model."""
    made: list[BlockingChatHistory] = []

    async def sum_up(_messages: Messages, _before: str) -> str:
        await asyncio.sleep(0.001)
        return f"{made[0].count()} messages so far."

    async def count(messages: Messages) -> int:
        await asyncio.sleep(0.001)
        return 20 * len(messages)

    made.append(opened(**SMALL, strategy=Summarise(sum_up, max_tokens=60), token_counter=count))
    made[0].extend([f"{n}" for n in range(40)])
    assert any("40 messages so far" in message.text for message in made[0].window())


def test_sync_callbacks_run_in_the_blocking_history_as_well() -> None:
    """Also during a save."""
    config = ChatHistoryConfig(
        **SMALL,  # type: ignore[arg-type]  # numbers
        truncation_callback=lambda messages, _tokens, _config: messages[-2:],
        delete_truncated=True,
    )
    with ChatHistory.open_sync(ONE, "memory:", config) as history:
        history.extend(["word " * 50] * 20)
        history.save()
        assert history.count() < 20


def test_a_blocking_call_on_the_background_loop_itself_is_rejected() -> None:
    """It would deadlock."""

    async def call() -> None:
        portal.run(asyncio.sleep(0))

    with pytest.raises(InvalidInputError):
        portal.run(call())


@pytest.mark.parametrize("hook", ["on_after_add", "on_after_save"])
async def test_a_failure_after_the_write_affects_no_later_message(hook: str) -> None:
    """A message reported as failed may be added again once; after that it is a new one."""
    switch = {"is_on": True}

    def fail(*_: Any) -> None:
        if switch["is_on"]:
            raise PermissionError

    history = await ChatHistory.open(
        ONE, MemoryStorage(), ChatHistoryConfig.from_dict({hook: fail})
    )
    message, other = Message.user("a"), Message.user("b")
    with pytest.raises(PermissionError):
        await history.add(message)
    switch["is_on"] = False
    await history.extend([message, other])
    assert texts(await history.messages()) == ["a", "b"]
    await history.add(message)
    assert texts(await history.messages()) == ["a", "b", "a"]


@pytest.mark.parametrize("hook", ["on_before_add", "on_before_save"])
async def test_a_vetoed_edit_leaves_no_branch(hook: str) -> None:
    """The history stays on its branch, and so do others."""
    switch = {"is_on": False}

    def veto(*_: Any) -> None:
        if switch["is_on"]:
            raise PermissionError

    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, ChatHistoryConfig.from_dict({hook: veto}))
    first, _ = await history.extend(["a", "b"])
    switch["is_on"] = True
    with pytest.raises(PermissionError):
        await history.edit(first.id, "A")
    assert len(await history.branches()) == 1
    assert texts(await history.messages()) == ["a", "b"]


async def test_a_veto_keeps_everything_that_seed_001_would_remove() -> None:
    """`before_truncate` is called for every removal."""

    def veto(*_: Any) -> None:
        raise PermissionError

    config = ChatHistoryConfig.from_dict(
        {**SMALL, "delete_truncated": True, "before_truncate": veto}
    )
    history = await ChatHistory.open(ONE, MemoryStorage(), config)
    await history.extend(["word " * 5_000, Message.assistant("word " * 5_000)])
    with pytest.raises(ContextTooSmall):
        await history.window()
    with pytest.raises(PermissionError):
        await history.save()
    assert await history.count() == 2


async def test_a_hook_may_save_during_a_save() -> None:
    """It doesn't deadlock; everything is written once."""
    calls: list[int] = []

    async def save(history: ChatHistory) -> None:
        calls.append(len(calls))
        if len(calls) < 3:
            await history.save()

    config = ChatHistoryConfig(autosave=False, on_before_save=save)
    history = await ChatHistory.open(ONE, MemoryStorage(), config)
    await history.extend(["a", "b"])
    await asyncio.wait_for(history.save(), 5)
    assert texts(await history.messages()) == ["a", "b"]


async def test_tasks_may_add_while_others_save(backend: Backend) -> None:
    """With `autosave=False`, nothing added meanwhile is lost or written twice."""
    config = ChatHistoryConfig(autosave=False)
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, config)

        async def talk(number: int) -> None:
            added = await history.extend([f"{number}.{n}" for n in range(3)])
            await history.save()
            await history.replace(added[0].id, f"{number}.new")
            await history.remove(added[1].id)
            await history.save()

        await asyncio.gather(*map(talk, range(12)))
        assert not history.is_dirty
        stored = texts(await (await ChatHistory.open(ONE, storage)).messages())
        assert sorted(stored) == sorted(f"{n}.{end}" for n in range(12) for end in ("new", "2"))


def test_threads_may_add_while_others_save(tmp_path: Path) -> None:
    """Like tasks."""
    config = ChatHistoryConfig(autosave=False)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ChatHistory.open_sync(ONE, f"sqlite:///{tmp_path}/x.db", config) as history:

            def talk(number: int) -> None:
                for n in range(10):
                    history.add(f"{number}.{n}")
                    history.save()

            threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            history.save()
            found = texts(history.messages())
    finally:
        sys.setswitchinterval(interval)
    assert sorted(found) == sorted(f"{n}.{i}" for n in range(4) for i in range(10))
