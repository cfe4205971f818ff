"""A session's file: a log of commits, as lines that any tool can read.

    {"dragoman":3,"kind":"Log","value":{"size":4711                ,"file":"0123456789abcdef"}}
    {"dragoman":2,"kind":"Record","value":{"seq":1,"id":"msg_…","at":1763251200.0,"message":{…}}}
    {"dragoman":2,"kind":"Commit","value":{"stamp":7,"at":1763251200.0, …},"check":"5ac0be11"}

The rows of a commit are followed by its head, with a checksum of both. The file only grows, or is
replaced as a whole; so readers need no lock. The first line says up to which size everything was
acknowledged. It is written over after each commit: after a crash it may be behind, but never ahead.
A commit beyond it counts if it is whole; what is missing or unreadable before it is damage.

The first line has a version that the program of November 2026 refuses, whose files have the same
names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from math import nan
from os import urandom
from typing import NamedTuple
from zlib import crc32

import msgspec

from dragoman.history.records import StoredRow, parsed, refuse_newer
from dragoman.history.storage.heads import Stored, without_checksum
from dragoman.history.storage.integrity import checksum_of, damage_to, place_of
from dragoman.history.storage.protocol import MAIN, Row
from dragoman.model import document
from dragoman.model.jsontext import dumps, loads

_FIRST = b'{"dragoman":3,"kind":"Log","value":{"size":%-20d,"file":"%b"}}\n'
_LOG = _FIRST[: _FIRST.index(b"og")]  # how one begins, even if it is damaged later
_IS_FIRST = re.compile(
    rb'\{"dragoman":3,"kind":"Log","value":\{"size":(\d{1,19}) +,"file":"([0-9a-f]{16})"\}\}\n'
)
BEGIN = len(_FIRST % (0, b"0" * 16))
"""The offset of the first row."""
_COMMIT = b'{"dragoman":2,"kind":"Commit","value":'
_CHECK = b',"check":"%08x"}'
_CHECK_LENGTH = len(_CHECK % 0)
_FORM = "f1-"
_PLACE = re.compile(rb'"chain":"(?:f1-([0-9a-f]{8})\.|p1-)(\d{1,18})\.(\d{1,18})["-.]')
_ID = re.compile(rb'"id":"([\w.:-]{1,128})"')
_MESSAGE = b',"message":'
_BLOCK = 8 * 1024
_LARGE = 256 * 1024
UNREADABLE_STAMP = -1
"""The stamp of a session whose last commit can't be read."""
_NO_NAMES = (None,) * 5


class Commit(msgspec.Struct, gc=False):
    """What a commit writes behind its rows."""

    stamp: int
    at: float | None
    names: tuple[str | None, ...]
    document: bytes
    counts: dict[int, int]
    """The number of rows of each branch."""
    last: int
    """The highest number of a row."""
    held: int
    """The bytes of all rows."""
    begin: int
    """Where the commit's rows begin."""
    size: int
    """Their bytes."""
    sum: int
    """Their checksum."""

    def stored(self, digest: str) -> Stored:
        """The head."""
        at = nan if self.at is None else self.at
        return Stored(digest, self.names, self.stamp, at, self.document)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Commit).decode


def first_line(size: int, file: bytes) -> bytes:
    """The first line of a file: everything up to `size` was acknowledged."""
    return _FIRST % (size, file)


def refuse_newer_log(raw: bytes) -> None:
    """Raises for a line, or a file, of a later version; it must not be treated as damage."""
    if not raw.startswith(_LOG):
        refuse_newer(raw)


def new_file() -> bytes:
    """What tells a file from the one that it replaces."""
    return urandom(8).hex().encode()


def commit_line(commit: Commit, digest: str) -> bytes:
    """A commit as a line with its newline."""
    raw = _COMMIT + _encode(commit)
    return raw + _CHECK % crc32(raw, crc32(digest.encode())) + b"\n"


def commit_in(raw: bytes, digest: str) -> Commit | None:
    """The commit in a line; `None` if it is none, damaged, or another session's."""
    if not raw.startswith(_COMMIT):
        return None
    told, check = raw[:-_CHECK_LENGTH], raw[-_CHECK_LENGTH:]
    if check != _CHECK % crc32(told, crc32(digest.encode())):
        return None
    return _decode(told[len(_COMMIT) :])


