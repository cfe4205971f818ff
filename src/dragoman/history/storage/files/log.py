"""Reading one session's file: its ends, forwards, backwards, and from a number on.

The file only grows, or is replaced as a whole. What it holds ends with the last line that can be
read and that no line of the same write should follow: what comes after was torn off by a crash,
or is just being written. So readers need no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import StoredRow
from dragoman.history.storage.files.lines import session_of
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import Session

_BLOCK = 8 * 1024
_LARGE = 256 * 1024


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line and where it starts; `row` is None where it can't be read."""

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
        about = os.fstat(fd)
        self.size = about.st_size
        self.inode = about.st_ino
        self.first_line = _first_line(fd, self.size)
        self.begin = min(len(self.first_line) + 1, self.size)
        """Where the rows begin."""
        self.head = _head(self.first_line, digest)
        """The session as it was when the file was last written as a whole; None if unreadable."""
        self.last = self._last()
        """The last row; None where there is none."""

    @property
    def end(self) -> int:
        """Where what counts ends; the rest is torn."""
        return self.begin if self.last is None else self.last.end

    def session(self, identity: SessionIdentity | None) -> Session:
        """The session as it is now."""
        last = None if self.last is None else self.last.row
        head = self.head
        if head is None:
            head = _salvaged(self, identity)
        if last is None:
            return head
        is_later = last.version > head.version
        return msgspec.structs.replace(
            head,
            version=max(head.version, last.version),
            last_seq=max(head.last_seq, last.seq),
            updated_at=last.at if is_later else head.updated_at,
        )

    # --- lines

    def lines(self, start: int | None = None) -> Iterator[Line]:
        """The lines from a line's start on, in order."""
        at = self.begin if start is None else start
        begun: list[bytes] = []
        for block in self.blocks(at):
            whole, newline, rest = block.rpartition(b"\n")
            if newline:
                for raw in b"".join([*begun, whole]).split(b"\n"):
                    yield Line(at, raw, parsed(raw))
                    at += len(raw) + 1
                begun = []
            begun.append(rest)

    def lines_before(self, seq: int | None) -> Iterator[Line]:
        """The lines numbered up to `seq`, the last first."""
        stop = self.end if seq is None else self._start_after(seq)
        size, rest = _BLOCK, b""
        while stop > self.begin:
            start = max(self.begin, stop - size)
            block = os.pread(self.fd, stop - start, start) + rest
            # Only the end of its first line may be in the block: kept for the next one.
            cut = 0 if start == self.begin else block.find(b"\n") + 1
            at = start + len(block)
            for raw in reversed(block[cut:-1].split(b"\n")) if cut < len(block) else ():
                at -= len(raw) + 1
                yield Line(at, raw, parsed(raw))
            rest, stop = block[:cut], start
            size = max(min(size * 2, _LARGE), len(rest))

    def lines_after(self, seq: int) -> Iterator[Line]:
        """The lines from the first one on that is numbered above `seq`."""
        return self.lines(None if seq <= 0 else self._start_after(seq))

    def line_at(self, start: int) -> Line | None:
        """The line that starts there; None where there can't be one."""
        if not self.begin <= start < self.end:
            return None
        found = self._line_from(start)
        return Line(start, found, parsed(found))

    def torn(self) -> bytes:
        """What is behind the last row."""
        return os.pread(self.fd, self.size - self.end, self.end)

    def _start_after(self, seq: int) -> int:
        """Halve the file until a line or so is left: numbers only rise."""
        low, high = self.begin, self.end
        while low < high:
            middle = self._line_start((low + high) // 2, low)
            line = self._readable(middle, high)
            if line is None or line.row is None or line.row.seq > seq:
                high = middle
            else:
                low = line.end
        return low

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

    def _line_from(self, start: int) -> bytes:
        size = _BLOCK
        while True:
            block = os.pread(self.fd, min(size, self.end - start), start)
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
        size = _BLOCK
        while True:
            start = max(self.begin, self.size - size)
            block = os.pread(self.fd, self.size - start, start)
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
            row = parsed(block[start:stop])
            if row is not None and self._is_whole(row):
                return Line(offset + start, block[start:stop], row)
            stop = start - 1
        return None

    def _is_whole(self, row: StoredRow) -> bool:
        # A row that was there when the file was written as a whole may have lost its followers.
        return row.more == 0 or (self.head is not None and row.version <= self.head.version)


def _first_line(fd: int, size: int) -> bytes:
    block = _BLOCK // 8
    while True:
        raw = os.pread(fd, block, 0)
        found = raw.find(b"\n")
        if found >= 0 or block >= size:
            return raw if found < 0 else raw[:found]
        block *= 8


@lru_cache(128)  # a session's stays as it is from one append to the next
def _head(line: bytes, digest: str) -> Session | None:
    found = session_of(line)
    return found if found is not None and found.identity.digest == digest else None


def _salvaged(log: Log, identity: SessionIdentity | None) -> Session:
    """What can be told of a session whose first line is broken: its branches are not known."""
    if identity is None or log.last is None or log.last.row is None:
        msg = (
            f"the first line of {log.digest[:2]}/{log.digest}.jsonl can't be read; nothing was"
            " changed: restore a copy, or mend it by hand"
        )
        raise Corrupt(msg)
    first = next((line.row for line in log.lines() if line.row is not None), log.last.row)
    return Session(identity, 0, 0, created_at=first.at, updated_at=log.last.row.at)
