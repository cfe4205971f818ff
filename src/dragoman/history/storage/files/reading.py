"""What is read of a session's file; no lock is needed for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from dragoman.history.identity import SessionIdentity
from dragoman.history.records import row_of
from dragoman.history.storage.files import finding
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.protocol import (
    MAIN,
    Row,
    Session,
)


@contextmanager
def read(directory: Directory, digest: str) -> Generator[Log | None]:
    """What a session's file holds; None where there is none."""
    with directory.reading(digest) as fd:
        log = None if fd is None else Log(fd, digest)
        # An empty file is what a power cut leaves of one that was never brought to the disk.
        yield None if log is None or log.size == 0 else log


def session(directory: Directory, identity: SessionIdentity) -> Session | None:
    """The session; None where there is none."""
    with read(directory, identity.digest) as log:
        return None if log is None else log.session(identity)


def rows(
    directory: Directory,
    identity: SessionIdentity,
    branch: int,
    after: int,
    upto: int | None,
    limit: int | None,
    newest: bool,  # noqa: FBT001 - called with what `Storage.rows` was given
) -> list[Row]:
    """See `Storage.rows`."""
    with read(directory, identity.digest) as log:
        if log is None or limit == 0:
            return []
        if newest and limit is not None:
            return _newest(log, branch, after, upto, limit)
        found: list[Row] = []
        for line in log.lines_after(after):
            if line.row is None or line.row.branch != branch:
                continue
            if (upto is not None and line.row.seq > upto) or len(found) == limit:
                break
            found.append(row_of(line.row))
        return found


def _newest(log: Log, branch: int, after: int, upto: int | None, limit: int) -> list[Row]:
    found: list[Row] = []
    for line in log.lines_before(upto):
        if line.row is None:
            continue
        if line.row.seq <= after or len(found) == limit:
            break
        if line.row.branch == branch:
            found.append(row_of(line.row))
    found.reverse()
    return found


def row(directory: Directory, identity: SessionIdentity, id: str) -> Row | None:
    """One message, on any branch."""
    with read(directory, identity.digest) as log:
        if log is None:
            return None
        line = finding.line_of(directory, log, id)
        return None if line is None or line.row is None else row_of(line.row)


def count(directory: Directory, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`."""
    with read(directory, identity.digest) as log:
        if log is None:
            return 0
        is_all = branch is None or (branch == MAIN and log.head is not None and not log.head.forks)
        if is_all:
            return finding.count(directory, log)
        return sum(line.row is not None and line.row.branch == branch for line in log.lines())
