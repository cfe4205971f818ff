"""Stored documents with a wrong value somewhere are read or `Corrupt`, wherever they are stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import msgspec
import pytest

from dragoman import ChatHistory, Message, ToolCall, ToolResult, Usage
from dragoman.errors import Corrupt, DragomanError
from dragoman.history import FileStorage, MemoryStorage, SealedStorage
from dragoman.history.records import body_of, message_of, read_line, row_line, session_line
from dragoman.history.remembered_cuts import Key, written
from dragoman.history.storage.protocol import Row, Session, Storage
from dragoman.history.transfer import export, import_lines
from dragoman.history.truncation import Cut, notes
from dragoman.testing.conformance.stores.data import ONE
from tests.history.attacker import put, taken
from tests.wire.every_place import CHANGES, changed, paths_in

_MESSAGES = (
    Message.user("Where is the Old Bridge?", metadata={"a": [1, {"b": None}]}),
    Message.assistant(
        "I look.", tool_calls=[ToolCall("c1", "look", '{"x": 1}')], usage=Usage(input=1)
    ),
    Message.tool(ToolResult("c1", "In Mostar."), ToolResult("c2", "Or not.")),
    Message.assistant("In Mostar."),
)
_SAMPLE = 160
"""So many cases of those that need a store are run by default."""
KEYS = {"k": b"\1" * 32}


async def _stored(storage: Storage) -> tuple[Session, tuple[Row, ...]]:
    """A session with a branch and a window."""
    history = await ChatHistory.open(ONE, storage)
    first, *_, last = await history.extend(_MESSAGES)
    await history.fork(first.id)
    await history.add("And the New Bridge?")
    cut = Cut(last.id, notes=(notes.summary("They spoke of bridges.", 3),), left_out=3)
    await storage.keep_windows(ONE, written({Key.of(1, "m", 300): cut, Key.of(0, None, 300): cut}))
    return await taken(storage, ONE)


@cache
def _plain() -> tuple[Session, tuple[Row, ...]]:
    return asyncio.run(_stored(MemoryStorage()))


@pytest.fixture(autouse=True)
def _made_before() -> None:
    """What is stored is made outside the tests' event loops."""
    _plain()


def _odd(raw: bytes) -> Iterator[bytes]:
    """A document with each wrong value at each place."""
    body = json.loads(raw)
    for path, _ in paths_in(body):
        for change in CHANGES:
            yield changed(body, path, change)[1]


def test_any_line_is_read_or_corrupt() -> None:
    """Lines of exports and files, and the bodies of messages."""
    session, rows = _plain()
    assert session.windows is not None
    for row in rows[:4]:
        for raw in _odd(row.body):
            with suppress(Corrupt):
                message = message_of(raw)
                repr(message)
                body_of(message)
    for line in (session_line(session), row_line(rows[1])):
        for raw in _odd(line):
            with suppress(Corrupt):
                repr(read_line(raw))


def _lines(session: Session, rows: tuple[Row, ...]) -> list[bytes]:
    return [session_line(session), *map(row_line, rows)]


def _odd_one(raw: bytes, chance: Random) -> bytes:
    body = json.loads(raw)
    path, _ = chance.choice([*paths_in(body)])
    return changed(body, path, chance.choice(CHANGES))[1]


async def _used(storage: Storage) -> None:
    """Everything that is done with a session; only our own errors are raised."""
    for config in ({}, {"accept_damaged": True, "context_window": 300,
                        "reserved_for_completion": 0}):  # fmt: skip
        with suppress(DragomanError):
            history = await ChatHistory.open(ONE, storage, config)
            for ask in (history.messages, history.last, history.window, history.branches,
                        history.usage, history.count):  # fmt: skip
                with suppress(DragomanError):
                    repr(await ask())
            with suppress(DragomanError):
                (await history.to_wire("anthropic", model="claude-sonnet-4-5")).to_bytes()
            repr(history.damaged)
    for look in (storage.sessions, storage.verify):
        with suppress(DragomanError):
            repr(await look())
    with suppress(DragomanError):
        copy = [line async for line in export(storage)]
        await import_lines(MemoryStorage(), copy)
    with suppress(DragomanError):
        await (await ChatHistory.open(ONE, storage)).add("more")


async def _with_odd_records(number: int) -> None:
    chance = Random(number)
    inner = MemoryStorage()
    is_sealed = chance.random() < 0.4
    storage = SealedStorage(inner, keys=KEYS, current="k") if is_sealed else inner
    session, rows = _plain()
    if is_sealed:
        await storage.restore(session, rows)
        session, rows = await taken(inner, ONE)
    field = chance.choice(("body", "body", "windows", "seal"))
    raw = getattr(session, field) if field != "body" else None
    if raw is None:
        at = chance.randrange(len(rows))
        odd = msgspec.structs.replace(rows[at], body=_odd_one(rows[at].body, chance))
        rows = (*rows[:at], odd, *rows[at + 1 :])
    else:
        session = msgspec.structs.replace(session, **{field: _odd_one(raw, chance)})
    await put(inner, session, rows)
    await _used(SealedStorage(inner, keys=KEYS, current="k") if is_sealed else inner)


async def _with_odd_file(number: int, folder: Path) -> None:
    chance = Random(number)
    storage = FileStorage(folder / str(number))
    await storage.open()
    await storage.restore(*_plain())
    await storage.close()
    files = [each for each in (folder / str(number)).rglob("*.jsonl") if each.is_file()]
    file = chance.choice(files)
    lines = file.read_bytes().split(b"\n")
    at = chance.choice([n for n, line in enumerate(lines) if line.startswith(b"{")])
    lines[at] = _odd_one(lines[at], chance)
    file.write_bytes(b"\n".join(lines))
    storage = FileStorage(folder / str(number))
    await storage.open()
    await _used(storage)
    await storage.close()


async def test_odd_records_in_a_store() -> None:
    """With and without encryption, checksums matching: nothing but our errors is raised."""
    for number in range(_SAMPLE):
        await _with_odd_records(number)


async def test_odd_lines_in_files(tmp_path: Path) -> None:
    """Whoever can write to a file of the store can write any line."""
    for number in range(_SAMPLE // 4):
        await _with_odd_file(number, tmp_path)


@pytest.mark.slow
async def test_many_odd_records(tmp_path: Path) -> None:
    """As above, many more."""
    for number in range(6_000):
        await _with_odd_records(1_000 + number)
    for number in range(1_000):
        await _with_odd_file(1_000 + number, tmp_path)


async def test_odd_lines_are_imported_or_reported() -> None:
    """An import goes on after lines that can't be read."""
    lines = _lines(*_plain())
    for number in range(_SAMPLE):
        chance = Random(number)
        at = chance.randrange(len(lines))
        given = [*lines[:at], _odd_one(lines[at], chance), *lines[at + 1 :]]
        with suppress(DragomanError):
            report = await import_lines(MemoryStorage(), given)
            repr(report)
