"""`Branch`: a branch of a history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.history.branch_paths import read_tail, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Session, Storage


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