# --- rows


def row_line(row: Row, mark: str) -> bytes:
    """A row as a line with its newline. Its `chain` has the session's `mark` in a file."""
    chain = row.chain
    if chain == place_of(row.branch, row.seq):
        chain = f"{mark}{row.branch}.{row.seq}"
    body, checksum = row.body, row.checksum
    if b"\n" in body:
        body, checksum = _on_one_line(row)
    stored = StoredRow(
        seq=row.seq, id=row.id, at=row.at, branch=row.branch, model=row.model, usage=row.usage,
        checksum=checksum, chain=chain, message=msgspec.Raw(body),
    )  # fmt: skip
    return document.write("Record", stored) + b"\n"


def _on_one_line(row: Row) -> tuple[bytes, str | None]:
    """A body without newlines, and the row's checksum."""
    try:
        body = dumps(loads(row.body))
    except ValueError:
        # Damaged elsewhere and copied here: still not a message, but nothing is lost.
        body = msgspec.json.encode(row.body.decode(errors="backslashreplace"))
    if not (row.checksum or "").startswith("c1-") or damage_to(row) is not None:
        return body, row.checksum
    return body, checksum_of(msgspec.structs.replace(row, body=body))


def mark_of(digest: str) -> str:
    """What begins the `chain` of a session's rows in its file."""
    return f"{_FORM}{digest[:8]}."


def row_in(raw: bytes, mark: str) -> Row | None:
    """The row in a line; `None` if it is unreadable, or not where it was written."""
    stored = None if raw.startswith(_LOG) else parsed(raw)
    if stored is None:
        return None
    chain = stored.chain
    if chain is not None:
        if chain == f"{mark}{stored.branch}.{stored.seq}":
            chain = place_of(stored.branch, stored.seq)
        elif chain.startswith((_FORM, "p1-")) and chain != place_of(stored.branch, stored.seq):
            return None
    return Row(
        stored.id, bytes(stored.message), stored.at, stored.model, stored.usage, seq=stored.seq,
        branch=stored.branch, checksum=stored.checksum, chain=chain,
    )  # fmt: skip


class Line(NamedTuple):
    """A line that is no commit, and its offset; `row` is `None` if it is no row of this session."""

    start: int
    raw: bytes
    row: Row | None

    @property
    def end(self) -> int:
        """The offset of the next line."""
        return self.start + len(self.raw) + 1


