"""Lists, searches and aggregates sessions by reading their files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dragoman.errors import Corrupt
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.files.placing import is_unreadable, placed
from dragoman.history.storage.files.reading import read
from dragoman.history.storage.files.salvaging import identity_in, salvaged
from dragoman.history.storage.protocol import Filter, Group, Hit, Row, Session, Total
from dragoman.history.storage.scanning import found, summed


def sessions(directory: Directory, which: Filter, limit: int | None, after: str) -> list[Session]:
    """See `Storage.sessions`."""
    return list(islice((session for session, _ in _logs(directory, which, after)), limit))


def search(directory: Directory, text: str, which: Filter, limit: int) -> list[Hit]:
    """See `Storage.search`."""
    return found(text, _rows(directory, which), limit)


def totals(directory: Directory, by: Group, which: Filter) -> list[Total]:
    """See `Storage.totals`."""
    return summed(by, _rows(directory, which))


def _logs(directory: Directory, which: Filter, after: str = "") -> Iterator[tuple[Session, Log]]:
    """The files of matching sessions, open while they are processed.

    A session with a damaged first line is included if its names are readable, with a tally that
    raises `Corrupt`, so that it can be repaired. `verify` reports the others.
    """
    for digest in directory.digests(after=after):
        with read(directory, digest) as log:
            session = None if log is None else _session(log)
            if log is not None and session is not None and which.takes(session):
                yield session, log


def _session(log: Log) -> Session | None:
    try:
        return log.session()
    except Corrupt:
        identity = identity_in(log) if log.head is None else log.head.fixed.identity
        return None if identity is None else salvaged(log, identity)


def _rows(directory: Directory, which: Filter) -> Iterator[tuple[Session, Row]]:
    for session, log in _logs(directory, which):
        for _, row in placed(log):
            if not is_unreadable(row):
                yield session, row
