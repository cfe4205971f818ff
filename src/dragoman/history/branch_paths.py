"""The path from the first message to the end of a branch, through its parent branches."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, NO_BRANCH, Row, Session, Storage


class Stretch(NamedTuple):
    """A part of a path: a branch's own messages, up to a sequence number."""

    branch: int
    upto: int | None


def stretches(session: Session | None, branch: int, upto: int | None = None) -> list[Stretch]:
    """The stretches of a path, in order."""
    forks = {fork.number: fork for fork in session.forks} if session else {}
    path = [Stretch(branch, upto)]
    while branch != MAIN:
        fork = forks.get(branch)
        if fork is None or fork.parent >= branch:  # damaged: avoid an endless loop
            raise NotFound(NO_BRANCH)
        branch = fork.parent
        path.append(Stretch(branch, fork.at))
    return path[::-1]


def is_on(path: list[Stretch], row: Row) -> bool:
    """Whether a message is on the path."""
    return any(row.branch == branch and (upto is None or row.seq <= upto) for branch, upto in path)


async def read_path(
    storage: Storage, identity: SessionIdentity, path: list[Stretch], *, after: int = 0
) -> list[Row]:
    """All rows of a path with a sequence number above `after`."""
    rows: list[Row] = []
    for branch, upto in path:
        rows += await storage.rows(identity, branch=branch, after=after, upto=upto)
    return rows


async def read_tail(
    storage: Storage, identity: SessionIdentity, path: list[Stretch], count: int
) -> list[Row]:
    """The last rows of a path."""
    rows: list[Row] = []
    for branch, upto in reversed(path):
        missing = count - len(rows)
        if missing <= 0:
            break
        found = await storage.rows(identity, branch=branch, upto=upto, limit=missing, newest=True)
        rows = found + rows
    return rows
