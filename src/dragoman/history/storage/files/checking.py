"""What is wrong with the files, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import StoreError
from dragoman.history.storage.files.directory import Directory, explanation, place
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.files.reading import read
from dragoman.history.storage.protocol import MAIN

_TORN = "torn off by a crash; the next write sets it aside"


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
            found = [": the file is empty"] if log is None else list(_of(log))
    except OSError as error:
        return [f": {explanation(error, 'file')}"]
    except StoreError as error:
        return [f": {error}"]
    if found and found[-1].endswith(_TORN) and not _is_torn(directory, digest):
        found.pop()  # it was no more than a write under way
    return found


def _is_torn(directory: Directory, digest: str) -> bool:
    with directory.locked(digest), read(directory, digest) as log:
        return log is not None and log.end < log.size


def _of(log: Log) -> Iterator[str]:
    if log.head is None:
        yield ":1: the line can't be read, or is another session's; branches are not known"
    branches = {MAIN, *(fork.number for fork in log.head.forks)} if log.head else None
    seen: set[str] = set()
    seq, number = 0, 1
    for number, line in enumerate(log.lines(), 2):
        if line.row is None:
            yield f":{number}: the line can't be read"
            continue
        if line.row.seq <= seq:
            yield f":{number}: its number is not above the one before"
        if line.row.id in seen:
            yield f":{number}: its id is there twice"
        if branches is not None and line.row.branch not in branches:
            yield f":{number}: it is on a branch that the session does not have"
        seq = line.row.seq
        seen.add(line.row.id)
    if log.end < log.size:
        yield f":{number + 1}: {_TORN}"
