"""Many sessions: listing, searching and summing up by reading their files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dragoman.history.records import row_of
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.files.reading import read
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
    """The files of the sessions that are meant, open while they are looked at.

    One whose first line can't be read is nobody's; `verify` tells.
    """
    for digest in directory.digests(after=after):
        with read(directory, digest) as log:
            if log is not None and log.head is not None:
                session = log.session(None)
                if which.takes(session):
                    yield session, log


def _rows(directory: Directory, which: Filter) -> Iterator[tuple[Session, Row]]:
    for session, log in _logs(directory, which):
        for line in log.lines():
            if line.row is not None:
                yield session, row_of(line.row)
