"""Detects damage to the write-ahead log, which SQLite does not report.

SQLite reads a log up to the first frame with a wrong checksum, and ignores the rest. That is right
after a crash, but silently drops writes if the log was damaged.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from time import sleep

_HEADER, _FRAME = 32, 24
_TRIES, _PAUSE = 100, 0.01  # seconds
_IRREGULAR = "the log next to the file (-wal) is not a regular file"
_LOST = "the log next to the file (-wal) is damaged: {} writes in it are unreadable"


def problems(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Reports writes in the log after the last one that SQLite could read."""
    try:
        before = _read(connection)
        if before is None:
            return []
        lost = sum(number > before for number in _commits(path))
        if lost and _read(connection) == before:  # not changed in the meantime
            return [_LOST.format(lost)]
    except _IrregularError:
        return [_IRREGULAR]
    except (OSError, sqlite3.OperationalError):
        return []  # no log, or not accessible
    return []


class _IrregularError(OSError):
    """The log is a pipe, a device or a directory."""


def _opened(name: str) -> int:
    # A pipe would wait for a writer, a device may never end.
    log = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(log).st_mode):
        return log
    os.close(log)
    raise _IrregularError


def _read(connection: sqlite3.Connection) -> int | None:
    """The number of frames that SQLite could read; `None` if it can't tell."""
    for _ in range(_TRIES):
        frames = int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])
        if frames >= 0:
            return frames
        sleep(_PAUSE)  # another process is moving the log into the file
    return None


def _commits(path: Path) -> Iterator[int]:
    """The numbers of frames that end a write, except the last, which may be incomplete.

    Frames of an earlier generation, which may follow the current ones, have another salt.
    """
    with os.fdopen(_opened(f"{os.path.realpath(path)}-wal"), "rb") as log:
        header = log.read(_HEADER)
        size = int.from_bytes(header[8:12], "big")
        salt, number, last = header[16:24], 0, None
        while len(frame := log.read(_FRAME)) == _FRAME:
            number += 1
            if frame[8:16] == salt:
                if last is not None:
                    yield last
                last = number if any(frame[4:8]) else None
            log.seek(size, 1)
