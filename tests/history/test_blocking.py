"""The blocking history: the same behaviour, without an event loop and inside of one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Thread

import pytest

from dragoman import ChatHistory, ChatHistoryConfig, Message, SessionIdentity
from dragoman.errors import ConfigError, Conflict, NotFound
from dragoman.history import BlockingChatHistory, MemoryStorage
from dragoman.history.storage_urls import default_file, storage_at
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(chat="7")


def test_a_script_stores_a_conversation(backend: Backend) -> None:
    """With every operation of the async history."""
    with BlockingChatHistory.open(ONE, backend.new()) as history:
        first = history.add("a")
        history.extend([Message.assistant("b"), Message.user("c")])
        assert [message.text for message in history] == ["a", "b", "c"]
        assert (len(history), history.count(), bool(history)) == (3, 3, True)
        assert history.last is not None
        assert history.last.text == "c"
        assert history[first.id].text == "a"
        assert history.tail(1)[0].text == "c"
        history.replace(first.id, "A")
        history.pin(first.id)
        assert history.message(first.id).metadata == {"pinned": True}
        history.unpin(first.id)
        branch = history.fork(first.id)
        history.edit(history.add("d").id, "D")
        assert [message.text for message in history.messages()] == ["A", "D"]
        assert len(history.branches()) == 3
        history.switch(branch)
        history.switch(0)
        assert [message.text for message in history.window()] == ["A", "b", "c"]
        assert b"messages" in history.to_wire("openai-chat", model="m").to_bytes()
        assert len(history.path(first.id)) == 1
        assert history.usage().total == 0
        with pytest.raises(Conflict):
            history.add("e", expected_version=0)
        history.remove(first.id)
        history.save()
        history.clear()
        assert not history.is_dirty
        assert history.version > 0
        assert history.delete()
        with pytest.raises(NotFound):
            history[first.id]
        history.storage  # noqa: B018 - it is there
    if not isinstance(history.storage, MemoryStorage):
        backend_closed(history)


def backend_closed(history: BlockingChatHistory) -> None:
    """A backend that was passed in stays open; close it here."""
    history._run(history.storage.close())


def test_it_works_inside_a_running_loop(backend: Backend) -> None:
    """As in a notebook."""

    async def cell() -> int:
        with ChatHistory.open_sync(ONE, backend.new()) as history:
            history.add("a")
        if not isinstance(history.storage, MemoryStorage):
            backend_closed(history)
        return history.version

    assert asyncio.run(cell()) == 1


def test_threads_may_share_a_history(tmp_path: Path) -> None:
    """Each message is stored once."""
    with ChatHistory.open_sync(ONE, f"sqlite:///{tmp_path}/chats.db") as history:
        threads = [
            Thread(target=lambda n=n: [history.add(f"{n}.{i}") for i in range(20)])
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({message.text for message in history}) == 80


def test_async_hooks_run_as_well() -> None:
    """On the background loop; hooks get the blocking history."""
    seen: list[str] = []

    async def hook(message: Message, history: BlockingChatHistory) -> None:
        await asyncio.sleep(0)
        seen.append(f"{message.text} {type(history).__name__}")

    config = ChatHistoryConfig(on_after_add=hook)
    with ChatHistory.open_sync(ONE, "memory:", config) as history:
        history.add("a")
    assert seen == ["a BlockingChatHistory"]


def test_unsaved_changes_are_saved_at_the_end_of_the_block(tmp_path: Path) -> None:
    """Unless it ended with an exception."""
    place = f"sqlite:///{tmp_path}/chats.db"
    config = ChatHistoryConfig(autosave=False)
    with ChatHistory.open_sync(ONE, place, config) as history:
        history.add("a")

    def fail_half_way() -> None:
        with ChatHistory.open_sync(ONE, place, config) as history:
            history.add("b")
            raise PermissionError

    with pytest.raises(PermissionError):
        fail_half_way()
    with ChatHistory.open_sync(ONE, place) as history:
        assert [message.text for message in history] == ["a"]


def test_a_store_is_named_by_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is a file in the user's data directory, or DRAGOMAN_HISTORY."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_HISTORY", raising=False)
    storage, owned = storage_at(None)
    assert (storage.name, owned) == (f"sqlite:{default_file().name}", True)
    monkeypatch.setenv("DRAGOMAN_HISTORY", "memory:")
    assert storage_at(None)[0].name == "memory"
    assert storage_at(f"sqlite:///{tmp_path}/x.db?durability=power")[0].name == "sqlite:x.db"
    assert storage_at(storage) == (storage, False)
    for bad in ("odbc://x", "sqlite://", "chats.db", "sqlite:///x?fast=1", "file://host/x", "://"):
        with pytest.raises(ConfigError):
            storage_at(bad)
