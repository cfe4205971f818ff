"""Stores whose files are moved, removed or replaced by something else, open or not.

A short version; `make torture` does it a thousand times.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Never, TypeVar

import pytest

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.errors import DragomanError, StoreError
from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sqlite import SQLiteStorage
from tests.environment import PATIENCE
from tests.history.torture import IN_FULL

pytestmark = pytest.mark.skipif("not hasattr(__import__('os'), 'mkfifo')", reason="POSIX files")
T = TypeVar("T")
ANA, BEN = SessionIdentity(chat="1", user="Ana"), SessionIdentity(chat="2", user="Ben")
KEYS = {"2026": bytes(32)}


def _files(root: Path) -> Storage:
    return FileStorage(root / "store", blocking=True)


def _sqlite(root: Path) -> Storage:
    return SQLiteStorage(root / "store", blocking=True)


MAKING: dict[str, Callable[[Path], Storage]] = {
    "files": _files,
    "sqlite": _sqlite,
    "sealed files": lambda root: SealedStorage(_files(root), keys=KEYS, current="2026"),
    "sealed sqlite": lambda root: SealedStorage(_sqlite(root), keys=KEYS, current="2026"),
}


async def _opened(make: Callable[[Path], Storage], root: Path) -> Storage:
    storage = make(root)
    await storage.open()
    return storage


async def _texts(storage: Storage, who: SessionIdentity) -> list[str]:
    return [message.text for message in await (await ChatHistory.open(who, storage)).messages()]


# --- the store itself


def _remove(root: Path) -> None:
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _move(root: Path) -> None:
    (root / "store").rename(root / "elsewhere")


def _replace(root: Path) -> None:
    kept = root.parent / f"{root.name}-kept"
    root.rename(kept)
    shutil.copytree(kept, root)


def _loop(root: Path) -> None:
    _remove(root)
    (root / "store").symlink_to("store")


@pytest.mark.parametrize("make", MAKING.values(), ids=MAKING)
@pytest.mark.parametrize("attack", [_remove, _move, _replace, _loop])
async def test_nothing_is_written_to_a_store_that_is_gone(
    make: Callable[[Path], Storage], attack: Callable[[Path], None], tmp_path: Path
) -> None:
    """An append that would be lost is not acknowledged, and no history becomes empty."""
    root = tmp_path / "root"
    root.mkdir()
    storage = await _opened(make, root)
    history = await ChatHistory.open(ANA, storage)
    await history.add("one")
    attack(root)
    with pytest.raises(StoreError, match="moved, removed or replaced while it was open"):
        await history.add("two")
    with pytest.raises(StoreError, match="moved, removed or replaced while it was open"):
        await _texts(storage, ANA)
    await storage.close()


@pytest.mark.parametrize("make", MAKING.values(), ids=MAKING)
async def test_a_store_that_was_put_back_works_again(
    make: Callable[[Path], Storage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is resolved when it is opened."""
    monkeypatch.chdir(tmp_path)
    storage = await _opened(make, Path())
    history = await ChatHistory.open(ANA, storage)
    await history.add("one")
    monkeypatch.chdir("/")
    await history.add("two")
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").rename(tmp_path / "store")
    await history.add("three")
    assert await _texts(storage, ANA) == ["one", "two", "three"]
    await storage.close()


@pytest.mark.parametrize("what", ["/dev/zero", "/dev/full", "pipe", "directory"])
async def test_a_log_that_is_not_a_file_is_reported(what: str, tmp_path: Path) -> None:
    """`verify` neither waits for a pipe nor reads a device for ever."""
    storage = SQLiteStorage(tmp_path / "store", blocking=True)
    await storage.open()
    await (await ChatHistory.open(ANA, storage)).add("one")
    log = tmp_path / "store-wal"
    log.unlink()
    if what == "pipe":
        os.mkfifo(log)
    elif what == "directory":
        log.mkdir()
    else:
        log.symlink_to(what)
    assert "the log next to the file (-wal) is not a regular file" in await storage.verify()
    if what == "directory":
        log.rmdir()
    await storage.close()


