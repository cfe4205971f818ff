"""Opening, closing, forking, interrupts, and exiting without closing."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import ChatHistory, ChatHistoryConfig, Message, SessionIdentity
from dragoman.errors import InvalidInputError, StoreError
from dragoman.history import MemoryStorage, open_storage
from dragoman.history.blocking import BlockingChatHistory
from dragoman.history.storage.protocol import Appended
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.history.storage_urls import storage_at
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="guide", chat="7")


class Watched(MemoryStorage):
    """Counts how often it was opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    async def open(self) -> None:
        """Count one."""
        self.events.append("open")

    async def close(self) -> None:
        """Count one."""
        self.events.append("close")


@pytest.mark.parametrize("autosave", [True, False])
async def test_a_closed_history_is_an_error(backend: Backend, autosave: bool) -> None:
    """For every method; closing it again does nothing, and the backend stays open."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(autosave=autosave))
        message = await history.add("a")
        await history.save()
        await history.close()
        await history.close()
        calls: list[Callable[[], Any]] = [
            lambda: history.add("b"),
            lambda: history.extend(["b"]),
            lambda: history.replace(message.id, "b"),
            lambda: history.remove(message.id),
            history.clear,
            history.delete,
            history.save,
            history.messages,
            history.last,
            history.count,
            history.usage,
            history.branches,
            history.window,
            lambda: history.message(message.id),
            lambda: history.tail(1),
            lambda: history.path(message.id),
            lambda: history.fork(message.id),
            lambda: history.edit(message.id, "b"),
            lambda: history.switch(0),
            lambda: history.pin(message.id),
            lambda: history.to_wire("anthropic", model="m"),
        ]
        for call in calls:
            with pytest.raises(StoreError, match="closed"):
                await call()
        assert "closed" not in repr(history)
        assert (history.version, history.is_dirty) == (1, False)
        assert await storage.count(ONE) == 1


async def test_leaving_the_block_closes_it_in_every_case() -> None:
    """It is saved if there was no exception, and closed once."""
    config = ChatHistoryConfig(autosave=False)
    storage = MemoryStorage()
    async with await ChatHistory.open(ONE, storage, config) as history:
        await history.add("a")
    with pytest.raises(StoreError):
        await history.messages()

    async def fail() -> None:
        async with await ChatHistory.open(ONE, storage, config) as history:
            await history.add("b")
            raise PermissionError

    with pytest.raises(PermissionError):
        await fail()
    async with await ChatHistory.open(ONE, storage, config) as history:
        await history.add("c")
        await history.close()
    assert await storage.count(ONE) == 1


async def test_only_backends_created_here_are_closed(tmp_path: Path) -> None:
    """One that was passed in stays open, alone and in a chain; members are closed once."""
    mine = Watched()
    await (await ChatHistory.open(ONE, mine)).close()
    assert "close" not in mine.events
    chain, owned = storage_at([mine, f"sqlite:///{tmp_path}/x.db"])
    assert owned
    history = ChatHistory(ONE, chain, owns_storage=True)
    await history._begin()
    await history.add("a")
    await history.close()
    await history.close()
    assert "close" not in mine.events
    assert await mine.count(ONE) == 1


async def test_histories_may_share_a_store(tmp_path: Path) -> None:
    """`open_storage` opens a URL and closes it; one that is passed in stays open."""
    async with open_storage(f"sqlite:///{tmp_path}/x.db") as storage:
        for chat in ("a", "b"):
            async with ChatHistory(SessionIdentity(chat=chat), storage) as history:
                await history.add("Hi")
        assert len(await storage.sessions()) == 2
    with pytest.raises(StoreError, match="not open"):
        await storage.sessions()
    mine = Watched()
    async with open_storage(mine) as same:
        assert same is mine
    assert mine.events == ["open"]


async def test_a_failed_opening_closes_what_it_opened() -> None:
    """A backend that it created, not one that was passed in; the first error is raised."""

    class Broken(Watched):
        async def session(self, identity: SessionIdentity) -> None:  # noqa: ARG002 - as it must be
            msg = "no connection"
            raise StoreError(msg)

        async def close(self) -> None:
            await super().close()
            msg = "not closed either"
            raise StoreError(msg)

    broken = Broken()
    with pytest.raises(StoreError, match="no connection"):
        await ChatHistory.open(ONE, broken)
    assert broken.events == ["open"]
    with pytest.raises(StoreError, match="no connection"):
        await ChatHistory(ONE, broken, owns_storage=True)._begin()
    assert broken.events == ["open", "open", "close"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_history_can_not_be_used_in_a_forked_process(backend: Backend) -> None:
    """It raises at once and does no harm; opened again, it works."""
    history = BlockingChatHistory.open(ONE, backend.new())
    history.add("parent")
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        code = 1
        try:
            signal.alarm(20)  # a hang must not be ours
            code = _in_child(history, backend)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    history.add("parent again")
    expected = ["parent", "parent again"]
    if backend.name not in {"memory", "chain", "bucket"}:  # they are in memory, or begin there
        expected.insert(1, "child")
    assert [message.text for message in history] == expected
    history._run(history.storage.close())


def _in_child(history: BlockingChatHistory, backend: Backend) -> int:  # pragma: no cover
    try:
        history.add("lost")
    except StoreError as error:
        if "process" not in str(error):
            return 2
    else:
        return 3
    history.close()
    mine = BlockingChatHistory.open(ONE, backend.new())
    mine.add("child")
    mine._run(mine.storage.close())
    return 0


LEAVING = """
import sys, threading
from dragoman import ChatHistory, SessionIdentity
history = ChatHistory.open_sync(SessionIdentity(chat=sys.argv[2]), sys.argv[1])
history.add("a")
async def hook(message, history): pass
from dragoman import ChatHistoryConfig
other = ChatHistory.open_sync(
    SessionIdentity(chat=sys.argv[2]), sys.argv[1], ChatHistoryConfig(on_after_add=hook)
)
other.add("b")
print(len(history))
history.delete()
"""

LEAVING_A_LOOP = """
import asyncio, sys
from dragoman import ChatHistory, SessionIdentity
async def main():
    history = await ChatHistory.open(SessionIdentity(chat=sys.argv[2]), sys.argv[1])
    await history.extend(["a", "b"])
    print(await history.count())
    await history.delete()
