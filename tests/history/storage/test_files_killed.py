"""kill -9 and power cuts at every step that changes the disk: a file is valid before or after."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from dragoman.history.records import message_in
from dragoman.history.storage.files import FileStorage
from dragoman.testing.conformance.stores.data import entry
from tests.environment import PATIENCE
from tests.history.golden import SESSION, WHO, rows
from tests.history.storage import earlier
from tests.history.storage.killed_files import SECTOR, change, change_until_killed
from tests.history.storage.test_versions import expect_golden
from tests.history.torture import IN_FULL

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files need POSIX locks")
OLD = msgspec.structs.replace(SESSION[1], chain="n1-16.17.17.2")
CUTS = 400 if IN_FULL else 40
processes = multiprocessing.get_context("forkserver")


# --- kill -9


def _killed_at(step: int, durability: str, change: str, where: Path) -> bool:
    process = processes.Process(target=change_until_killed, args=(step, durability, change, where))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode == -signal.SIGKILL


def _plant_earlier(root: Path) -> None:
    """A file of November 2026."""
    earlier.plant_files(root, [(OLD, rows(1))])


def _plant(root: Path) -> None:
    """A current file."""
    _plant_earlier(root)
    asyncio.run(change(FileStorage(root, blocking=True), "mend"))


PLANTS = {"earlier": _plant_earlier, "current": _plant}


def _states(tmp_path: Path, plant: str, change: str, durability: str) -> Iterator[Path]:
    """A copy of the store for each step at which its writer was killed, and the finished one."""
    step = 0
    while True:
        step += 1
        root = tmp_path / str(step)
        PLANTS[plant](root)
        is_killed = _killed_at(step, durability, change, root)
        yield root
        if not is_killed:
            assert step > 1
            return


async def _held(root: Path) -> int:
    """Assert that the session is intact; returns how many messages it has."""
    storage = FileStorage(root, blocking=True)
    await storage.open()
    assert [problem for problem in await storage.verify() if "incomplete" not in problem] == []
    held = await storage.count(WHO)
    await storage.append(WHO, [entry("later")], branch=2)
    await expect_golden(storage, 1, *["on"] * (held - 17), "later")
    await storage.close()
    return held


@pytest.mark.parametrize(
    ("plant", "change", "durability"),
    [
        ("earlier", "append", "process"),
        ("earlier", "append two", "power"),
        ("earlier", "mend", "power"),
        ("current", "append", "process"),
        ("current", "append two", "power"),
        ("current", "keep a window", "process"),
        ("current", "activate", "power"),
        ("current", "replace", "power"),
    ],
)
def test_a_file_is_intact_when_killed_at_any_step(
    tmp_path: Path, plant: str, change: str, durability: str
) -> None:
    """It has the state before or after; the next write works, and no damage is reported."""
    held = [asyncio.run(_held(root)) for root in _states(tmp_path, plant, change, durability)]
    added = {"append": 1, "append two": 2}.get(change, 0)
    assert set(held) == {17, 17 + added}  # all of it or nothing
    assert held == sorted(held)
    assert (held[0], held[-1]) == (17, 17 + added)


# --- power cuts


class Disk:
    """What has reached the disk of a file, and what may have: sectors, in any order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = path.stat().st_ino
        self.safe = path.read_bytes()
        self._pending: list[tuple[int, bytes]] = []

    def is_of(self, fd: int) -> bool:
        """Whether this is the file."""
        return os.fstat(fd).st_ino == self._inode

    def write(self, at: int, raw: bytes) -> None:
        """Buffer a write."""
        self._pending.append((at, raw))

    def sync(self) -> None:
        """Write the buffer to the disk."""
        self.safe, self._pending = self._path.read_bytes(), []

    def left(self, chance: Random) -> bytes:
        """A possible state after a power cut."""
        image = bytearray(self.safe)
        for at, raw in self._pending:
            for start in range(at - at % SECTOR, at + len(raw), SECTOR):
                if chance.random() < 0.5:
                    low, high = max(start, at), min(start + SECTOR, at + len(raw))
                    image.extend(bytes(max(0, high - len(image))))
                    image[low:high] = raw[low - at : high - at]
        return bytes(image)


async def test_a_power_cut_at_any_moment_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size in the first line may reach the disk at any time: what it covers is there."""
    chance = Random(7)
    storage = FileStorage(tmp_path / "in", durability="power", blocking=True)
    await storage.open()
    await storage.append(WHO, [entry("0")])
    path = tmp_path / "in" / WHO.digest[:2] / f"{WHO.digest}.jsonl"
    disk, acknowledged, images = Disk(path), 1, []
    pwrite, fsync = os.pwrite, os.fsync

    def writing(fd: int, raw: Any, at: int) -> int:
        if disk.is_of(fd):
            disk.write(at, bytes(raw))
        done = pwrite(fd, raw, at)
        images.append((acknowledged, disk.left(chance)))
        return done

    def syncing(fd: int) -> None:
        images.append((acknowledged, disk.left(chance)))
        fsync(fd)
        if disk.is_of(fd):
            disk.sync()

    monkeypatch.setattr(os, "pwrite", writing)
    monkeypatch.setattr(os, "fsync", syncing)
    for _ in range(CUTS):
        group = [entry("x" * chance.randrange(1500)) for _ in range(chance.randrange(1, 4))]
        await storage.append(WHO, group)
        acknowledged += len(group)
        images += [(acknowledged, disk.left(chance)) for _ in range(2)]
    await storage.close()
    monkeypatch.undo()
    assert len(images) > 4 * CUTS
    for number, (told, image) in enumerate(images):
        await _check_image(tmp_path / str(number), path, image, told)


async def _check_image(root: Path, path: Path, image: bytes, told: int) -> None:
    (root / path.parent.name).mkdir(parents=True)
    (root / path.parent.name / path.name).write_bytes(image)
    storage = FileStorage(root, blocking=True)
    await storage.open()
    assert [problem for problem in await storage.verify() if "incomplete" not in problem] == []
    found = await storage.rows(WHO)
    assert [row.seq for row in found] == list(range(1, len(found) + 1))
    assert told <= len(found) <= told + 3
    for row in found:
        message_in(row)
    appended = await storage.append(WHO, [entry("on")])
    assert appended.last_seq == len(found) + 1
    assert await storage.verify() == []
    await storage.close()
