"""The way from the first message to a branch's last, through the branches it came from."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, NO_BRANCH, Row, Session, Storage


class Stretch(NamedTuple):
    """A branch's own messages, up to the number at which the path leaves it."""

    branch: int
    upto: int | None


def stretches(session: Session | None, branch: int, upto: int | None = None) -> list[Stretch]:
    """The stretches of a path, the first message's first."""
    forks = {fork.number: fork for fork in session.forks} if session else {}
    path = [Stretch(branch, upto)]
    while branch != MAIN:
        fork = forks.get(branch)
        if fork is None or fork.parent >= branch:  # damaged: a cycle must end
            raise NotFound(NO_BRANCH)
        branch = fork.parent
        path.append(Stretch(branch, fork.at))
    return path[::-1]


def is_on(path: list[Stretch], row: Row) -> bool:
    """Whether a path goes through a message."""
    return any(row.branch == branch and (upto is None or row.seq <= upto) for branch, upto in path)


async def read_path(
    storage: Storage, identity: SessionIdentity, path: list[Stretch], *, after: int = 0
) -> list[Row]:
    """All rows of a path numbered above `after`."""
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
