"""Damage to files: any change of a byte, a line or a file is reported.

A short version; `make torture` does each a thousand times.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.errors import DragomanError
from dragoman.history.records import message_of
from dragoman.history.storage.files import FileStorage, ids
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.protocol import MAIN, Row
from tests.history.storage.making import ONE, TWO, WINDOW, entry
from tests.history.torture import IN_FULL, IN_SHORT

pytestmark = pytest.mark.skipif("not hasattr(__import__('os'), 'fork')", reason="POSIX files")
LONG = SessionIdentity(chat="long", user="Ana")
WHO = (ONE, TWO, LONG)
Way = Callable[[bytes, Random], bytes]
DAMAGED = "unreadable when repaired"


@pytest.fixture(autouse=True)
def _small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a table of ids even for short files."""
    monkeypatch.setattr(ids, "SMALL", 4000)
    monkeypatch.setattr(ids, "_LAG", 1000)


async def opened(root: Path) -> FileStorage:
    """A storage there, open."""
    storage = FileStorage(root, blocking=True)
    await storage.open()
    return storage


async def _make(root: Path) -> None:
    """Three sessions: with edits and removals, with branches, and a long one with a table."""
    storage = await opened(root)
    first = [entry(f"one {n}", id=f"a{n}", at=1000.0 + n, model="m") for n in range(12)]
    await storage.append(ONE, first[:3])
    for each in first[3:]:
        await storage.append(ONE, [each])
    await storage.rewrite(ONE, replaced=[entry("edited", id="a4", at=1004.0)], removed=["a7"])
    await storage.append(ONE, [entry(f"more {n}", id=f"b{n}", at=1100.0) for n in range(3)])
    for n in range(4):
        await storage.append(TWO, [entry(f"two {n}", id=f"c{n}", at=2000.0 + n)])
    await storage.fork(TWO, parent=MAIN, at=2)
    await storage.append(
        TWO, [entry("branch", id="d1", at=2100.0), entry("on", id="d2", at=2101.0)]
    )
    for n in range(2):
        await storage.append(TWO, [entry(f"leaf {n}", id=f"e{n}", at=2200.0)], branch=1)
    await storage.keep_windows(TWO, WINDOW)
    for n in range(60):
        await storage.append(
            LONG, [entry(f"long {n} " + "x" * (n % 7 * 30), id=f"f{n}", at=3000.0)]
        )
    await storage.close()


IDS = {ONE: ["a0", "a4", "a7", "a11", "b2"], TWO: ["c0", "d1", "e1"], LONG: ["f0", "f31", "f59"]}


class Seen:
    """What is read from a store, and whether damage was reported."""

    def __init__(self) -> None:
        self.read: dict[str, Any] = {}
        self.told: list[str] = []
        self.messages: dict[str, list[str]] = {}

    async def ask(self, what: str, answer: Any) -> None:
        """Record an answer, or our own error."""
        try:
            self.read[what] = await answer
        except DragomanError as error:
            self.told.append(f"{what}: {error}")


async def _texts(storage: FileStorage, who: SessionIdentity, seen: Seen) -> list[str]:
    history = await ChatHistory.open(who, storage=storage)
    found = [message.text for message in await history.messages()]
    seen.told += [f"damaged: {each!r}" for each in history.damaged]
    seen.messages[who.digest] = found
    return [*found, f"on {history.branch}"]


async def _tail(storage: FileStorage, who: SessionIdentity) -> list[str]:
    history = await ChatHistory.open(who, storage=storage)
    return [message.text for message in await history.tail(3)]


async def _one(storage: FileStorage, who: SessionIdentity, id: str) -> str:
    row = await storage.row(who, id)
    return "absent" if row is None else message_of(row.body).text


async def look(root: Path) -> Seen:
    """Read everything in every way, and check it."""
    seen = Seen()
    storage = await opened(root)
    for who in WHO:
        name = who.chat or ""
        await seen.ask(f"messages {name}", _texts(storage, who, seen))
        await seen.ask(f"tail {name}", _tail(storage, who))
        await seen.ask(f"count {name}", storage.count(who))
        for id in IDS[who]:
            await seen.ask(f"{name} {id}", _one(storage, who, id))
    await seen.ask("sessions", _listed(storage))
    await seen.ask("search", _searched(storage))
    await seen.ask("totals", storage.totals("day"))
    try:
        seen.told += [f"verify: {problem}" for problem in await storage.verify()]
    finally:
        await storage.close()
    return seen


async def _listed(storage: FileStorage) -> list[tuple[Any, ...]]:
    return [(s.identity, s.version, s.last_seq, s.forks) for s in await storage.sessions()]


