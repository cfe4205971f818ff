"""Checks a file: its structure, and its search index. Sessions are checked by the ledger."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

from dragoman.history.storage import sql
from dragoman.history.storage.sqlite.search import has_index

_DELETED = "SELECT count(*) FROM texts WHERE rowid NOT IN (SELECT rowid FROM messages)"
_ABSENT = """
SELECT count(*) FROM messages WHERE rowid NOT IN (SELECT rowid FROM texts)
AND rowid <= (SELECT rowid FROM texts ORDER BY rowid DESC LIMIT 1)"""


def problems(connection: sqlite3.Connection) -> list[str]:
    """Structural problems of the file; the rows of sessions are checked separately."""
    found: list[str] = []
    for part in (_structure, _orphans, _index):
        _ask(part, connection, found)
    return found


def _ask(
    part: Callable[[sqlite3.Connection], Iterator[str]],
    connection: sqlite3.Connection,
    found: list[str],
) -> None:
    try:
        found += part(connection)
    except sqlite3.DatabaseError as error:
        if is_undecodable(error):
            raise  # retried by the caller with lenient decoding
        reason = getattr(error, "sqlite_errorname", "unknown reason")
        found.append(f"part of the file can't be read ({reason})")


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    for (text,) in connection.execute("PRAGMA integrity_check(20)"):
        if text != "ok":
            yield str(text)


def _orphans(connection: sqlite3.Connection) -> Iterator[str]:
    number = connection.execute(sql.ORPHANS.replace("our.", "main.")).fetchone()[0]
    if number:
        yield sql.ORPHANED.format(number)


def _index(connection: sqlite3.Connection) -> Iterator[str]:
    if not has_index(connection):
        return
    left = connection.execute(_DELETED).fetchone()[0]
    if left:
        yield f"the search index contains {left} deleted messages"
    absent = connection.execute(_ABSENT).fetchone()[0]
    if absent:
        yield f"the search index lacks {absent} messages"
    if not is_index_sound(connection):
        yield "the search index is damaged; run `dragoman history repair` to rebuild it"


def is_index_sound(connection: sqlite3.Connection) -> bool:
    """Whether the index matches its texts; also true if that can't be checked."""
    try:
        connection.execute("INSERT INTO texts (texts) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY}
    return True


def mend_index(connection: sqlite3.Connection) -> None:
    """Removes a damaged index; the next search rebuilds it."""
    if has_index(connection) and [*_index(connection)]:
        connection.execute("DROP TABLE texts")


def lenient(raw: bytes) -> str:
    """Decodes invalid text so that it can be shown as damaged."""
    return raw.decode("utf-8", "replace")


def is_undecodable(error: Exception) -> bool:
    """Whether a column holds invalid text; SQLite's message would quote it."""
    told = ""
    with suppress(IndexError):
        told = str(error.args[0])
    return isinstance(error, sqlite3.OperationalError) and told.startswith("Could not decode")


# --- detects damage to the write-ahead log, which SQLite does not report
#
# SQLite reads a log up to the first frame with a wrong checksum, and ignores the rest. That is
# right after a crash, but silently drops writes if the log was damaged.


_HEADER, _FRAME = 32, 24
_TRIES, _PAUSE = 100, 0.01  # seconds
_IRREGULAR = "the log next to the file (-wal) is not a regular file"
_LOST = "the log next to the file (-wal) is damaged: {} writes in it are unreadable"


def problems_of_log(connection: sqlite3.Connection, path: Path) -> list[str]:
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
