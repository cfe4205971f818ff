"""Finds messages by id: by scanning a small file, or with an index for a large one."""

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
    """The line of a message, or `None`."""
    with suppress(OSError), _table(directory, log) as table:
        if table is not None:
            covered = table.covered  # as of opening: the table may grow in the meantime
            return table.find(log, id) or _looked_for(log, covered, [id]).get(id)
    return _looked_for(log, 0, [id]).get(id)


def known(directory: Directory, log: Log, wanted: Iterable[str]) -> list[str]:
    """Which of these ids the file contains; the caller holds the lock."""
    if not _is_small(log):
        try:
            table = ids.nearly_up_to_date(directory, log)
            new = table.noted(log)
            if new is None:
                new = _looked_for(log, table.covered, wanted)
            return [id for id in wanted if id in new or table.find(log, id) is not None]
        except OSError:  # a full disk, for example: continue without an index
            ids.dropped(directory, log.digest)
    return list(_looked_for(log, 0, wanted))


def added(directory: Directory, log: Log, entries: Sequence[Entry], lines: Sequence[bytes]) -> None:
    """Records what has been written at the end of the file."""
    table = directory.tables.get(log.digest)
    if isinstance(table, ids.Ids) and not _is_small(log):
        *starts, end = accumulate(map(len, lines), initial=log.end - log.begin)
        pairs = zip((entry.id for entry in entries), starts, strict=True)
        table.note(pairs, starts[0], end)


@contextmanager
def moved(directory: Directory, log: Log) -> Generator[None]:
    """Keeps the index valid while the file is replaced by one with the same rows."""
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
    """The index, for a reader; built if it is missing and that is possible."""
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
    # For the current file, which may differ from the one that was opened. An index that is kept
    # open must have been removed, otherwise it would have been found.
    ids.dropped(directory, log.digest)
    with directory.reading(log.digest) as fd:
        if fd is not None:
            ids.nearly_up_to_date(directory, Log(fd, log.digest))
    return ids.opened(directory, log)


def _is_small(log: Log) -> bool:
    return log.end - log.begin <= ids.SMALL


def _looked_for(log: Log, covered: int, wanted: Iterable[str]) -> dict[str, Line]:
    """The lines with these ids, after the part that the index covers."""
    start = log.begin + covered
    likely = set(wanted)
    if log.end - start <= 2 * ids.SMALL:
        # Searching for the bytes first is much faster than parsing every line, and searching from
        # the end is faster still: Python's forward search is slowed down by the many quotes.
        raw = os.pread(log.fd, log.end - start, start)
        likely = {id for id in likely if raw.rfind(_quoted(id)) >= 0}
    lines = log.lines(start) if likely else ()
    return {line.row.id: line for line in lines if line.row is not None and line.row.id in likely}


def _quoted(id: str) -> bytes:
    try:
        return msgspec.json.encode(id)
    except UnicodeEncodeError:
        return b""  # encoded differently: every line has to be parsed
