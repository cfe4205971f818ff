"""Reads a session's file: its start and end, forwards, backwards, and from a number on.

The file only grows, or is replaced as a whole. Up to the size in its first line, everything was
acknowledged: unreadable lines there are damaged. After that, the content ends with the last
readable line that no other line of the same write should follow: what comes after it was left
incomplete by a crash, or is being written. The first line is read before the file's size, because
the rows it counts were written before it. So readers need no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from dragoman.errors import Corrupt
from dragoman.history.records import StoredRow
from dragoman.history.storage.files.directory import place
from dragoman.history.storage.files.head import Head, head_in
from dragoman.history.storage.files.lines import mark_of, row_in, row_of, seal_in
from dragoman.history.storage.integrity import Tally, damage_to
from dragoman.history.storage.protocol import Session

_BLOCK = 8 * 1024
_LARGE = 256 * 1024
_MAX_CACHED = 128  # last lines that are cached, none longer than a block


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line and its offset; `row` is `None` if it is unreadable, or belongs elsewhere."""

    start: int
    raw: bytes
    row: StoredRow | None

    @property
    def end(self) -> int:
        """The offset of the next line."""
        return self.start + len(self.raw) + 1

    def __repr__(self) -> str:
        return f"Line({self.start}, {len(self.raw)} bytes)"


