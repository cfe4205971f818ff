"""A process that changes a file and is killed at some step; small, as it is started often."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.protocol import Storage
from dragoman.testing.conformance.stores.data import entry
from tests.history.golden import SESSION, WHO, rows

SECTOR = 512
_CALLS = ("open", "write", "pwrite", "fsync", "rename", "ftruncate", "unlink", "mkdir")
CHANGES: dict[str, Callable[[Storage], Any]] = {
    "append": lambda storage: storage.append(WHO, [entry("on")], branch=2),
    "append two": lambda storage: storage.append(WHO, [entry("on"), entry("on")], branch=2),
    "mend": lambda storage: storage.set_aside(WHO, [], "nothing"),
    "keep a window": lambda storage: storage.keep_windows(WHO, SESSION[1].window),
    "replace": lambda storage: storage.rewrite(WHO, replaced=rows(1)[:1]),
    "activate": lambda storage: storage.activate(WHO, 2),
}


class _Pieces(io.RawIOBase):
    """A file that is written in pieces, each by a counted call."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd

    def fileno(self) -> int:
        """The open file."""
        return self._fd

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, raw: Any) -> int:
        """Write some of it."""
        return os.write(self._fd, bytes(raw[:2000]))

    def close(self) -> None:
        """Let go of it."""
        if not self.closed:
            os.close(self._fd)
            super().close()


def change_until_killed(step: int, durability: Any, what: str, where: Path) -> None:
    """Change the golden session; SIGKILL at the nth call that changes the disk, or within it."""
    left = [step]

    def counting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return call(*arguments, **named)
            left[0] -= 1
            if left[0] == 0:
                if name in {"write", "pwrite"} and not _is_atomic(*arguments):
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2], *arguments[2:])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return counted

    for name in _CALLS:
        setattr(os, name, counting(name, getattr(os, name)))
    os.fdopen = lambda fd, *_: io.BufferedWriter(_Pieces(fd), 2000)  # type: ignore[assignment]
    asyncio.run(change(FileStorage(where, durability=durability, blocking=True), what))


def _is_atomic(_fd: int, raw: bytes, at: int = SECTOR) -> bool:
    """Whether a write is atomic: within one sector, and so within one page."""
    return at + len(raw) <= SECTOR


async def change(storage: Storage, what: str) -> None:
    """Open it, and do one of `CHANGES`."""
    await storage.open()
    await CHANGES[what](storage)