asyncio.run(main())
"""


@pytest.mark.parametrize("script", [LEAVING, LEAVING_A_LOOP], ids=["blocking", "async"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "files", "postgres", "redis"])
def test_a_program_may_end_without_closing_anything(kind: str, script: str, tmp_path: Path) -> None:
    """It ends at once and prints nothing about it."""
    from tests.history.storage import backend_postgres, backend_redis

    urls = {
        "memory": "memory:",
        "sqlite": f"sqlite:///{tmp_path}/x.db",
        "files": f"file://{tmp_path}/x",
    }
    if kind == "memory" and script is LEAVING:
        pytest.skip("two histories in memory share nothing")
    if kind == "postgres":
        with backend_postgres.schema() as name:
            ends_well(script, f"{backend_postgres.URL}?schema={name}", tmp_path)
        return
    if kind == "redis":
        with backend_redis.fresh_prefix() as prefix:
            ends_well(script, f"{backend_redis.URL}?prefix={prefix}", tmp_path)
        return
    ends_well(script, urls[kind], tmp_path)


def ends_well(script: str, url: str, tmp_path: Path) -> None:
    """Assert that it prints the number of messages, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", script, url, str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["2"], "")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
def test_an_interrupt_ends_a_blocking_call_and_loses_nothing(backend: Backend) -> None:
    """The same message can be added again, and is stored once."""
    history = BlockingChatHistory.open(ONE, backend.new())
    inner = history.storage.append

    async def interrupted(*arguments: Any, **options: Any) -> Appended:
        appended = await inner(*arguments, **options)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(30)
        return appended

    storage: Any = history.storage
    message = Message.user("once")
    storage.append = interrupted
    with pytest.raises(KeyboardInterrupt):
        history.add(message)
    storage.append = inner
    history.add(message)
    assert [each.text for each in history] == ["once"]
    history._run(history.storage.close())


def test_threads_and_running_loops_share_a_blocking_history(backend: Backend) -> None:
    """Each message is stored once, without deadlocks; also on PostgreSQL and Redis."""
    history = BlockingChatHistory.open(ONE, backend.new())

    async def cell(number: int) -> None:
        await asyncio.sleep(0)
        for n in range(5):
            history.add(f"{number}.{n}")

    threads = [threading.Thread(target=asyncio.run, args=(cell(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({message.text for message in history}) == 20
    history._run(history.storage.close())


def test_the_blocking_history_rejects_invalid_stores() -> None:
    """With our own error, before anything is opened."""
    for bad in (7, [], b"memory:", object(), [7]):
        with pytest.raises(InvalidInputError):
            ChatHistory.open_sync(ONE, bad)  # type: ignore[arg-type]  # the point


async def test_a_history_that_was_not_opened_says_how(tmp_path: Path) -> None:
    """The error explains `async with`, which is easily forgotten in a notebook."""
    history = ChatHistory(SessionIdentity(chat="7"), f"sqlite:///{tmp_path}/chats.db")
    with pytest.raises(StoreError, match=r"is not open; use `async with ChatHistory\(…\)`"):
        await history.add("Hi")


def test_a_thread_that_writes_while_another_begins_takes_a_stamp_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first writes of two threads at once, one of them held up while its stamps are drawn."""
    history = BlockingChatHistory.open(ONE, SQLiteStorage(tmp_path / "h.db", blocking=True))
    drawn = secrets.randbits
    other = threading.Thread(target=history.add, args=("second",))

    def slowly(bits: int) -> int:
        if not other.ident:
            other.start()
            other.join(1)
        return drawn(bits)

    monkeypatch.setattr(secrets, "randbits", slowly)
    history.add("first")
    other.join(30)
    assert {message.text for message in history} == {"first", "second"}
    history._run(history.storage.close())
