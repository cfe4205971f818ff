"""Erases a user: every file of every session, and the records set aside."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.lines import Aside, aside_of
from dragoman.history.storage.files.reading import read
from dragoman.history.storage.files.salvaging import identity_in
from dragoman.history.storage.protocol import Erasure

_OUTSIDE = "backups and snapshots of the directory, and freed blocks of the disk"


def forget(directory: Directory, user: str) -> Erasure:
    """See `Storage.forget`."""
    sessions = messages = unknown = 0
    for digest in list(directory.digests()):
        with directory.locked(digest):
            owner, held = _owner(directory, digest)
            if owner is None:
                unknown += 1
            elif owner == (user,):
                directory.remove(digest)
                sessions, messages = sessions + 1, messages + held
    unread = _forget_aside(directory, user)
    remains = [_OUTSIDE]
    if unknown:
        remains.append(f"{unknown} files with an unreadable first line; see `verify`")
    if unread:
        remains.append(f"{unread} files of records set aside, with an unreadable line")
    return Erasure(sessions, messages, tuple(remains))


def _owner(directory: Directory, digest: str) -> tuple[tuple[str | None] | None, int]:
    """The owner of a session (`None` if unreadable), and its number of messages."""
    with read(directory, digest, is_locked=True) as log:
        if log is None:
            return None, 0
        identity = identity_in(log) if log.head is None else log.head.fixed.identity
        held = sum(line.row is not None for line in log.lines())
        return (None if identity is None else (identity.user,)), held


def _forget_aside(directory: Directory, user: str) -> int:
    """Also covers deleted sessions; returns the number of files whose owner is unclear."""
    unread = 0
    for digest in list(directory.digests(".aside")):
        with directory.locked(digest):
            found = list(set_aside(directory, digest))
            if any(aside is not None and aside.identity.user == user for aside in found):
                directory.remove(digest, [".aside"])
            elif None in found:
                unread += 1
    return unread


def set_aside(directory: Directory, digest: str) -> Iterator[Aside | None]:
    """The records set aside of a session; `None` for an unreadable line."""
    with directory.reading(digest, ".aside") as fd:
        if fd is None:
            return
        with open(fd, "rb", closefd=False) as file:
            yield from map(aside_of, file)
