"""Sessions in files, called as async programs do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from dragoman.history.storage.files import FileStorage, ids
from dragoman.history.storage.protocol import Storage
from tests.history.storage.damaging import LONG, Damage, altered, opened
from tests.history.torture import IN_FULL, IN_SHORT


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh directory."""
    yield lambda: FileStorage(tmp_path / "histories")


# --- damage


def overwrite(raw: bytes, chance: Random) -> bytes:
    """Replace a byte."""
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ chance.randrange(1, 256)]) + raw[at + 1 :]


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


_MANY, _SOME = (1000, 200) if IN_FULL else (3, 3) if IN_SHORT else (25, 25)
_WAYS: dict[str, Callable[[bytes, Random], bytes]] = {
    "overwrite": overwrite,
    "flip": lambda raw, chance: altered(chance, "flip", raw),
    "cut": lambda raw, chance: altered(chance, "cut", raw),
    "delete": delete,
    "insert": insert,
    "zeros": zeros,
    "drop a line": drop_line,
    "drop lines at the end": drop_lines_at_the_end,
    "merge lines": merge_lines,
    "double a line": double_line,
    "swap lines": swap_lines,
}
BEYOND = ("newer",)
"""What no repair reaches: what another version of the package has written, as it seems."""
KINDS = {kind: _MANY if at < 4 else _SOME for at, kind in enumerate(_WAYS)}


class FilesDamager:
    """A directory; a table of ids belongs to its file, and is made anew in each copy."""

    def __init__(self, folder: Path) -> None:
        self._kept, self._root = folder / "kept", folder / "damaged"

    def new(self) -> Storage:
        """See `Damager`."""
        return FileStorage(self._root, blocking=True)

    async def keep(self) -> None:
        """See `Damager`."""
        self._root.rename(self._kept)
        await self.put_back()

    async def put_back(self) -> None:
        """See `Damager`."""
        shutil.rmtree(self._root, ignore_errors=True)
        shutil.copytree(self._kept, self._root)
        async with opened(self) as storage:
            assert await storage.row(LONG, "f1") is not None

    def damage(self, chance: Random, kind: str) -> Damage:
        """See `Damager`."""
        files = sorted(path for path in self._root.rglob("*") if path.suffix in {".jsonl", ".ids"})
        path = chance.choice(files)
        path.write_bytes(_WAYS[kind](path.read_bytes(), chance))
        return Damage(f"{kind} {path.name}")


@contextmanager
def damaged(tmp_path: Path) -> Generator[FilesDamager]:
    """A directory to damage, with a table of ids even for short files."""
    if not hasattr(os, "fork"):
        pytest.skip("POSIX files")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ids, "_SMALL", 4000)
        yield FilesDamager(tmp_path)
