"""Finding messages by id: in a small file by looking, in a large one with a table."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate

import msgspec

from dragoman.errors import StoreError
from dragoman.history.storage.files import ids
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.log import Line, Log
from dragoman.history.storage.protocol import Entry


def line_of(directory: Directory, log: Log, id: str) -> Line | None:
    """The line of a message; None where there is none."""
    with suppress(OSError), _table(directory, log) as table:
        if table is not None:
            covered = table.covered  # as it was when the table was opened: it may grow meanwhile
            return table.find(log, id) or _looked_for(log, covered, [id]).get(id)
    return _looked_for(log, 0, [id]).get(id)


def known(directory: Directory, log: Log, wanted: Iterable[str]) -> list[str]:
    """Which of these ids the file holds; for who holds the lock."""
    if not _is_small(log):
        try:
            table = ids.nearly_up_to_date(directory, log)
            new = table.noted(log)
            if new is None:
                new = _looked_for(log, table.covered, wanted)
            return [id for id in wanted if id in new or table.find(log, id) is not None]
        except OSError:  # a full disk, say: it can be done without
            ids.dropped(directory, log.digest)
    return list(_looked_for(log, 0, wanted))


def added(directory: Directory, log: Log, entries: Sequence[Entry], lines: Sequence[bytes]) -> None:
    """Say what has been written at the end of the file."""
    table = directory.tables.get(log.digest)
    if isinstance(table, ids.Ids) and not _is_small(log):
        *starts, end = accumulate(map(len, lines), initial=log.end - log.begin)
        pairs = zip((entry.id for entry in entries), starts, strict=True)
        table.note(pairs, starts[0], end)


@contextmanager
def moved(directory: Directory, log: Log) -> Generator[None]:
    """Keep the table through the writing of a new file that has the same rows."""
    table = None
    with suppress(OSError):
        table = ids.opened(directory, log, os.O_RDWR)
    try:
        yield
        if table is not None:
            with suppress(OSError), directory.reading(log.digest) as fd:
                if fd is not None:
                    table.stamp(Log(fd, log.digest))
    finally:
        if table is not None:
            table.close()


@contextmanager
def _table(directory: Directory, log: Log) -> Generator[ids.Ids | None]:
    """The table, for a reader: one that is missing is made, if that can be done."""
    table = None if _is_small(log) else ids.opened(directory, log)
    if table is None and not _is_small(log):
        with suppress(OSError, StoreError), directory.locked(log.digest):
            table = _made(directory, log)
    try:
        yield table
    finally:
        if table is not None:
            table.close()


def _made(directory: Directory, log: Log) -> ids.Ids | None:
    # For the file that is there now, which may be another one than was opened. One that is kept
    # open has been removed, or it would have been found.
    ids.dropped(directory, log.digest)
    with directory.reading(log.digest) as fd:
        if fd is not None:
            ids.nearly_up_to_date(directory, Log(fd, log.digest))
    return ids.opened(directory, log)


def _is_small(log: Log) -> bool:
    return log.end - log.begin <= ids.SMALL


def _looked_for(log: Log, covered: int, wanted: Iterable[str]) -> dict[str, Line]:
    """The lines with these ids, behind what is covered."""
    start = log.begin + covered
    likely = set(wanted)
    if log.end - start <= 2 * ids.SMALL:
        # Looking for the bytes first is far quicker than reading every line, and from the end it is
        # quicker still: Python's search forwards stumbles over the many quotes.
        raw = os.pread(log.fd, log.end - start, start)
        likely = {id for id in likely if raw.rfind(_quoted(id)) >= 0}
    lines = log.lines(start) if likely else ()
    return {line.row.id: line for line in lines if line.row is not None and line.row.id in likely}


def _quoted(id: str) -> bytes:
    try:
        return msgspec.json.encode(id)
    except UnicodeEncodeError:
        return b""  # written in another way: every line has to be read
