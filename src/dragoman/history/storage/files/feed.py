"""The feed of changes: a file with the digest of each session that was written, in order.

    0000000000000000000000000000000000004711     how many lines were pruned before
    3fa9…e1                                      a line per commit

A line is written before its commit, under the session's lock: whoever reads it waits for that lock.
If the writer died before its commit, a session is told that did not change.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from dragoman.history.storage.files.directory import Directory, wait_for, write_all

_NAME, _TEMPORARY = "feed", "feed.tmp"
_LINE = 41


def watch(directory: Directory) -> None:
    """Starts the feed."""
    fd = directory.opened_in_root(_NAME, os.O_RDWR | os.O_CREAT)
    if fd is not None:
        os.close(fd)


def tell(directory: Directory, digest: str) -> None:
    """Adds a session, if anybody watches."""
    if not directory.has(_NAME):
        return
    with _locked(directory) as fd:
        if fd is None:
            return
        size = os.fstat(fd).st_size
        if size < _LINE:
            write_all(fd, _first(0), 0)
            size = _LINE
        at = size - size % _LINE  # a line that was not finished is written over
        try:
            write_all(fd, digest.encode() + b"\n", at)
        except BaseException:
            os.ftruncate(fd, at)
            raise
        directory.sync(fd)


def changes(directory: Directory, after: int, limit: int) -> tuple[list[str], int]:
    """See `Shelf.changes`."""
    with _locked(directory) as fd:
        if fd is None or os.fstat(fd).st_size < _LINE:
            return [], after
        before = int(os.pread(fd, _LINE, 0))
        start = max(after - before, 0)
        raw = os.pread(fd, limit * _LINE, (start + 1) * _LINE)
    told = [raw[at : at + _LINE - 1].decode() for at in range(0, len(raw) - _LINE + 1, _LINE)]
    for digest in _one_of_each_lock(told):
        with directory.locked(digest):
            pass  # whoever wrote the line has committed by now, or died
    return told, before + start + len(told) if told else after


def prune(directory: Directory, upto: int) -> None:
    """See `Shelf.prune`."""
    with _locked(directory) as fd:
        if fd is None or os.fstat(fd).st_size < _LINE:
            return
        before = int(os.pread(fd, _LINE, 0))
        kept = (max(upto - before, 0) + 1) * _LINE
        rest = os.pread(fd, max(0, os.fstat(fd).st_size - kept), kept)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        new = directory.opened_in_root(_TEMPORARY, flags)
        if new is None:
            return
        try:
            write_all(new, _first(max(upto, before)) + rest, 0)
            directory.sync(new)
        finally:
            os.close(new)
        directory.renamed(_TEMPORARY, _NAME)


def _first(pruned: int) -> bytes:
    return b"%040d\n" % pruned


def _one_of_each_lock(digests: Iterable[str]) -> Iterable[str]:
    return {digest[:2]: digest for digest in digests}.values()


@contextmanager
def _locked(directory: Directory) -> Generator[int | None]:
    """The open feed, locked; it may have been replaced while we waited."""
    while True:
        fd = directory.opened_in_root(_NAME, os.O_RDWR)
        if fd is None:
            yield None
            return
        try:
            wait_for(fd)
            if directory.is_current(_NAME, fd):
                yield fd
                return
        finally:
            os.close(fd)
