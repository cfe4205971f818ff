"""`Branch`: a branch of a history, and the path through its parents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

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


# --- branches


class Branch(msgspec.Struct, frozen=True):
    """One branch of a conversation."""

    number: int
    leaf: str | None
    """The id of its last message, or `None` if it is empty."""
    forked_at: str | None
    """The id of the message at which it left its parent; `None` for the main branch."""
    is_active: bool
    """Whether histories open on this branch."""

    def __repr__(self) -> str:
        return f"Branch({self.number}{', active' if self.is_active else ''})"  # no ids

    def __rich_repr__(self) -> Iterator[Any]:  # type: ignore[override]  # rich accepts any iterable
        return iter((self.number,))


async def branches_of(
    storage: Storage, identity: SessionIdentity, session: Session
) -> list[Branch]:
    """All branches of a session, the main branch first."""
    found: list[Branch] = []
    forks = {fork.number: fork for fork in session.forks}
    for number in (MAIN, *forks):
        fork = forks.get(number)
        leaf = await last_id(storage, identity, session, number)
        at = None
        if fork is not None:
            at = await last_id(storage, identity, session, fork.parent, fork.at)
        found.append(Branch(number, leaf, at, number == session.active))
    return found


async def last_id(
    storage: Storage,
    identity: SessionIdentity,
    session: Session,
    branch: int,
    upto: int | None = None,
) -> str | None:
    """The id of the last message of a branch, optionally up to a sequence number."""
    rows = await read_tail(storage, identity, stretches(session, branch, upto), 1)
    return rows[0].id if rows else None
