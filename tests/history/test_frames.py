"""How far it is from `ChatHistory.add` to the statement that writes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from traceback import extract_stack
from typing import Any

import pytest

from dragoman import ChatHistory
from dragoman.history import MemoryStorage, SessionIdentity, SQLiteStorage
from dragoman.history.storage.memory import MemoryShelf

WHO = SessionIdentity(chat="1")


def _ours(seen: list[str]) -> list[str]:
    """The names of the package's functions on the stack, from `add` on."""
    stack = [each for each in extract_stack() if "/src/dragoman/" in each.filename]
    seen[:] = [each.name for each in stack]
    return seen


async def _frames(history: ChatHistory, seen: list[str]) -> list[str]:
    await history.add("first")
    await history.add("second")
    assert seen[0] == "add", seen
    return seen


async def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six, with the shelf's own."""
    seen: list[str] = []
    commit = MemoryShelf.commit

    async def counted(*arguments: Any) -> bool:
        _ours(seen)
        return await commit(*arguments)

    monkeypatch.setattr(MemoryShelf, "commit", counted)
    frames = await _frames(await ChatHistory.open(WHO, MemoryStorage()), seen)
    assert len([*frames, "commit"]) <= 6, frames


async def test_sqlite(tmp_path: Path) -> None:
    """Eight to the UPDATE: two more, for the transaction and what is done in it."""
    seen: list[str] = []
    storage = SQLiteStorage(tmp_path / "a.db", blocking=True)
    await storage.open()
    connection = storage.shelf._opened
    execute = connection.execute

    def watched(statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith("UPDATE heads"):
            _ours(seen)
        return execute(statement, *values)

    connection.execute = watched  # type: ignore[method-assign]
    frames = await _frames(await ChatHistory.open(WHO, storage), seen)
    await storage.close()
    assert len(frames) <= 8, frames
