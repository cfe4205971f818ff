"""Checks the lines of a log, as far as reading its messages does not."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.history.storage.files.log import Log, commit_in, row_in

TORN = "the end is incomplete because of a crash; the next write sets it aside"
_UNREADABLE = "the line can't be read, or belongs elsewhere"


def problems_of(log: Log) -> Iterator[str]:
    """What is wrong with a file."""
    if log.size == 0:
        yield ": the file is empty"
        return
    found = [*_unreadable(log)]
    yield from found
    if log.is_cut and not found:
        yield ": the file is shorter than it was: messages, or the latest changes, are missing"


def _unreadable(log: Log) -> Iterator[str]:
    if not log.file:
        yield ":1: the line can't be read"
    seq, seen = 0, set[str]()
    for number, (_, raw) in enumerate(log.raw_lines(log.begin), 2 if log.file else 1):
        row = row_in(raw, log.mark)
        if row is None:
            is_told = not log.file and number == 1
            if not is_told and commit_in(raw, log.digest) is None:
                yield f":{number}: {_UNREADABLE}"
        elif row.id in seen:
            yield f":{number}: its id is used twice"
        elif row.seq <= seq:
            yield f":{number}: its number is not above the previous one"
        else:
            seq = row.seq
            seen.add(row.id)
