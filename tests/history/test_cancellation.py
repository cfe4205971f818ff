"""A call may be cancelled at any await: nothing is lost, duplicated, or left running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman import ChatHistory, ChatHistoryConfig, Message, SessionIdentity
from dragoman.errors import DragomanError, StoreError
from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.testing.conformance.stores.backends import Backend
from tests.cancelling import ThreadWatch, cancelled_at
from tests.environment import PATIENCE

ONE = SessionIdentity(agent="guide", chat="7")
LAZY = ChatHistoryConfig(autosave=False)
SMALL = ChatHistoryConfig(context_window=300, reserved_for_completion=100)


class Attempt(NamedTuple):
    """The outcome of a call."""

    was_cut: bool
    """Whether it was cancelled; False: it did not wait for so many things."""
    is_done: bool
    """Whether it returned all the same. redis-py swallows cancellations at one place."""


async def cancelled(coroutine: Coroutine[Any, Any, Any], nth: int) -> Attempt:
    """Run a call, and cancel it at its n-th suspension."""

    async def call() -> None:
        await cancelled_at(coroutine, nth)

    task = asyncio.ensure_future(call())
    try:
        await task
    except (asyncio.CancelledError, StoreError):
        return Attempt(was_cut=True, is_done=False)
    return Attempt(was_cut=task.cancelling() > 0, is_done=True)


Call = Callable[[ChatHistory, list[Message]], Coroutine[Any, Any, Any]]


CALLS: dict[str, tuple[ChatHistoryConfig, Call]] = {
    "replace": (SMALL, lambda h, m: h.replace(m[0].id, "A")),
    "remove": (SMALL, lambda h, m: h.remove(m[0].id)),
    "fork": (SMALL, lambda h, m: h.fork(m[1].id)),
    "edit": (SMALL, lambda h, m: h.edit(m[1].id, "B")),
    "window": (SMALL, lambda h, _: h.window()),
    "pin": (SMALL, lambda h, m: h.pin(m[0].id)),
    "messages": (SMALL, lambda h, _: h.messages()),
    "clear": (SMALL, lambda h, _: h.clear()),
    "delete": (SMALL, lambda h, _: h.delete()),
}


async def each_moment(attempt: Callable[[int], Awaitable[bool]]) -> int:
    """Cancel at the first suspension, the second and so on, until there are no more."""
    nth = 1
    while await attempt(nth):
        nth += 1
        assert nth < 200
    return nth - 1


async def test_adding_again_after_a_cancellation_leaves_exactly_one(backend: Backend) -> None:
    """Whether or not the cancelled call had stored it; also with an expected version."""
    async with backend.opened() as storage:

        async def attempt(nth: int) -> bool:
            history = await ChatHistory.open(ONE.replace(user=str(nth)), storage)
            await history.add("before")
            given = [Message.user("once"), Message.user("too")]
            was_cut, is_done = await cancelled(history.extend(given, expected_version=1), nth)
            if not is_done:
                await history.extend(given, expected_version=1)
            found = await history.messages()
            assert [m.text for m in found] == ["before", "once", "too"]
            return was_cut

        await each_moment(attempt)


async def test_saving_again_after_a_cancellation_writes_everything_once(backend: Backend) -> None:
    """Including removals and replacements."""
    async with backend.opened() as storage:

        async def attempt(nth: int) -> bool:
            history = await ChatHistory.open(ONE.replace(user=str(nth)), storage, LAZY)
            one, two, _ = await history.extend(["a", "b", "c"])
            await history.save()
            await history.remove(one.id)
            await history.replace(two.id, "B")
            await history.extend(["d", "e"])
            was_cut, _ = await cancelled(history.save(), nth)
            assert [m.text for m in await history.messages()] == ["B", "c", "d", "e"]
            await history.save()
            assert not history.is_dirty
            other = await ChatHistory.open(history.identity, storage)
            assert [m.text for m in await other.messages()] == ["B", "c", "d", "e"]
            return was_cut

        await each_moment(attempt)


@pytest.mark.parametrize("name", CALLS)
async def test_any_call_can_be_cancelled_and_repeated(backend: Backend, name: str) -> None:
    """Stored data stays readable, and the history usable."""
    config, call = CALLS[name]
    async with backend.opened() as storage:

        async def attempt(nth: int) -> bool:
            history = await ChatHistory.open(ONE.replace(user=str(nth)), storage, config)
            given = list(await history.extend([f"{n} " + "word " * 90 for n in "abcd"]))
            was_cut, is_done = await cancelled(call(history, given), nth)
            if not is_done and name in {"fork", "edit"}:
                session = await storage.session(history.identity)
                assert session is not None
                assert session.active == history.branch == 0
                assert len(await history.messages()) == 4
            try:
                await call(history, given)
            except DragomanError:
                assert name == "remove"  # what is gone can't be removed again
            last = await history.add("after")
            assert (await history.messages())[-1].text == "after"
            assert (await history.window())[-1].text == "after"
            other = await ChatHistory.open(history.identity, storage, config)
            assert (await other.messages())[-1].id == last.id
            return was_cut

        await each_moment(attempt)


class Leftovers:
    """Tasks and threads started since it was created that still run."""

    def __init__(self) -> None:
        self._threads = ThreadWatch()

    async def settled(self) -> list[str]:
        """The tasks and threads that don't end within some time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._running():  # noqa: ASYNC110 - threads tell nobody
                    await asyncio.sleep(0.001)
        return self._running()

    def _running(self) -> list[str]:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        return [*(task.get_name() for task in others), *self._threads.started]


