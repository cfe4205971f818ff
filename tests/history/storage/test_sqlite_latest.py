"""The list of an SQLite store by time: order, pages, omitted scopes, damaged sessions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Dated, Entry, is_ordering
from dragoman.history.storage.sqlite import SQLiteStorage

_SESSIONS = 40


async def _filled(path: Path) -> SQLiteStorage:
    """Sessions in random order, several of them at the same time, half of them in a scope."""
    storage = SQLiteStorage(path, blocking=True)
    await storage.open()
    times = [float(10 + number // 3) for number in range(_SESSIONS)]
    Random(3).shuffle(times)
    for number, at in enumerate(times):
        scope = f"inner.{number}" if number % 2 else None
        identity = SessionIdentity(chat=f"c{number}", scope=scope)
        await storage.append(identity, [Entry(f"m{number}", b"{}", at)])
    return storage


async def _pages(storage: SQLiteStorage, size: int, without: tuple[str, ...] = ()) -> list[Dated]:
    found: list[Dated] = []
    before: tuple[float, str] | None = None
    while some := await storage.sessions_by_time(limit=size, before=before, without=without):
        assert len(some) <= size
        found += some
        before = some[-1].at, some[-1].session.identity.digest
    return found


@pytest.mark.parametrize("size", [1, 2, 7, 100])
async def test_pages_of_any_size_list_each_session_once(tmp_path: Path, size: int) -> None:
    """The latest comes first; sessions of the same time are ordered by digest."""
    storage = await _filled(tmp_path / "chats.db")
    assert is_ordering(storage)
    every = await storage.sessions()
    wanted = sorted(every, key=lambda each: (-each.updated_at, each.identity.digest))
    assert [each.session for each in await _pages(storage, size)] == wanted
    await storage.close()


async def test_scopes_are_left_out_of_the_list_and_of_the_number(tmp_path: Path) -> None:
    """A scope is left out by how it starts; sessions without a scope stay."""
    storage = await _filled(tmp_path / "chats.db")
    found = await _pages(storage, 6, ("inner.", "other"))
    assert {each.session.identity.scope for each in found} == {None}
    assert len(found) == await storage.number_of_sessions(("inner.", "other")) == _SESSIONS // 2
    assert await storage.number_of_sessions(("inner",)) == _SESSIONS // 2
    assert (
        await storage.number_of_sessions()
        == await storage.number_of_sessions(("inners",))
        == _SESSIONS
    )
    await storage.close()


@pytest.mark.parametrize("damage", ["stamp = 'x'", "at = 'x'", "document = 'x'"])
async def test_damaged_session_ends_no_list(tmp_path: Path, damage: str) -> None:
    """A damaged session keeps its place, or comes last, and hides none of the others."""
    path = tmp_path / "chats.db"
    storage = await _filled(path)
    middle = (await storage.sessions_by_time(limit=20))[-1].session.identity.digest
    await storage.close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE heads SET {damage} WHERE digest = ?", (middle,))  # noqa: S608
    storage = SQLiteStorage(path, blocking=True)
    await storage.open()
    found = [each.session.identity.digest for each in await _pages(storage, 3)]
    assert sorted(found) == sorted(each.identity.digest for each in await storage.sessions())
    assert len(found) == _SESSIONS
    await storage.close()
