"""The rows of a file in order, with unreadable ones in their most likely positions.

A line that is unreadable, belongs to another session, or is out of order is returned as a row
whose damage is detectable, numbered between its neighbours as far as possible.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from dragoman.history.records import StoredRow
from dragoman.history.storage.files.lines import row_of
from dragoman.history.storage.files.log import Line, Log
from dragoman.history.storage.protocol import MAIN, Row

_UNREADABLE = "c1-unreadable"  # never a valid checksum
_MESSAGE = b',"message":'
_PLACE = re.compile(rb'"chain":"(?:f1-([0-9a-f]{8})\.|p1-)(\d{1,18})\.(\d{1,18})[".]')
_ID = re.compile(rb'"id":"([\w.:-]{1,128})"')

Placed = tuple[Line, Row]


def is_unreadable(row: Row) -> bool:
    """Whether a row is a placeholder for an unreadable line."""
    return row.checksum == _UNREADABLE


def placed(
    log: Log, lines: Iterable[Line] | None = None, after: StoredRow | None = None
) -> Iterator[Placed]:
    """Each line with its row, in order; `after` is the row before the first of them."""
    branches = _branches(log)
    seq, branch = (0, None) if after is None else (after.seq, after.branch)
    strange: list[Line] = []
    for line in log.lines() if lines is None else lines:
        row = line.row
        if row is None or row.seq <= seq or (branches is not None and row.branch not in branches):
            strange.append(line)
            continue
        if strange:
            likely = row.branch if branch is None else branch
            yield from _guessed(log, strange, seq, row.seq, likely)
            strange = []
        yield line, row_of(row)
        seq, branch = row.seq, row.branch
    if strange:
        last = None if log.head is None else max(log.head.last_seq, seq) + 1
        yield from _guessed(log, strange, seq, last, branch or MAIN)


def placed_after(log: Log, seq: int) -> Iterator[Placed]:
    """Like `placed`, from where rows with numbers above `seq` may be."""
    start, before = log.start_after(seq)
    return placed(log, log.lines(start), before)


def placed_before(log: Log, upto: int | None, branch: int, count: int) -> list[Placed]:
    """Like `placed`, at least the last `count` of a branch up to a number; some may be above it."""
    found: list[Line] = []
    after: StoredRow | None = None
    stop = log.end
    if upto is not None:
        stop, _ = log.start_after(upto)
    missing = count
    for line in log.lines_before(stop):
        if line.row is not None and missing <= 0:
            after = line.row
            break
        found.append(line)
        missing -= line.row is not None and line.row.branch == branch
    found.reverse()
    if stop < log.end:  # unreadable lines that follow may get numbers below `upto`
        found += _upto_readable(log.lines(stop))
    return list(placed(log, found, after))


def _upto_readable(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        yield line
        if line.row is not None:
            return


def _branches(log: Log) -> Collection[int] | None:
    if log.head is None:
        return None
    return {MAIN, *(fork.number for fork in log.head.fixed.forks)}


def _guessed(
    log: Log, lines: Iterable[Line], seq: int, following: int | None, branch: int
) -> Iterator[Placed]:
    for line in lines:
        said = _readable_place(log, line)
        highest = seq + 1 if following is None else following - 1
        if said is not None and seq < said[1] and (following is None or said[1] < following):
            place = said
        else:
            place = branch, max(min(seq + 1, highest), seq, 1)
        seq = place[1]
        yield line, Row(_id(line), line.raw, 0.0, branch=place[0], seq=seq, checksum=_UNREADABLE)


def _readable_place(log: Log, line: Line) -> tuple[int, int] | None:
    """The branch and number that are still readable in a line."""
    found = _PLACE.search(line.raw.partition(_MESSAGE)[0])
    if found is None or found[1] not in {None, log.digest[:8].encode()}:
        return None
    branches = _branches(log)
    branch, seq = int(found[2]), int(found[3])
    return (branch, seq) if branches is None or branch in branches else None


def _id(line: Line) -> str:
    if line.row is not None:
        return ""  # it may be a duplicate
    found = _ID.search(line.raw.partition(_MESSAGE)[0])
    return "" if found is None else found[1].decode(errors="replace")
