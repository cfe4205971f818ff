"""Writes a session's file anew: what was dropped from it does not stay on the disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from zlib import crc32

from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.log import (
    BEGIN,
    Commit,
    Log,
    commit_line,
    first_line,
    mark_of,
    new_file,
    row_line,
)
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.protocol import DuplicateIds, Row

Kept = Iterable[tuple[bytes, Row | None]]
"""Lines without their newlines, each with its row; `None` if it is no row, or out of order."""


def replace(directory: Directory, stored: Stored, kept: Kept, puts: Sequence[Row] = ()) -> None:
    """Replaces a session's file by one commit: these lines, rows among them, and a head."""
    digest = stored.digest
    new = _Rows(kept, puts, mark_of(digest))
    file = new_file()
    size = 0

    def lines() -> Iterator[bytes]:
        nonlocal size
        yield from new
        line = commit_line(
            commit_of(stored, new.counts, new.last, new.size, BEGIN, new.size, new.sum), digest
        )
        size = BEGIN + new.size + len(line)
        yield line

    room = first_line(0, file)  # a placeholder of the same length
    directory.replace(digest, ".jsonl", chain([room], lines()), lambda: (0, first_line(size, file)))


def kept_of(log: Log, dropped: Collection[str], aside: Collection[int]) -> Kept:
    """The lines of a log, without those with these ids, and those at these offsets."""
    seq = 0
    for line in log.lines():
        if line.start in aside or (line.row is not None and line.row.id in dropped):
            continue
        if line.start == 0 and line.row is None:
            continue  # the first line, which is damaged
        is_in_order = line.row is not None and line.row.seq > seq
        if line.row is not None and is_in_order:
            seq = line.row.seq
        yield line.raw, line.row if is_in_order else None


class _Rows:
    """The lines of rows, in order; what is known of them once they are read."""

    def __init__(self, kept: Kept, puts: Sequence[Row], mark: str) -> None:
        self._kept = kept
        self._puts = sorted(puts, key=_seq)
        self._mark = mark
        self.counts: dict[int, int] = {}
        self.last = self.size = self.sum = 0

    def __iter__(self) -> Iterator[bytes]:
        wanted = {row.id for row in self._puts}
        if len(wanted) < len(self._puts):
            raise DuplicateIds([])
        puts = iter(self._puts)
        put = next(puts, None)
        for raw, row in self._kept:
            if row is not None and row.id in wanted:
                raise DuplicateIds([row.id])
            while put is not None and row is not None and put.seq < row.seq:
                yield self._counted(row_line(put, self._mark), put)
                put = next(puts, None)
            yield self._counted(raw + b"\n", row)
        while put is not None:
            yield self._counted(row_line(put, self._mark), put)
            put = next(puts, None)

    def _counted(self, line: bytes, row: Row | None) -> bytes:
        if row is not None:
            self.counts[row.branch] = self.counts.get(row.branch, 0) + 1
            self.last = max(self.last, row.seq)
        self.size += len(line)
        self.sum = crc32(line, self.sum)
        return line


def commit_of(
    stored: Stored,
    counts: dict[int, int],
    last: int,
    held: int,
    begin: int,
    size: int,
    checksum: int,
) -> Commit:
    """What is written behind rows."""
    _, names, stamp, at, document = stored
    return Commit(stamp, at, names, document, counts, last, held, begin, size, checksum)


def _seq(row: Row) -> int:
    return row.seq