class Log:
    """The content of an open file, at one moment."""

    def __init__(self, fd: int, digest: str) -> None:
        self.fd = fd
        self.digest = digest
        self._mark = mark_of(digest)
        self.first_line = _first_line(fd)
        about = os.fstat(fd)
        self.size = about.st_size
        self.inode = about.st_ino
        self.begin = min(len(self.first_line) + 1, self.size)
        """The offset of the first row."""
        self.head = head_in(self.first_line, digest)
        """The parsed first line; `None` if it is unreadable."""
        self.marks = None if self.head is None else self.head.marks
        self.acknowledged = self.begin if self.marks is None else self.begin + self.marks.size
        """The offset up to which everything was acknowledged, whatever is there now."""
        self.last = self._last()
        """The last row, or `None`."""
        self.end = self._end()
        """Where the valid content ends; the rest is incomplete."""

    @property
    def generation(self) -> bytes:
        """Identifies the rewrite that produced the file."""
        return self.first_line if self.marks is None else self.marks.generation

    @property
    def is_cut(self) -> bool:
        """Whether the file is shorter than it was."""
        return self.size < self.acknowledged

    @cached_property
    def is_open_ended(self) -> bool:
        """Whether the last line has no newline."""
        if self.end in {self.begin, self.last.end if self.last is not None else self.begin}:
            return False
        return os.pread(self.fd, 1, self.end - 1) != b"\n"

    def close_end(self) -> None:
        """Records that the last line now has its newline."""
        self.size = self.end = self.end + 1
        self.is_open_ended = False

    @property
    def is_tidy(self) -> bool:
        """Whether nothing follows the last row, and nothing is missing there."""
        return self.last is not None and self.acknowledged <= self.size == self.last.end

    @property
    def rows(self) -> int | None:
        """The expected number of rows; `None` if it was never counted."""
        if self.marks is not None:
            return self.marks.rows + (self._unmarked() if self.end > self.acknowledged else 0)
        tally = None if self.head is None else self.head.tally()
        return None if tally is None else tally.rows

    def _unmarked(self) -> int:
        """The number of rows that the first line does not count yet, as it may be behind."""
        version = 0 if self.head is None else self.head.version
        start = self._line_start(self.acknowledged, self.begin)
        rows = [line.row for line in self.lines(start)]
        return sum(row is not None and row.version > version for row in rows)

    def numbers(self) -> tuple[int, int]:
        """The session's current version and last number; raises `Corrupt` if unreadable."""
        head = self.sound_head()
        if self.last is None or self.last.row is None:
            return head.version, head.last_seq
        row = self.last.row
        return max(head.version, row.version), max(head.last_seq, row.seq)

    def session(self) -> Session:
        """The current session; raises `Corrupt` if unreadable."""
        head = self.sound_head()
        last = None if self.last is None else self.last.row
        version, last_seq = self.numbers()
        chain, seal = head.fixed.chain, self.newest_seal
        if self.rows is not None:
            chain = str(Tally(version, last_seq, self.rows, len(head.fixed.forks)))
        is_later = last is not None and last.version > head.version
        return msgspec.structs.replace(
            head.fixed,
            version=version,
            last_seq=last_seq,
            updated_at=last.at if last is not None and is_later else head.updated_at,
            chain=chain,
            seal=head.fixed.seal if seal is UNSET else seal,
        )

    def sound_head(self) -> Head:
        """The parsed first line; raises `Corrupt` if it is unreadable or inconsistent."""
        if self.head is None:
            raise Corrupt(_unreadable(self))
        if self.marks is None:
            self.head.tally()
        return self.head

    @property
    def newest_seal(self) -> bytes | msgspec.UnsetType | None:
        """The seal written with the last row; UNSET if that of the first line applies."""
        row = None if self.last is None else self.last.row
        if row is None or self.marks is None or row.version <= self.marks.written:
            return UNSET
        return seal_in(row)

    # --- lines

    def lines(self, start: int | None = None) -> Iterator[Line]:
        """The lines from an offset on, in order."""
        at = self.begin if start is None else start
        begun: list[bytes] = []
        mark = self._mark
        for block in self.blocks(at):
            whole, newline, rest = block.rpartition(b"\n")
            if newline:
                for raw in b"".join([*begun, whole]).split(b"\n"):
                    yield Line(at, raw, row_in(raw, mark))
                    at += len(raw) + 1
                begun = []
            begun.append(rest)
        if rest := b"".join(begun):  # truncated: its newline is missing
            yield Line(at, rest, self._row(rest))

    def _row(self, raw: bytes) -> StoredRow | None:
        return row_in(raw, self._mark)

    def lines_before(self, stop: int) -> Iterator[Line]:
        """The lines before an offset, last first."""
        size, rest = _BLOCK, b"\n" if stop == self.end and self.is_open_ended else b""
        while stop > self.begin:
            start = max(self.begin, stop - size)
            block = os.pread(self.fd, stop - start, start) + rest
            # The block may contain only the end of its first line: keep that for the next block.
            cut = 0 if start == self.begin else block.find(b"\n") + 1
            at = start + len(block)
            for raw in reversed(block[cut:-1].split(b"\n")) if cut < len(block) else ():
                at -= len(raw) + 1
                yield Line(at, raw, self._row(raw))
            rest, stop = block[:cut], start
            size = max(min(size * 2, _LARGE), len(rest))

    def line_at(self, start: int) -> Line | None:
        """The line at an offset; `None` if there can't be one."""
        if not self.begin <= start < self.end:
            return None
        found = self._line_from(start, self.end)
        return Line(start, found, self._row(found))

    def torn(self) -> bytes:
        """The bytes after the last row."""
        return os.pread(self.fd, self.size - self.end, self.end)

    def start_after(self, seq: int) -> tuple[int, StoredRow | None]:
        """The offset of the first line that may have a number above `seq`, and the row before it.

        A binary search, as numbers only increase.
        """
        low, high, before = self.begin, self.end, None
        while low < high and seq > 0:
            middle = self._line_start((low + high) // 2, low)
            line = self._readable(middle, high)
            if line is None or line.row is None or line.row.seq > seq:
                high = middle
            else:
                low, before = line.end, line.row
        return min(low, self.end), before

    def _line_start(self, at: int, low: int) -> int:
        """The start of the line that contains the byte at `at`; not before `low`."""
        size = _BLOCK
        while True:
            start = max(low, at - size)
            found = os.pread(self.fd, at - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            if start == low:
                return low
            size *= 4

    def _readable(self, start: int, stop: int) -> Line | None:
        """The first readable line from `start` on; `None` if there is none before `stop`."""
        for line in self.lines(start):
            if line.start >= stop:
                return None
            if line.row is not None:
                return line
        return None

    def _line_from(self, start: int, stop: int) -> bytes:
        size = _BLOCK
        while True:
            block = os.pread(self.fd, min(size, stop - start), start)
            found = block.find(b"\n")
            if found >= 0 or len(block) < size:
                return block[:found] if found >= 0 else block
            size *= 4

    def blocks(self, at: int) -> Iterator[bytes]:
        """The bytes from an offset on."""
        size = _BLOCK
        while at < self.end:
            block = os.pread(self.fd, min(size, self.end - at), at)
            if not block:
                return
            yield block
            at += len(block)
            size = min(size * 2, _LARGE)

    def _last(self) -> Line | None:
        """The last row, in one read: an incomplete end may be overwritten between two reads."""
        known = _last_lines.get(self.digest)
        if known is not None and known.line.end == self.size and known.line.start >= self.begin:
            line, framed = known
            # The same bytes between two newlines are the same line: no need to parse them.
            there = os.pread(self.fd, len(framed), line.start - 1)
            if there == framed and line.row is not None and self._is_whole(line.row, line.start):
                return line
        size = _BLOCK
        while True:
            start = max(self.begin, self.size - size)
            block = os.pread(self.fd, self.size - start, start)
            if self.is_cut and not block.endswith(b"\n"):
                block += b"\n"  # only the newline may be missing
            found = self._last_in(block, start)
            if found is not None or start == self.begin:
                return found
            size *= 4

    def _last_in(self, block: bytes, offset: int) -> Line | None:
        stop = block.rfind(b"\n")
        while stop >= 0:
            start = block.rfind(b"\n", 0, stop) + 1
            if start == 0 and offset > self.begin:
                return None  # its beginning is not in the block
            row = self._row(block[start:stop])
            if row is not None and self._is_whole(row, offset + start):
                return Line(offset + start, block[start:stop], row)
            stop = start - 1
        return None

    def _is_whole(self, row: StoredRow, start: int) -> bool:
        if start < self.acknowledged:
            return True
        # A row that existed when the file was last rewritten may have lost its followers.
        if row.more and (self.head is None or row.version > self.head.version):
            return False
        return self.marks is None or damage_to(row_of(row)) is None  # may be incomplete

    def _end(self) -> int:
        end = self.begin if self.last is None else min(self.last.end, self.size)
        if end >= self.acknowledged:
            return end
        if self.size <= self.acknowledged:
            return self.size
        # Damage may have changed the length of lines: take the last acknowledged one in full.
        before = self.acknowledged - 1
        return min(before + len(self._line_from(before, self.size)) + 1, self.size)


class _Last(NamedTuple):
    """The last line, and the same with the newlines around it."""

    line: Line
    framed: bytes


_last_lines: dict[str, _Last] = {}  # by digest: the last line written


def remember_last(digest: str, start: int, raw: bytes, row: StoredRow) -> None:
    """Caches the last line of a file, which the next append reads again.

    The bytes are still compared with the file; only parsing is saved.
    """
    if len(raw) <= _BLOCK:
        if len(_last_lines) >= _MAX_CACHED:
            _last_lines.clear()
        _last_lines[digest] = _Last(Line(start, raw[:-1], row), b"\n" + raw)


def _first_line(fd: int) -> bytes:
    block = _BLOCK // 8
    while True:
        raw = os.pread(fd, block, 0)
        found = raw.find(b"\n")
        if found >= 0 or len(raw) < block:
            return raw if found < 0 else raw[:found]
        block *= 8


def _unreadable(log: Log) -> str:
    what = "can't be read" if log.size else "is missing: the file is empty"
    return (
        f"the first line of {place(log.digest, '.jsonl')} {what}; nothing was changed. Restore a"
        " backup, or run `dragoman history repair` to rebuild it from the messages"
    )
