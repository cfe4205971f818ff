"""The branches of a history, as people see them."""

from __future__ import annotations

import msgspec

from dragoman.history.identity import SessionIdentity
from dragoman.history.paths import read_tail, stretches
from dragoman.history.storage.protocol import MAIN, Session, Storage


class Branch(msgspec.Struct, frozen=True):
    """One way that a conversation went."""

    number: int
    leaf: str | None
    """The id of its last message; None while it has none."""
    forked_at: str | None
    """The id of the message after which it left its parent; None for the first branch."""
    is_active: bool
    """Whether a history opens on it."""


async def branches_of(
    storage: Storage, identity: SessionIdentity, session: Session
) -> list[Branch]:
    """All branches of a session, the first first."""
    found: list[Branch] = []
    forks = {fork.number: fork for fork in session.forks}
    for number in (MAIN, *forks):
        fork = forks.get(number)
        leaf = await _last_id(storage, identity, session, number, None)
        at = None
        if fork is not None:
            at = await _last_id(storage, identity, session, fork.parent, fork.at)
        found.append(Branch(number, leaf, at, number == session.active))
    return found


async def _last_id(
    storage: Storage, identity: SessionIdentity, session: Session, branch: int, upto: int | None
) -> str | None:
    rows = await read_tail(storage, identity, stretches(session, branch, upto), 1)
    return rows[0].id if rows else None
