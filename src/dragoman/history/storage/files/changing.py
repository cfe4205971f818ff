"""Opens a session's file for a change, and tidies it up; the caller holds the lock."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from time import time

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files import ids
from dragoman.history.storage.files.directory import Directory, place, write_at_end
from dragoman.history.storage.files.lines import Aside, aside_line
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.protocol import MAIN, NO_BRANCH, Fork, Session, conflict

_TORN = "incomplete: the line, or the write that it belongs to, was never finished"


@contextmanager
def writing(directory: Directory, identity: SessionIdentity, digest: str) -> Generator[Log | None]:
    """The file, open for writing, without an incomplete end."""
    fd = directory.opened(place(digest, ".jsonl"), os.O_RDWR, is_locked=True)
    try:
        log = None if fd is None else Log(fd, digest)
        # A file with an unreadable first line is not touched.
        if log is not None and not log.is_tidy and log.head is not None:
            _tidy(directory, identity, log)
        yield log
    finally:
        if fd is not None:
            os.close(fd)


def _tidy(directory: Directory, identity: SessionIdentity, log: Log) -> None:
    """Sets aside what a crash left at the end of the file, and terminates the last line."""
    if log.is_cut:
        ids.dropped(directory, log.digest)  # its information about the end is outdated
    if log.end < log.size:
        keep_aside(directory, identity, [(log.end, log.torn())], _TORN)
        os.ftruncate(log.fd, log.end)
        log.size = log.end
    if log.is_open_ended:
        write_at_end(log.fd, log.end, [b"\n"], directory.sync)
        log.close_end()


def keep_aside(
    directory: Directory,
    identity: SessionIdentity,
    pieces: Iterable[tuple[int, bytes]],
    reason: str,
) -> None:
    """Appends to the records set aside of a session; never overwrites any."""
    now = time()
    lines = [aside_line(Aside(identity, now, at, reason, raw)) for at, raw in pieces]
    if lines:
        directory.add(identity.digest, ".aside", b"".join(lines))


def new(identity: SessionIdentity, at: float) -> Session:
    """A new session."""
    return Session(identity, version=0, last_seq=0, created_at=at, updated_at=at)


def expect(version: int, expected: int | None) -> None:
    """Raises if the session has another version."""
    if expected is not None and version != expected:
        raise conflict(expected, version)


def expect_branch(forks: Iterable[Fork], branch: int) -> None:
    """Raises if the session has no such branch."""
    if branch != MAIN and all(fork.number != branch for fork in forks):
        raise NotFound(NO_BRANCH)
