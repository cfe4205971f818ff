"""Appends to a session's file, with the lock held: rows first, then the counters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import UNSET

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files import finding, rewriting
from dragoman.history.storage.files.changing import expect, expect_branch, new, writing
from dragoman.history.storage.files.directory import Directory, write_at_end
from dragoman.history.storage.files.head import PLACE, Marks, written_over
from dragoman.history.storage.files.lines import batch
from dragoman.history.storage.files.log import Log, remember_last
from dragoman.history.storage.protocol import (
    Appended,
    DuplicateIds,
    Entry,
    Seal,
)


def append(
    directory: Directory,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
    seal: Seal,
) -> Appended:
    """See `Storage.append`."""
    digest = identity.digest
    with directory.locked(digest), writing(directory, identity, digest) as log:
        version, last_seq = (0, 0) if log is None else log.numbers()
        expect(version, expected)
        expect_branch(() if log is None else log.sound_head().fixed.forks, branch)
        _expect_new(directory, log, entries)
        # A seal that was written with a row must be repeated with later rows, until a rewrite.
        kept = seal if seal is not UNSET or log is None else log.newest_seal
        lines, last = batch(entries, last_seq + 1, branch, version + 1, digest, kept)
        appended = Appended(version + 1, last_seq + len(entries))
        at = entries[-1].at
        if log is not None and _added(directory, log, appended, at, lines):
            finding.added(directory, log, entries, lines)
            remember_last(digest, log.end + sum(map(len, lines[:-1])), lines[-1], last)
        else:
            head = new(identity, entries[0].at) if log is None else log.session()
            changed = msgspec.structs.replace(
                head, version=appended.version, last_seq=appended.last_seq, updated_at=at
            )
            rewriting.put_with(directory, log, rewriting.sealed(changed, kept), lines)
    return appended


def _added(
    directory: Directory, log: Log, appended: Appended, at: float, lines: Sequence[bytes]
) -> bool:
    """Appends the lines in place; returns `False` if the file has to be rewritten instead."""
    rows = log.rows
    if log.head is None or log.marks is None or rows is None:
        return False
    size = log.end - log.begin + sum(map(len, lines))
    marks = Marks(rows + len(lines), log.marks.written, size, log.marks.generation)
    said = appended.version, appended.last_seq, at
    text = written_over(log.first_line, log.digest, log.head, *said, marks)
    if text is None:
        return False
    # The disk may write blocks in any order: the line that completes the write goes last.
    one_by_one = directory.is_synced and len(lines) > 1
    chunks = [b"".join(lines[:-1]), lines[-1]] if one_by_one else [b"".join(lines)]
    write_at_end(log.fd, log.end, chunks, directory.sync)
    # Only now, and not synced: outdated counters do no harm, so a failure does none either, and
    # nobody has to wait for them.
    with suppress(OSError):
        os.pwrite(log.fd, text, PLACE)
    return True


def _expect_new(directory: Directory, log: Log | None, entries: Sequence[Entry]) -> None:
    wanted = {entry.id for entry in entries}
    known = [] if log is None else finding.known(directory, log, wanted)
    if known or len(wanted) < len(entries):
        raise DuplicateIds(known)
