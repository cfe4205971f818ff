"""The write-ahead log: what SQLite does not tell of it.

SQLite reads a log up to the first frame whose checksum is wrong, and takes what follows for never
written: that is right after a crash, and silent where the log was damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_HEADER, _FRAME = 32, 24
_LOST = "the log beside the file (-wal) is damaged: {} writes in it can't be read"


def problems(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Writes that are in the log behind the last one that SQLite could read."""
    with suppress(OSError, sqlite3.OperationalError):  # no log, or nobody may look into it
        before = _read(connection)
        lost = sum(number > before for number in _commits(path.resolve()))
        if lost and _read(connection) == before:  # nobody wrote meanwhile
            return [_LOST.format(lost)]
    return []


def _read(connection: sqlite3.Connection) -> int:
    """How many frames SQLite knows of."""
    return int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])


def _commits(path: Path) -> Iterator[int]:
    """The numbers of the frames that ended a write, but for the last, which may be half written.

    Of this round: frames of an earlier one, which are still behind it, have another salt.
    """
    with path.with_name(f"{path.name}-wal").open("rb") as log:
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
