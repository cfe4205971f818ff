"""Operations that rewrite a session's file as a whole, with the lock held."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from time import time
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.errors import Corrupt, NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files import finding, ids
from dragoman.history.storage.files.changing import (
    expect,
    expect_branch,
    keep_aside,
    new,
    writing,
)
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.head import (
    Marks,
    first_line,
    new_generation,
    plain_line,
    without_form,
)
from dragoman.history.storage.files.lines import line_of
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.files.placing import is_unreadable, placed
from dragoman.history.storage.files.reading import read
from dragoman.history.storage.files.salvaging import salvaged
from dragoman.history.storage.integrity import damage_to, protected, tally_of
from dragoman.history.storage.plausibility import is_plain, mended
from dragoman.history.storage.protocol import (
    CLEARED,
    MAIN,
    NO_MESSAGE,
    NO_SESSION,
    Entry,
    Fork,
    Row,
    Seal,
    Session,
)
from dragoman.history.storage.protocol import placed as placed_row

_UNREADABLE = "the line can't be read"


def rewrite(
    directory: Directory,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.rewrite`."""
    changes: dict[str, Entry | None] = {entry.id: entry for entry in replaced}
    changes.update(dict.fromkeys(removed))
    with _changing(directory, identity, expected) as (log, head):
        there = {line.row.id for line in log.lines() if line.row and line.row.id in changes}
        if len(there) < len(changes) or len(set(removed)) < len(removed):
            raise NotFound(NO_MESSAGE)
        written = _written(head, time(), seal)
        rows = None if log.rows is None else log.rows - len(removed)
        _put(directory, log, written, _changed(log, changes), rows)
    return written.version


def _changed(log: Log, changes: dict[str, Entry | None]) -> Iterator[bytes]:
    for line in log.lines():
        if line.row is None or line.row.id not in changes:
            yield line.raw + b"\n"
            continue
        entry = changes[line.row.id]
        if entry is not None:
            yield line_of(placed_row(entry, line.row.seq, line.row.branch), log.digest)


def clear(
    directory: Directory, identity: SessionIdentity, at: float, expected: int | None, seal: Seal
) -> int:
    """See `Storage.clear`."""
    with _writing(directory, identity) as log:
        head = new(identity, at) if log is None else log.session()
        expect(head.version, expected)
        written = _written(head, at, seal, **CLEARED)
        _put(directory, log, written, (), 0)
        return written.version