class Log:
    """The content of an open file, at one moment."""

    def __init__(self, fd: int, digest: str) -> None:
        self.fd = fd
        self.digest = digest
        self.mark = mark_of(digest)
        found = _IS_FIRST.fullmatch(os.pread(fd, BEGIN, 0))  # before the size: it is never ahead
        about = os.fstat(fd)
        self.size = about.st_size
        self.inode = about.st_ino
        self.file = found[2] if found else b""
        """What tells the file from its predecessors; empty if the first line is damaged."""
        self.begin = BEGIN if found else 0
        if found is None:
            refuse_newer_log(os.pread(fd, BEGIN, 0))
        self.acknowledged = int(found[1]) if found else 0
        self.commit: Commit | None = None
        """The last commit that is readable and whole."""
        self.is_current = False
        """Whether it is the one that was acknowledged last, or a later one."""
        self.tail = (self.begin, b"")
        """Its line, and where it starts."""
        self.end = self.size
        """Where the log ends; what follows was never finished."""
        self._find_last()

    @property
    def stored(self) -> Stored | None:
        """The head; a damaged one if the last commit can't be read."""
        if self.commit is None:
            return Stored(self.digest, _NO_NAMES, UNREADABLE_STAMP, 0.0, b"")
        stored = self.commit.stored(self.digest)
        if self.is_current:
            return stored
        return without_checksum(stored._replace(stamp=UNREADABLE_STAMP))

    @property
    def is_cut(self) -> bool:
        """Whether the file is shorter than it was."""
        return self.size < self.acknowledged

    @property
    def is_open_ended(self) -> bool:
        """Whether the last line has lost its newline."""
        return self.end > self.begin and os.pread(self.fd, 1, self.end - 1) != b"\n"

    def is_unchanged(self, fd: int) -> bool:
        """Whether an open file still is what was read; then it is this log's file."""
        found = _IS_FIRST.fullmatch(os.pread(fd, BEGIN, 0))
        about = os.fstat(fd)
        start, tail = self.tail
        if (
            found is None
            or found[2] != self.file
            or about.st_ino != self.inode
            or not self.end == about.st_size == self.size == int(found[1])
            or os.pread(fd, len(tail), start) != tail
        ):
            return False
        self.fd = fd
        return True

    def grown(self, commit: Commit, line: bytes, end: int) -> None:
        """Takes into account that this commit was written at the end, and acknowledged."""
        self.commit, self.is_current = commit, True
        self.tail = end - len(line), line
        self.size = self.end = self.acknowledged = end

    def _find_last(self) -> None:
        for start, raw in self._lines_before(self.size):
            commit = commit_in(raw, self.digest)
            if commit is None:
                continue
            ended = commit.begin + commit.size + len(raw) + 1
            if ended > self.acknowledged and not self._is_whole(commit, start):
                continue
            self.commit, self.is_current = commit, ended >= self.acknowledged
            if self.is_current:
                self.end = min(start + len(raw) + 1, self.size)
                self.tail = start, raw + b"\n"
            return

    def _is_whole(self, commit: Commit, start: int) -> bool:
        begin = start - commit.size
        if begin < self.begin:
            return False
        return _crc(self._blocks(begin, start)) == commit.sum

    # --- lines

    def lines(self, start: int | None = None) -> Iterator[Line]:
        """The lines from an offset on, in order, without commits."""
        mark = self.mark
        for at, raw in self.raw_lines(self.begin if start is None else start):
            if not raw.startswith(_COMMIT):
                yield Line(at, raw, row_in(raw, mark))

    def raw_lines(self, at: int) -> Iterator[tuple[int, bytes]]:
        """The lines from an offset on, each with its offset."""
        begun: list[bytes] = []
        for block in self._blocks(at, self.end):
            whole, newline, rest = block.rpartition(b"\n")
            if newline:
                for raw in b"".join([*begun, whole]).split(b"\n"):
                    yield at, raw
                    at += len(raw) + 1
                begun = []
            begun.append(rest)
        if rest := b"".join(begun):  # its newline is missing
            yield at, rest

    def _lines_before(self, stop: int) -> Iterator[tuple[int, bytes]]:
        """The lines before an offset, last first."""
        size, rest = _BLOCK, b""
        if stop > self.begin and os.pread(self.fd, 1, stop - 1) != b"\n":
            rest = b"\n"  # as if it were there
        while stop > self.begin:
            start = max(self.begin, stop - size)
            block = os.pread(self.fd, stop - start, start) + rest
            # The block may contain only the end of its first line: keep that for the next block.
            cut = 0 if start == self.begin else block.find(b"\n") + 1
            at = start + len(block)
            for raw in reversed(block[cut:-1].split(b"\n")) if cut < len(block) else ():
                at -= len(raw) + 1
                yield at, raw
            rest, stop = block[:cut], start
            size = max(min(size * 2, _LARGE), len(rest))

    def line_at(self, start: int) -> Line:
        """The line at an offset."""
        raw = self._line_from(start)
        return Line(start, raw, row_in(raw, self.mark))

    def torn(self) -> bytes:
        """What follows the end."""
        return os.pread(self.fd, self.size - self.end, self.end)

    def _line_from(self, start: int) -> bytes:
        size = _BLOCK
        while True:
            block = os.pread(self.fd, max(0, min(size, self.end - start)), start)
            found = block.find(b"\n")
            if found >= 0 or len(block) < size:
                return block[:found] if found >= 0 else block
            size *= 4

    def _blocks(self, at: int, stop: int) -> Iterator[bytes]:
        size = _BLOCK
        while at < stop:
            block = os.pread(self.fd, min(size, stop - at), at)
            if not block:
                return
            yield block
            at += len(block)
            size = min(size * 2, _LARGE)

    # --- rows in order

    def rows(
        self, branch: int, after: int, upto: int | None, limit: int | None, *, newest: bool
    ) -> list[Row]:
        """See `Storage.rows`. Unreadable lines have numbers between those of their neighbours."""
        if limit == 0:
            return []
        if newest and limit is not None:
            return _chosen(self._last_rows(upto, branch, limit), branch, after, upto)[-limit:]
        start, before = self._start_after(after)
        return _chosen(self.placed(self.lines(start), before), branch, after, upto, limit)

    def placed(
        self, lines: Iterable[Line] | None = None, before: Row | None = None
    ) -> Iterator[Row]:
        """The rows in these lines, in order; `before` is the one before the first of them.

        A line that is no row, or out of order, gets a number if one is missing there. Otherwise it
        was a commit, of which nothing is missed.
        """
        seq, branch = (0, MAIN) if before is None else (before.seq, before.branch)
        strange: list[Line] = []
        for line in self.lines() if lines is None else lines:
            row = line.row
            if row is None or row.seq <= seq:
                strange.append(line)
                continue
            if strange:
                yield from self._guessed(strange, seq, row.seq, branch)
                strange = []
            yield row
            seq, branch = row.seq, row.branch
        if strange:
            last = seq + 1 if self.commit is None or not self.is_current else self.commit.last
            yield from self._guessed(strange, seq, max(last, seq) + 1, branch)

    def _guessed(self, lines: Iterable[Line], seq: int, stop: int, branch: int) -> Iterator[Row]:
        for line in lines:
            told = self._readable_place(line.raw)
            if told is not None and seq < told[1] < stop:
                branch, seq = told
            elif seq + 1 < stop:
                seq += 1
            elif line.row is not None and line.row.seq == seq:
                pass  # a second line with the number of an intact one
            else:
                continue
            yield strange_row(line, seq, branch)

    def _readable_place(self, raw: bytes) -> tuple[int, int] | None:
        """The branch and number that are still readable in a line."""
        found = _PLACE.search(raw.partition(_MESSAGE)[0])
        if found is None or found[1] not in {None, self.digest[:8].encode()}:
            return None
        return int(found[2]), int(found[3])

    def _last_rows(self, upto: int | None, branch: int, limit: int) -> list[Row]:
        """At least the last rows of a branch up to a number; some may be above it."""
        found: list[Line] = []
        before: Row | None = None
        stop = self.end if upto is None else self._start_after(upto)[0]
        for start, raw in self._lines_before(stop):
            if raw.startswith(_COMMIT):
                continue
            line = Line(start, raw, row_in(raw, self.mark))
            if line.row is not None and limit <= 0:
                before = line.row
                break
            found.append(line)
            limit -= line.row is not None and line.row.branch == branch
        found.reverse()
        if stop < self.end:  # unreadable lines that follow may get numbers below `upto`
            for line in self.lines(stop):
                found.append(line)
                if line.row is not None:
                    break
        return list(self.placed(found, before))

    def _start_after(self, seq: int) -> tuple[int, Row | None]:
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
        """The first row from `start` on; `None` if there is none before `stop`."""
        for line in self.lines(start):
            if line.start >= stop:
                return None
            if line.row is not None:
                return line
        return None


def strange_row(line: Line, seq: int, branch: int) -> Row:
    """What stands for a line that is no row; its damage can be detected."""
    found = None if line.row is not None else _ID.search(line.raw.partition(_MESSAGE)[0])
    id = "" if found is None else found[1].decode(errors="replace")
    return Row(id, line.raw, 0.0, branch=branch, seq=seq, checksum="c1-", chain=_FORM)


def _chosen(
    rows: Iterable[Row], branch: int, after: int, upto: int | None, limit: int | None = None
) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        if row.branch != branch or row.seq <= after:
            continue
        if upto is not None and row.seq > upto:
            break
        # An unreadable line may share a number with its neighbour: they stay together.
        if limit is not None and len(found) >= limit and row.seq != found[-1].seq:
            break
        found.append(row)
    return found


def _crc(blocks: Iterable[bytes]) -> int:
    total = 0
    for block in blocks:
        total = crc32(block, total)
    return total


def is_commit(raw: bytes) -> bool:
    """Whether a line begins as a commit does."""
    return raw.startswith(_COMMIT)
