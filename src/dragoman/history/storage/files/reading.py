"""Reads a session's file; no lock is needed."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files import finding
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.lines import row_of
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.files.placing import (
    Placed,
    is_unreadable,
    placed,
    placed_after,
    placed_before,
)
from dragoman.history.storage.protocol import MAIN, Row, Session


@contextmanager
def read(directory: Directory, digest: str, *, is_locked: bool = False) -> Generator[Log | None]:
    """The content of a session's file; `None` if it does not exist."""
    with directory.reading(digest) as fd:
        log = None if fd is None else Log(fd, digest)
        if log is not None and log.head is None and not is_locked:
            log = _read_again(directory, log)
        yield log


def _read_again(directory: Directory, log: Log) -> Log:
    """Reads it again with the lock: its first line may have been overwritten while reading."""
    with suppress(OSError, StoreError), directory.locked(log.digest):
        return Log(log.fd, log.digest)
    return log


def session(directory: Directory, identity: SessionIdentity) -> Session | None:
    """The session, or `None`."""
    with read(directory, identity.digest) as log:
        return None if log is None else log.session()


def rows(
    directory: Directory,
    identity: SessionIdentity,
    branch: int,
    after: int,
    upto: int | None,
    limit: int | None,
    newest: bool,  # noqa: FBT001 - called with the arguments of `Storage.rows`
) -> list[Row]:
    """See `Storage.rows`."""
    with read(directory, identity.digest) as log:
        if log is None or limit == 0:
            return []
        if newest and limit is not None:
            last = placed_before(log, upto, branch, limit)
            return _chosen(last, branch, after, upto)[-limit:]
        return _chosen(placed_after(log, after), branch, after, upto, limit)


def _chosen(
    lines: Iterable[Placed], branch: int, after: int, upto: int | None, limit: int | None = None
) -> list[Row]:
    found: list[Row] = []
    for _, row in lines:
        if row.branch != branch or row.seq <= after:
            continue
        if upto is not None and row.seq > upto:
            break
        # An unreadable line may share a number with its neighbour: they stay together.
        if limit is not None and len(found) >= limit and row.seq != found[-1].seq:
            break
        found.append(row)
    return found


def row(directory: Directory, identity: SessionIdentity, id: str) -> Row | None:
    """A message by id, on any branch."""
    with read(directory, identity.digest) as log:
        if log is None:
            return None
        line = finding.line_of(directory, log, id)
        return None if line is None or line.row is None else row_of(line.row)


def count(directory: Directory, identity: SessionIdentity, branch: int | None) -> int:
    """See `Storage.count`; unreadable lines don't count."""
    with read(directory, identity.digest) as log:
        if log is None:
            return 0
        # With branches, the caller may want to know whether rows are missing, so they are counted.
        is_linear = log.head is not None and not log.head.fixed.forks
        if is_linear and branch in {None, MAIN} and not log.is_cut and log.rows is not None:
            return log.rows
        return sum(
            not is_unreadable(row) and branch in {None, row.branch} for _, row in placed(log)
        )