def fork(
    directory: Directory,
    identity: SessionIdentity,
    parent: int,
    at: int,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.fork`."""
    with _changing(directory, identity, expected) as (log, head):
        expect_branch(head.forks, parent)
        number = max((fork.number for fork in head.forks), default=MAIN) + 1
        forks = (*head.forks, Fork(number, parent, at))
        _put_first(directory, log, _written(head, time(), seal, active=number, forks=forks))
        return number


def activate(
    directory: Directory,
    identity: SessionIdentity,
    branch: int,
    expected: int | None,
    seal: Seal,
) -> None:
    """See `Storage.activate`."""
    with _changing(directory, identity, expected) as (log, head):
        expect_branch(head.forks, branch)
        changed = sealed(msgspec.structs.replace(head, active=branch), seal)
        if changed != head:
            _put_first(directory, log, changed)


def keep_windows(directory: Directory, identity: SessionIdentity, windows: bytes | None) -> None:
    """See `Storage.keep_windows`."""
    with _changing(directory, identity) as (log, head):
        if (head.window, head.windows) != (None, windows):
            _put_first(directory, log, msgspec.structs.replace(head, window=None, windows=windows))


def delete(directory: Directory, identity: SessionIdentity) -> bool:
    """See `Storage.delete`; records set aside are kept."""
    digest = identity.digest
    with directory.locked(digest), read(directory, digest, is_locked=True) as log:
        directory.remove(digest, [".ids", ".jsonl", ".tmp"])
        return log is not None


def restore(directory: Directory, copy: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    identity = copy.identity
    with _writing(directory, identity) as log:
        if log is not None and _salvaged_session(log, identity).version >= copy.version:
            return False
        if log is not None:
            _sweep(directory, identity, log, frozenset(), _UNREADABLE)
        ordered = sorted(map(protected, rows), key=lambda row: row.seq)
        lines = (line_of(row, identity.digest) for row in ordered)
        _restore(directory, log, without_form(copy), lines)
        return True


def _restore(directory: Directory, log: Log | None, copy: Session, lines: Iterable[bytes]) -> None:
    try:
        tally = tally_of(copy)
    except Corrupt:
        tally = None
    if tally is None and copy.chain is not None:  # damaged, or of a later form: keep it as it is
        _replace(directory, log, copy, chain([plain_line(copy)], lines))
    else:
        _put(directory, log, copy, lines, None if tally is None else tally.rows)


def set_aside(
    directory: Directory,
    identity: SessionIdentity,
    seqs: Sequence[int],
    reason: str,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.set_aside`; also moves unreadable lines."""
    with _writing(directory, identity) as log:
        if log is None:
            raise NotFound(NO_SESSION)
        head = _salvaged_session(log, identity)
        expect(head.version, expected)
        gone = _sweep(directory, identity, log, frozenset(seqs), reason)
        kept = (line.raw + b"\n" for line in log.lines() if line.start not in gone)
        plain = is_plain(
            bytes(line.row.message) for line in log.lines() if line.row and line.start not in gone
        )
        repaired = sealed(mended(_written(head, time(), UNSET), is_plain=plain), seal)
        _put(directory, log, repaired, kept, None)
        return len(gone)


def _salvaged_session(log: Log, identity: SessionIdentity) -> Session:
    """The session, or what can be salvaged of it."""
    try:
        return log.session()
    except Corrupt:
        return salvaged(log, identity)


def _sweep(
    directory: Directory,
    identity: SessionIdentity,
    log: Log,
    seqs: frozenset[int],
    reason: str,
) -> set[int]:
    """Copies damaged lines to the records set aside; returns their offsets."""
    lines = list(placed(log))
    # An unreadable line may have been given the number of an intact neighbour, which must stay.
    guessed = {row.seq for _, row in lines if is_unreadable(row)}
    broken = [
        line
        for line, row in lines
        if is_unreadable(row) or (row.seq in seqs and not (row.seq in guessed and _is_sound(row)))
    ]
    pieces = [(line.start, line.raw) for line in broken]
    keep_aside(directory, identity, pieces, reason)
    return {line.start for line in broken}


def _is_sound(row: Row) -> bool:
    return row.checksum is not None and damage_to(row) is None


@contextmanager
def _writing(directory: Directory, identity: SessionIdentity) -> Generator[Log | None]:
    digest = identity.digest
    with directory.locked(digest), writing(directory, identity, digest) as log:
        yield log


@contextmanager
def _changing(
    directory: Directory, identity: SessionIdentity, expected: int | None = None
) -> Generator[tuple[Log, Session]]:
    """The file of an existing session, and its current state."""
    with _writing(directory, identity) as log:
        if log is None:
            raise NotFound(NO_SESSION)
        head = log.session()
        expect(head.version, expected)
        yield log, head


# --- the file


def put_with(directory: Directory, log: Log | None, head: Session, lines: Sequence[bytes]) -> None:
    """Rewrites the file with more lines at the end."""
    there = () if log is None else (line.raw + b"\n" for line in log.lines())
    rows = log.rows + len(lines) if log is not None and log.rows is not None else None
    _put(directory, log, head, chain(there, lines), rows)


def _put_first(directory: Directory, log: Log, head: Session) -> None:
    """Rewrites the file with another first line."""
    with finding.moved(directory, log):
        _write(directory, head, log.blocks(log.begin), log.rows)


def _put(
    directory: Directory,
    log: Log | None,
    head: Session,
    lines: Iterable[bytes],
    rows: int | None,
) -> None:
    """Rewrites the file; counts the lines if the number of rows is unknown."""
    _release_old_file(directory, log, head)
    _write(directory, head, lines, rows)


def _replace(directory: Directory, log: Log | None, head: Session, lines: Iterable[bytes]) -> None:
    _release_old_file(directory, log, head)
    directory.replace(head.identity.digest, ".jsonl", lines)


def _release_old_file(directory: Directory, log: Log | None, head: Session) -> None:
    """Removes the index of the old file, and saves its unreadable parts."""
    if log is None:
        return
    ids.dropped(directory, head.identity.digest)
    if log.head is None:
        pieces = [(0, log.first_line)]
        if log.end < log.size:
            pieces.append((log.end, log.torn()))
        keep_aside(directory, head.identity, pieces, _UNREADABLE)


class _Counted:
    """Counts the lines and bytes of chunks while they are written."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.lines = self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.lines += chunk.count(b"\n")
            self.size += len(chunk)
            yield chunk


def _write(directory: Directory, head: Session, chunks: Iterable[bytes], rows: int | None) -> None:
    counted = _Counted(chunks)
    generation = new_generation()

    def first() -> bytes:
        held = counted.lines if rows is None else rows
        return first_line(head, Marks(held, head.version, counted.size, generation))

    room = first()  # a placeholder of the same length, as the counters are not known yet
    directory.replace(head.identity.digest, ".jsonl", chain([room], counted), lambda: (0, first()))


def _written(head: Session, at: float, given: Seal, **changes: Any) -> Session:
    changed = msgspec.structs.replace(head, version=head.version + 1, updated_at=at, **changes)
    return sealed(changed, given)


def sealed(head: Session, seal: Seal) -> Session:
    """The session with another seal, if one is given."""
    return head if seal is UNSET else msgspec.structs.replace(head, seal=seal)
