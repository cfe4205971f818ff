"""Reading one session's file: its ends, forwards, backwards, and from a number on.

The file only grows, or is replaced as a whole. Up to where its first line says, everything was
acknowledged: what can't be read there is damaged. Behind that, what it holds ends with the last
line that can be read and that no line of the same write should follow: what comes after was torn
off by a crash, or is just being written. The first line is read before the file's size is asked
for: the rows that it speaks of were written before it. So readers need no lock.
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
_MOST = 128  # last lines that are remembered, none longer than a block


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line and where it starts; `row` is None where it can't be read, or is not from here."""

    start: int
    raw: bytes
    row: StoredRow | None

    @property
    def end(self) -> int:
        """Where the next one starts."""
        return self.start + len(self.raw) + 1

    def __repr__(self) -> str:
        return f"Line({self.start}, {len(self.raw)} bytes)"


class Log:
    """What an open file holds, as of now."""

    def __init__(self, fd: int, digest: str) -> None:
        self.fd = fd
        self.digest = digest
        self._mark = mark_of(digest)
        self.first_line = _first_line(fd)
        about = os.fstat(fd)
        self.size = about.st_size
        self.inode = about.st_ino
        self.begin = min(len(self.first_line) + 1, self.size)
        """Where the rows begin."""
        self.head = head_in(self.first_line, digest)
        """What the first line says; None where it can't be read."""
        self.marks = None if self.head is None else self.head.marks
        self.acknowledged = self.begin if self.marks is None else self.begin + self.marks.size
        """Up to where everything was acknowledged, whatever is there now."""
        self.last = self._last()
        """The last row; None where there is none."""
        self.end = self._end()
        """Where what counts ends; the rest is torn."""

    @property
    def generation(self) -> bytes:
        """Which writing of the file as a whole it is."""
        return self.first_line if self.marks is None else self.marks.generation

    @property
    def is_cut(self) -> bool:
        """Whether it is shorter than it was."""
        return self.size < self.acknowledged

    @cached_property
    def is_open_ended(self) -> bool:
        """Whether its last line has lost its end."""
        if self.end in {self.begin, self.last.end if self.last is not None else self.begin}:
            return False
        return os.pread(self.fd, 1, self.end - 1) != b"\n"

    def close_end(self) -> None:
        """Its last line has got its end."""
        self.size = self.end = self.end + 1
        self.is_open_ended = False

    @property
    def is_tidy(self) -> bool:
        """Whether there is nothing behind its last row, and nothing was cut off there."""
        return self.last is not None and self.acknowledged <= self.size == self.last.end

    @property
    def rows(self) -> int | None:
        """How many rows there should be; None where nobody has counted them."""
        if self.marks is not None:
            return self.marks.rows + (self._unmarked() if self.end > self.acknowledged else 0)
        tally = None if self.head is None else self.head.tally()
        return None if tally is None else tally.rows

    def _unmarked(self) -> int:
        """How many rows are behind those that the first line knows of: it may be behind."""
        version = 0 if self.head is None else self.head.version
        start = self._line_start(self.acknowledged, self.begin)
        rows = [line.row for line in self.lines(start)]
        return sum(row is not None and row.version > version for row in rows)

    def numbers(self) -> tuple[int, int]:
        """The session's version and last number now; raises `Corrupt` where nobody can tell."""
        head = self.sound_head()
        if self.last is None or self.last.row is None:
            return head.version, head.last_seq
        row = self.last.row
        return max(head.version, row.version), max(head.last_seq, row.seq)

    def session(self) -> Session:
        """The session as it is now; raises `Corrupt` where that can't be told."""
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
        """What the first line says; raises `Corrupt` where it can't be read, or disagrees."""
        if self.head is None:
            raise Corrupt(_unreadable(self))
        if self.marks is None:
            self.head.tally()
        return self.head

    @property
    def newest_seal(self) -> bytes | msgspec.UnsetType | None:
        """The seal that was written with the last row; UNSET where the first line's counts."""
        row = None if self.last is None else self.last.row
        if row is None or self.marks is None or row.version <= self.marks.written:
            return UNSET
        return seal_in(row)

    # --- lines

    def lines(self, start: int | None = None) -> Iterator[Line]:
        """The lines from a line's start on, in order."""
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
        if rest := b"".join(begun):  # it was cut off: its end is missing
            yield Line(at, rest, self._row(rest))

    def _row(self, raw: bytes) -> StoredRow | None:
        return row_in(raw, self._mark)

    def lines_before(self, stop: int) -> Iterator[Line]:
        """The lines up to a line's end, the last first."""
        size, rest = _BLOCK, b"\n" if stop == self.end and self.is_open_ended else b""
        while stop > self.begin:
            start = max(self.begin, stop - size)
            block = os.pread(self.fd, stop - start, start) + rest
            # Only the end of its first line may be in the block: kept for the next one.
            cut = 0 if start == self.begin else block.find(b"\n") + 1
            at = start + len(block)
            for raw in reversed(block[cut:-1].split(b"\n")) if cut < len(block) else ():
                at -= len(raw) + 1
                yield Line(at, raw, self._row(raw))
            rest, stop = block[:cut], start
            size = max(min(size * 2, _LARGE), len(rest))

    def line_at(self, start: int) -> Line | None:
        """The line that starts there; None where there can't be one."""
        if not self.begin <= start < self.end:
            return None
        found = self._line_from(start, self.end)
        return Line(start, found, self._row(found))

    def torn(self) -> bytes:
        """What is behind the last row."""
        return os.pread(self.fd, self.size - self.end, self.end)

    def start_after(self, seq: int) -> tuple[int, StoredRow | None]:
        """Where the first line may be that is numbered above `seq`, and the row before it.

        Halves the file until a line or so is left: numbers only rise.
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
        """The start of the line that holds the byte at `at`; none starts before `low`."""
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
        """The first line from `start` on that can be read; None where there is none to `stop`."""
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
        """The bytes from there on."""
        size = _BLOCK
        while at < self.end:
            block = os.pread(self.fd, min(size, self.end - at), at)
            if not block:
                return
            yield block
            at += len(block)
            size = min(size * 2, _LARGE)

    def _last(self) -> Line | None:
        """Found in one read: what is torn may be cut off and written over between two."""
        known = _lasts.get(self.digest)
        if known is not None and known.line.end == self.size and known.line.start >= self.begin:
            line, framed = known
            # The same bytes between two ends are the same line: no need to read what they say.
            there = os.pread(self.fd, len(framed), line.start - 1)
            if there == framed and line.row is not None and self._is_whole(line.row, line.start):
                return line
        size = _BLOCK
        while True:
            start = max(self.begin, self.size - size)
            block = os.pread(self.fd, self.size - start, start)
            if self.is_cut and not block.endswith(b"\n"):
                block += b"\n"  # it may have lost no more than that
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
        # A row that was there when the file was written as a whole may have lost its followers.
        if row.more and (self.head is None or row.version > self.head.version):
            return False
        return self.marks is None or damage_to(row_of(row)) is None  # part of it may be missing

    def _end(self) -> int:
        end = self.begin if self.last is None else min(self.last.end, self.size)
        if end >= self.acknowledged:
            return end
        if self.size <= self.acknowledged:
            return self.size
        # Lines may have become longer or shorter: the last that was acknowledged is taken whole.
        before = self.acknowledged - 1
        return min(before + len(self._line_from(before, self.size)) + 1, self.size)


class _Last(NamedTuple):
    """A last line, and the same between the ends of the line before and its own."""

    line: Line
    framed: bytes


_lasts: dict[str, _Last] = {}  # by digest: what was written last


def remember_last(digest: str, start: int, raw: bytes, row: StoredRow) -> None:
    """Know the last line, with its end, of a file: who appends to it reads it again the next time.

    It is looked at even so: what is remembered is only what its bytes say.
    """
    if len(raw) <= _BLOCK:
        if len(_lasts) >= _MOST:
            _lasts.clear()
        _lasts[digest] = _Last(Line(start, raw[:-1], row), b"\n" + raw)


def _first_line(fd: int) -> bytes:
    block = _BLOCK // 8
    while True:
        raw = os.pread(fd, block, 0)
        found = raw.find(b"\n")
        if found >= 0 or len(raw) < block:
            return raw if found < 0 else raw[:found]
        block *= 8


def _unreadable(log: Log) -> str:
    what = "can't be read" if log.size else "is gone: the file is empty"
    return (
        f"the first line of {place(log.digest, '.jsonl')} {what}; nothing was changed: restore a"
        " copy, or let `dragoman history repair` make it anew from the messages"
    )