async def _searched(storage: FileStorage) -> list[tuple[str, str]]:
    hits = await storage.search("long", limit=100)
    return sorted((hit.row.id, message_of(hit.row.body).text) for hit in hits)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undamaged store."""
    root = tmp_path_factory.mktemp("template") / "in"
    before = ids.SMALL, ids._LAG
    ids.SMALL, ids._LAG = 4000, 1000
    asyncio.run(_make(root))
    ids.SMALL, ids._LAG = before
    return root


@pytest.fixture(scope="module")
def before(template: Path) -> Seen:
    """What is read from it."""
    return asyncio.run(look(template))


def _copied(template: Path, tmp_path: Path) -> Path:
    root = tmp_path / "damaged"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(template, root)
    asyncio.run(_tabled(root))
    return root


async def _tabled(root: Path) -> None:
    """Create a table of ids: it belongs to its file, and the copy is another file."""
    storage = await opened(root)
    assert await storage.row(LONG, "f1") is not None
    await storage.close()


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.suffix in {".jsonl", ".ids"})


# --- kinds of damage


def flip(raw: bytes, chance: Random) -> bytes:
    """Replace a byte."""
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ chance.randrange(1, 256)]) + raw[at + 1 :]


def flip_bit(raw: bytes, chance: Random) -> bytes:
    """Flip one bit."""
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]


def cut(raw: bytes, chance: Random) -> bytes:
    """Cut off the end."""
    return raw[: chance.randrange(len(raw))]


def delete(raw: bytes, chance: Random) -> bytes:
    """Remove something from the middle."""
    at = chance.randrange(len(raw))
    return raw[:at] + raw[at + chance.choice((1, 2, 7, 100, 3000)) :]


def insert(raw: bytes, chance: Random) -> bytes:
    """Insert bytes."""
    at = chance.randrange(len(raw))
    return raw[:at] + chance.randbytes(chance.choice((1, 5, 300))) + raw[at:]


def zeros(raw: bytes, chance: Random) -> bytes:
    """Overwrite a disk block with zeros."""
    at = chance.randrange(len(raw))
    return raw[:at] + bytes(min(512, len(raw) - at)) + raw[at + 512 :]


def drop_line(raw: bytes, chance: Random) -> bytes:
    """Remove a line."""
    lines = raw.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def drop_lines_at_the_end(raw: bytes, chance: Random) -> bytes:
    """Cut the file at the end of an earlier line."""
    lines = raw.splitlines(keepends=True)
    return b"".join(lines[: chance.randrange(len(lines))])


def merge_lines(raw: bytes, chance: Random) -> bytes:
    """Remove a newline."""
    ends = [at for at, byte in enumerate(raw) if byte == ord("\n")] or [0]
    at = chance.choice(ends)
    return raw[:at] + raw[at + 1 :]


def double_line(raw: bytes, chance: Random) -> bytes:
    """Repeat a line."""
    lines = raw.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at:]])


def swap_lines(raw: bytes, chance: Random) -> bytes:
    """Exchange two lines."""
    lines = raw.splitlines(keepends=True)
    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


MANY = [flip, flip_bit, cut, delete]
SOME = [
    insert, zeros, drop_line, drop_lines_at_the_end, merge_lines, double_line, swap_lines,
]  # fmt: skip


def _damages(way: Way) -> Iterator[tuple[int, Random]]:
    times = (1_000 if way in MANY else 200) if IN_FULL else 8 if IN_SHORT else 25
    for number in range(times):
        yield number, Random(f"{way.__name__} {number}")


@pytest.mark.parametrize("way", [*MANY, *SOME])
def test_no_damage_is_silent(template: Path, before: Seen, tmp_path: Path, way: Way) -> None:
    """What is read is unchanged, or damage is reported; writes make nothing worse; repair works."""
    assert before.told == []
    for number, chance in _damages(way):
        root = _copied(template, tmp_path)
        path = chance.choice(_files(root))
        raw = path.read_bytes()
        path.write_bytes(way(raw, chance))
        where = f"{way.__name__} {number} {path.name}"
        after = asyncio.run(look(root))
        assert after.told or after.read == before.read, where
        asyncio.run(_goes_on(root, after, where))
        asyncio.run(_mended(root, where))


async def _goes_on(root: Path, after: Seen, where: str) -> None:
    """Add a message to each session, if possible, and check that no other is lost."""
    storage = await opened(root)
    for who in WHO:
        try:
            session = await storage.session(who)
            branch = MAIN if session is None else session.active
            await storage.append(who, [entry("new", id="new")], branch=branch)
        except DragomanError:
            continue
    await storage.close()
    later = await look(root)
    for digest, texts in after.messages.items():
        assert later.messages[digest][: len(texts)] == texts, where
    for who in WHO:
        for id in IDS[who]:
            what = f"{who.chat} {id}"
            assert later.read.get(what) == after.read.get(what), (where, what)


async def _mended(root: Path, where: str) -> None:
    """After `history repair` nothing is reported, and readable content is kept."""
    storage = await opened(root)
    sound: dict[str, list[str]] = {}
    for who in WHO:
        try:
            rows = await _readable(storage, who)
        except DragomanError as error:
            if "newer" not in str(error):
                raise
            return  # other versions are not repaired
        sound[who.digest] = [row.id for row in rows if damage_to(row) is None]
        seqs = [row.seq for row in rows if not _is_sound(row)]
        await storage.set_aside(who, seqs, DAMAGED)
    assert await storage.verify() == [], where
    for who in WHO:
        rows = await _readable(storage, who)
        assert [row.id for row in rows] == [i for i in sound[who.digest] if i], where
        history = await ChatHistory.open(who, storage=storage)
        await history.messages()
        assert history.damaged == (), where
        await history.add(Message.user("on"))
    await storage.close()


def _is_sound(row: Row) -> bool:
    try:
        message_of(row.body)
    except DragomanError:
        return False
    return damage_to(row) is None


async def _readable(storage: FileStorage, who: SessionIdentity) -> list[Row]:
    return [row for branch in range(3) for row in await storage.rows(who, branch=branch)]
