"""What changes a session's file, under its lock: it grows, or is written anew as a whole."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from time import time
from typing import Any

import msgspec

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import session_line
from dragoman.history.storage.files import finding, ids
from dragoman.history.storage.files.directory import Directory, place, write_at_end
from dragoman.history.storage.files.lines import Aside, aside_line, batch, line_of
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.files.reading import read
from dragoman.history.storage.protocol import (
    CLEARED,
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Appended,
    DuplicateIds,
    Entry,
    Fork,
    Row,
    Session,
    conflict,
    placed,
)

_TORN = "torn off: the line, or the write that it belongs to, was never completed"
_UNREADABLE = "the line can't be read"


# --- adding


def append(
    directory: Directory,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
) -> Appended:
    """See `Storage.append`."""
    digest = identity.digest
    with directory.locked(digest), _writing(directory, identity, digest) as log:
        head = _new(identity, entries[0].at) if log is None else log.session(identity)
        _expect(head, expected)
        _expect_branch(head, branch)
        _expect_new(directory, log, entries)
        lines = batch(entries, head.last_seq + 1, branch, head.version + 1)
        if log is None:
            first = session_line(head) + b"\n"
            directory.replace(digest, ".jsonl", [first, *lines])
        else:
            _add(directory, log, lines)
            finding.added(directory, log, entries, lines)
    return Appended(head.version + 1, head.last_seq + len(entries))


@contextmanager
def _writing(directory: Directory, identity: SessionIdentity, digest: str) -> Generator[Log | None]:
    """The file, open for the holder of the lock, without a torn end."""
    fd = directory.opened(place(digest, ".jsonl"), os.O_RDWR | os.O_APPEND)
    try:
        log = None if fd is None else Log(fd, digest)
        if log is None or log.size == 0:
            yield None
        else:
            if log.head is None:
                log.session(identity)  # raises where nothing can be told: it is not touched
            _cut(directory, identity, log)
            yield log
    finally:
        if fd is not None:
            os.close(fd)


def _cut(directory: Directory, identity: SessionIdentity, log: Log) -> None:
    """Set aside what a crash left at the end of the file."""
    if log.end < log.size:
        keep_aside(directory, identity, [(log.end, log.torn())], _TORN)
        os.ftruncate(log.fd, log.end)
        log.size = log.end


def _add(directory: Directory, log: Log, lines: Sequence[bytes]) -> None:
    # The disk may take the blocks of a write in any order: the line that makes it count goes last.
    one_by_one = directory.is_synced and len(lines) > 1
    chunks = [b"".join(lines[:-1]), lines[-1]] if one_by_one else [b"".join(lines)]
    write_at_end(log.fd, log.end, chunks, directory.sync)


def _expect_new(directory: Directory, log: Log | None, entries: Sequence[Entry]) -> None:
    wanted = {entry.id for entry in entries}
    known = [] if log is None else finding.known(directory, log, wanted)
    if known or len(wanted) < len(entries):
        raise DuplicateIds(known)


# --- writing the file anew


def rewrite(
    directory: Directory,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
) -> int:
    """See `Storage.rewrite`."""
    changes: dict[str, Entry | None] = {entry.id: entry for entry in replaced}
    changes.update(dict.fromkeys(removed))
    with _changing(directory, identity, expected) as (log, head):
        there = {line.row.id for line in log.lines() if line.row and line.row.id in changes}
        if len(there) < len(changes) or len(set(removed)) < len(removed):
            raise NotFound(NO_MESSAGE)
        written = _written(head, time())
        _put(directory, log, written, _changed(log, changes))
    return written.version


def _changed(log: Log, changes: dict[str, Entry | None]) -> Iterator[bytes]:
    for line in log.lines():
        if line.row is None or line.row.id not in changes:
            yield line.raw + b"\n"
            continue
        entry = changes[line.row.id]
        if entry is not None:
            yield line_of(placed(entry, line.row.seq, line.row.branch))


def clear(directory: Directory, identity: SessionIdentity, at: float, expected: int | None) -> int:
    """See `Storage.clear`."""
    with directory.locked(identity.digest), _writing(directory, identity, identity.digest) as log:
        head = _new(identity, at) if log is None else log.session(identity)
        _expect(head, expected)
        written = _written(head, at, **CLEARED)
        _put(directory, log, written, ())
        return written.version


def fork(
    directory: Directory,
    identity: SessionIdentity,
    parent: int,
    at: int,
    expected: int | None,
) -> int:
    """See `Storage.fork`."""
    with _changing(directory, identity, expected) as (log, head):
        _expect_branch(head, parent)
        number = max((fork.number for fork in head.forks), default=MAIN) + 1
        forks = (*head.forks, Fork(number, parent, at))
        _put_first(directory, log, _written(head, time(), active=number, forks=forks))
        return number


def activate(directory: Directory, identity: SessionIdentity, branch: int) -> None:
    """See `Storage.activate`."""
    with _changing(directory, identity) as (log, head):
        _expect_branch(head, branch)
        if head.active != branch:
            _put_first(directory, log, msgspec.structs.replace(head, active=branch))


def keep_window(directory: Directory, identity: SessionIdentity, window: bytes | None) -> None:
    """See `Storage.keep_window`."""
    with _changing(directory, identity) as (log, head):
        if head.window != window:
            _put_first(directory, log, msgspec.structs.replace(head, window=window))


def delete(directory: Directory, identity: SessionIdentity) -> bool:
    """See `Storage.delete`; what was set aside stays."""
    with directory.locked(identity.digest), read(directory, identity.digest) as log:
        directory.remove(identity.digest, [".ids", ".jsonl", ".tmp"])
        return log is not None


def restore(directory: Directory, copy: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    identity = copy.identity
    with directory.locked(identity.digest), _writing(directory, identity, identity.digest) as log:
        if log is not None and log.session(identity).version >= copy.version:
            return False
        if log is not None:
            _sweep(directory, identity, log, frozenset(), _UNREADABLE)
        ordered = sorted(rows, key=lambda row: row.seq)
        _put(directory, log, copy, map(line_of, ordered))
        return True


def set_aside(
    directory: Directory, identity: SessionIdentity, seqs: Sequence[int], reason: str
) -> int:
    """See `Storage.set_aside`; lines that have no number any more go with them."""
    with _changing(directory, identity) as (log, head):
        gone = _sweep(directory, identity, log, frozenset(seqs), reason)
        kept = (line.raw + b"\n" for line in log.lines() if line.start not in gone)
        _put(directory, log, _written(head, time()), kept)
        return len(gone)


def _sweep(
    directory: Directory,
    identity: SessionIdentity,
    log: Log,
    seqs: frozenset[int],
    reason: str,
) -> set[int]:
    """Copy broken lines to where they are kept; returns where they start."""
    broken = [line for line in log.lines() if line.row is None or line.row.seq in seqs]
    keep_aside(directory, identity, [(line.start, line.raw) for line in broken], reason)
    return {line.start for line in broken}


def keep_aside(
    directory: Directory,
    identity: SessionIdentity,
    pieces: Iterable[tuple[int, bytes]],
    reason: str,
) -> None:
    """Add to what was set aside of a session; nothing there is ever written over."""
    now = time()
    lines = [aside_line(Aside(identity, now, at, reason, raw)) for at, raw in pieces]
    if lines:
        directory.add(identity.digest, ".aside", b"".join(lines))


@contextmanager
def _changing(
    directory: Directory, identity: SessionIdentity, expected: int | None = None
) -> Generator[tuple[Log, Session]]:
    """The file of a session that has to be there, and the session as it is now."""
    with directory.locked(identity.digest), _writing(directory, identity, identity.digest) as log:
        if log is None:
            raise NotFound(NO_SESSION)
        head = log.session(identity)
        _expect(head, expected)
        yield log, head


def _put(directory: Directory, log: Log | None, head: Session, lines: Iterable[bytes]) -> None:
    """Write the file anew."""
    digest = head.identity.digest
    ids.dropped(directory, digest)
    if log is not None and log.head is None:
        keep_aside(directory, head.identity, [(0, log.first_line)], _UNREADABLE)
    directory.replace(digest, ".jsonl", chain([session_line(head) + b"\n"], lines))


def _put_first(directory: Directory, log: Log, head: Session) -> None:
    """Write the file anew with another first line."""
    if log.head is None:
        keep_aside(directory, head.identity, [(0, log.first_line)], _UNREADABLE)
    with finding.moved(directory, log):
        chunks = chain([session_line(head) + b"\n"], log.blocks(log.begin))
        directory.replace(log.digest, ".jsonl", chunks)


def _new(identity: SessionIdentity, at: float) -> Session:
    return Session(identity, version=0, last_seq=0, created_at=at, updated_at=at)


def _written(head: Session, at: float, **changes: Any) -> Session:
    return msgspec.structs.replace(head, version=head.version + 1, updated_at=at, **changes)


def _expect(head: Session, expected: int | None) -> None:
    if expected is not None and head.version != expected:
        raise conflict(expected, head.version)


def _expect_branch(head: Session, branch: int) -> None:
    if branch != MAIN and all(fork.number != branch for fork in head.forks):
        raise NotFound(NO_BRANCH)
