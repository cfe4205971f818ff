"""Checks the files, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import Corrupt, StoreError
from dragoman.history.records import is_sealed, message_of
from dragoman.history.storage.files.directory import Directory, explanation, place
from dragoman.history.storage.files.log import Line, Log
from dragoman.history.storage.files.placing import is_unreadable, placed
from dragoman.history.storage.files.reading import read
from dragoman.history.storage.integrity import damage_to, missing_rows
from dragoman.history.storage.plausibility import Overview
from dragoman.history.storage.protocol import MAIN, Row

_TORN = "incomplete because of a crash; the next write sets it aside"


def verify(directory: Directory) -> list[str]:
    """See `Storage.verify`."""
    return [
        f"{place(digest, '.jsonl')}{problem}"
        for digest in directory.digests()
        for problem in _problems(directory, digest)
    ]


def _problems(directory: Directory, digest: str) -> list[str]:
    try:
        with read(directory, digest) as log:
            found = [] if log is None else list(_of(log))  # None: just deleted
    except OSError as error:
        return [f": {explanation(error, 'file')}"]
    except StoreError as error:
        return [f": {error}"]
    if found and found[-1].endswith(_TORN) and not _is_torn(directory, digest):
        found.pop()  # a write was in progress
    return found


def _is_torn(directory: Directory, digest: str) -> bool:
    with directory.locked(digest), read(directory, digest, is_locked=True) as log:
        return log is not None and log.end < log.size


def _of(log: Log) -> Iterator[str]:
    if log.size == 0:
        yield ": the file is empty"
        return
    if log.head is None:
        yield ":1: the line can't be read, or is another session's; branches are unknown"
    seen: set[str] = set()
    held, number, overview = 0, 1, Overview()
    for number, (line, row) in enumerate(placed(log), 2):
        held += 1
        problem = _problem(log, line, row)
        if problem is None and row.id in seen:
            problem = "its id is used twice"
        if problem is not None:
            yield f":{number}: {problem}"
        else:
            overview.add(row)
        seen.add(row.id)
    if log.head is not None:
        yield from _miscounted(log, held, overview)
    if log.end < log.size:
        yield f":{number + 1}: {_TORN}"


def _problem(log: Log, line: Line, row: Row) -> str | None:
    if is_unreadable(row):
        return _placement_problem(log, line)
    problem = damage_to(row)
    if problem is None and not is_sealed(row.body):
        try:
            message_of(row.body)
        except Corrupt as error:
            problem = str(error)
    return problem


def _placement_problem(log: Log, line: Line) -> str:
    if line.row is None:
        return "the line can't be read, or belongs elsewhere"
    known = {MAIN, *(fork.number for fork in log.head.fixed.forks)} if log.head else None
    if known is not None and line.row.branch not in known:
        return "its branch does not exist in the session"
    return "its number is not above the previous one"


def _miscounted(log: Log, held: int, overview: Overview) -> Iterator[str]:
    try:
        session = log.session()
        problem = missing_rows(session, held)
    except Corrupt as error:
        yield f": {error}"
        return
    if problem is not None:
        yield f": {problem}"
    for each in overview.problems(session):
        yield f": {each}"