@pytest.mark.parametrize("kind", ["sqlite", "files", "postgres", "redis"])
async def test_a_cancelled_opening_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    """No task and no thread; nor does a closed history."""
    from tests.history.storage import backend_postgres, backend_redis

    if kind == "postgres":
        with backend_postgres.schema() as name:
            await opened_and_cancelled(f"{backend_postgres.URL}?schema={name}")
    elif kind == "redis":
        with backend_redis.fresh_prefix() as prefix:
            await opened_and_cancelled(f"{backend_redis.URL}?prefix={prefix}")
    else:
        urls = {"sqlite": f"sqlite:///{tmp_path}/x.db", "files": f"file://{tmp_path}/x"}
        await opened_and_cancelled(urls[kind])


async def opened_and_cancelled(url: str) -> None:
    """Cancelled at each suspension, an opening leaves nothing behind."""
    leftovers = Leftovers()

    async def attempt(nth: int) -> bool:
        made: list[ChatHistory] = []

        async def opened() -> None:
            made.append(await ChatHistory.open(ONE, url))

        was_cut, _ = await cancelled(opened(), nth)
        for history in made:
            await history.close()
        assert not await leftovers.settled()
        return was_cut

    await each_moment(attempt)


@pytest.mark.parametrize("make", [SQLiteStorage, FileStorage])
async def test_a_failed_opening_leaves_nothing_behind(
    make: Callable[[Path], Storage], tmp_path: Path
) -> None:
    """The error is ours."""
    leftovers = Leftovers()
    (tmp_path / "x").write_text("no directory")
    kind = "sqlite" if make is SQLiteStorage else "file"
    with pytest.raises(StoreError):
        await ChatHistory.open(ONE, f"{kind}:///{tmp_path}/x/y/z")
    with pytest.raises(StoreError):
        ChatHistory.open_sync(ONE, f"{kind}:///{tmp_path}/x/y/z")
    assert not await leftovers.settled()


@pytest.mark.parametrize("make", [SQLiteStorage, FileStorage])
async def test_a_store_can_be_closed_during_calls(
    make: Callable[[Path], Storage], tmp_path: Path
) -> None:
    """Each succeeds, or says that the store is not open; acknowledged messages are stored."""
    leftovers = Leftovers()
    storage = make(tmp_path / "x")
    await storage.open()
    history = await ChatHistory.open(ONE, storage)
    adding = [asyncio.ensure_future(history.add(f"m{n}")) for n in range(20)]
    await asyncio.sleep(0)
    await storage.close()
    done = await asyncio.gather(*adding, return_exceptions=True)
    assert all(isinstance(each, (Message, StoreError)) for each in done)
    await storage.open()
    stored = {message.text for message in await history.messages()}
    assert {each.text for each in done if isinstance(each, Message)} <= stored
    await storage.close()
    assert not await leftovers.settled()