_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1, 121)  # where SQLite's checkpoint lock is
print("held", flush=True)
sys.stdin.read()
"""


async def test_a_log_that_another_process_is_moving_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite then returns -1 as the number of readable writes."""
    monkeypatch.setattr("dragoman.history.storage.sqlite.checking._PAUSE", 0)
    storage = SQLiteStorage(tmp_path / "store", blocking=True)
    await storage.open()
    history = await ChatHistory.open(ANA, storage)
    for text in ("one", "two", "three"):
        await history.add(text)
    command = [sys.executable, "-c", _HOLD, str(tmp_path / "store-shm")]
    with subprocess.Popen(  # noqa: ASYNC220 - it is all that happens
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert await storage.verify() == []
        assert other.stdin is not None
        other.stdin.close()
    await storage.close()


# --- any of its files, at random


def _fifo(path: Path, _: Random) -> None:
    os.mkfifo(path)


def _folder(path: Path, _: Random) -> None:
    (path / "within").mkdir(parents=True)


def _link(path: Path, chance: Random) -> None:
    path.symlink_to(chance.choice([path.name, "/nowhere/at/all", "/dev/zero", "/dev/full"]))


def _nothing(_path: Path, _: Random) -> None:
    return


def _lines(path: Path, chance: Random) -> None:
    """Merge, repeat, drop, reverse or overwrite lines."""
    lines = path.read_bytes().split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            del lines[at]
        case 3:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] = bytes(len(lines[at]))
    path.write_bytes(b"\n".join(lines))


def _length(path: Path, chance: Random) -> None:
    size = path.stat().st_size
    os.truncate(path, chance.choice([0, chance.randrange(size + 1), size + 1, size + 4096]))


REPLACING = [_fifo, _folder, _link, _nothing]
CHANGING = [_lines, _lines, _length]


def _attack(root: Path, chance: Random) -> str:
    """Change a file or folder. Not -shm: SQLite maps it, and cutting it ends the process."""
    paths = [path for path in sorted(root.rglob("*")) if not path.name.endswith("-shm")]
    path = chance.choice(paths)
    if path.is_dir() or chance.random() < 0.5:
        way = chance.choice(REPLACING)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        way = chance.choice(CHANGING)
    way(path, chance)
    return f"{way.__name__} {path.relative_to(root)}"


class Observer:
    """Uses a store as if nothing were wrong, and records what is reported."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.told: list[str] = []

    async def tried(self, action: Awaitable[T]) -> T | None:
        """The result of an action; None if it was rejected."""
        signal.alarm(int(PATIENCE))
        try:
            return await action
        except DragomanError as error:
            self.told.append(str(error))
            return None
        finally:
            signal.alarm(0)

    async def read(self, who: SessionIdentity) -> list[str]:
        """The texts of a session."""
        history = await ChatHistory.open(who, self.storage)
        texts = [message.text for message in await history.messages()]
        self.told += [each.reason for each in history.damaged]
        return texts

    async def add(self, text: str) -> str:
        """Append to a session."""
        message: Message = await (await ChatHistory.open(ANA, self.storage)).add(text)
        return message.text


@pytest.fixture
def _alarm() -> Iterator[None]:
    def hangs(_number: int, _frame: FrameType | None) -> Never:
        pytest.fail("it hangs")

    before: Any = signal.signal(signal.SIGALRM, hangs)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_alarm")
@pytest.mark.parametrize("make", MAKING.values(), ids=MAKING)
@pytest.mark.parametrize("number", range(250 if IN_FULL else 8))
def test_any_change_of_the_files_is_reported(
    make: Callable[[Path], Storage], number: int, tmp_path: Path
) -> None:
    """Only our own errors and no hang; differences are reported; acknowledged writes are kept.

    Except for what is gone without a trace: a session's file, or a store that was not open and is
    empty now.
    """
    asyncio.run(_survived(make, tmp_path, Random(number)))


async def _survived(make: Callable[[Path], Storage], root: Path, chance: Random) -> None:
    storage = await _opened(make, root)
    wanted: dict[SessionIdentity, list[str]] = {}
    for who in (ANA, BEN):
        wanted[who] = [f"{n} {'x' * chance.choice([0, 3000])}" for n in range(chance.randint(1, 7))]
        history = await ChatHistory.open(who, storage)
        for text in wanted[who]:
            await history.add(text)
    is_open = chance.random() < 0.5
    if not is_open:
        await storage.close()
        storage = make(root)
    what = _attack(root, chance)
    observer = Observer(storage)
    await observer.tried(storage.open())
    found = {who: await observer.tried(observer.read(who)) for who in chance.sample([ANA, BEN], 2)}
    await observer.tried(storage.sessions())
    observer.told += await observer.tried(storage.verify()) or []
    is_emptied = what.startswith(("_nothing", "_folder")) or what == "_length store"
    for who, texts in found.items():
        is_traceless = texts == [] and is_emptied
        assert observer.told or is_traceless or texts == wanted[who], what
    if await observer.tried(observer.add("later")) is not None:
        later = await observer.tried(observer.read(ANA))
        assert later is None or "later" in later, what
    await observer.tried(storage.delete(BEN))
    await observer.tried(storage.forget("Ana"))
    with suppress(DragomanError):
        await storage.close()
