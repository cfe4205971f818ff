"""The ways that a conversation went: a page of one of them, and what there is beside each message.

A branch goes on from an anchor: the last message that it shares with its parent. Messages that
follow one anchor, on whichever branches, are alternatives to each other.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from dragoman.errors import NotFound
from dragoman.history.branch_paths import Stretch, is_on, read_tail, stretches
from dragoman.history.storage.protocol import MAIN, NO_BRANCH, NO_MESSAGE, Row, Session, Storage

_MOST_FORKS = 500  # the latest that are looked at
_MOST_KEPT = 64
Anchor = tuple[int, int]
"""The branch and the number of a message; before the first one, `START`."""
START: Anchor = (MAIN, 0)


class Leaf(NamedTuple):
    """A branch, as far as others need to know it."""

    number: int
    parent: int
    anchor: Anchor
    from_message: str | None
    """The id of the message that it goes on from."""
    is_empty: bool


class Stretched(NamedTuple):
    """Some messages of a branch, in order, and the one before them."""

    rows: list[Row]
    before: Row | None
    has_more: bool


class Branches:
    """The branches of conversations that were looked at lately."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._kept: OrderedDict[tuple[str, int, float], list[Leaf]] = OrderedDict()

    async def leaves(self, session: Session) -> list[Leaf]:
        """The branches that were forked off, in their order."""
        if not session.forks:
            return []
        key = (session.identity.digest, session.version, session.created_at)
        found = self._kept.get(key)
        if found is None:
            found = [
                await self._leaf(session, each.number) for each in session.forks[-_MOST_FORKS:]
            ]
            self._kept[key] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    async def _leaf(self, session: Session, number: int) -> Leaf:
        identity, storage = session.identity, self._storage
        fork = next(each for each in session.forks if each.number == number)
        path = stretches(session, fork.parent, fork.at)
        last = await read_tail(storage, identity, path, 1)
        own = await storage.rows(identity, branch=number, limit=1)
        anchor = (last[0].branch, last[0].seq) if last else START
        return Leaf(number, fork.parent, anchor, last[0].id if last else None, not own)

    # --- a page of one

    async def read(self, session: Session, branch: int, before: str, limit: int) -> Stretched:
        """The last messages of a branch, or the last before one of them."""
        path = await self._path(session, branch, before)
        rows = await read_tail(self._storage, session.identity, path, limit + 1)
        has_more = len(rows) > limit
        return Stretched(
            rows[-limit:] if has_more else rows, rows[0] if has_more else None, has_more
        )

    async def _path(self, session: Session, branch: int, before: str) -> list[Stretch]:
        path = stretches(session, branch)
        if not before:
            return path
        row = await self._storage.row(session.identity, before)
        if row is None or not is_on(path, row):
            raise NotFound(NO_MESSAGE)
        upto = [stretch for stretch in path if stretch.branch < row.branch]
        return [*upto, Stretch(row.branch, row.seq - 1)]

    # --- what is beside each

    async def siblings(self, session: Session, found: Stretched) -> dict[str, list[int]]:
        """By message: the branches that have an alternative in its place, its own included."""
        beside: dict[Anchor, list[int]] = {}
        for leaf in await self.leaves(session):
            if not leaf.is_empty:
                beside.setdefault(leaf.anchor, []).append(leaf.number)
        if not beside:
            return {}
        made: dict[str, list[int]] = {}
        before = found.before
        for row in found.rows:
            anchor = START if before is None else (before.branch, before.seq)
            if anchor in beside:
                made[row.id] = await self._alternatives(session, anchor, beside[anchor])
            before = row
        return made

    async def _alternatives(self, session: Session, anchor: Anchor, forks: list[int]) -> list[int]:
        branch, seq = anchor
        straight = await self._storage.rows(session.identity, branch=branch, after=seq, limit=1)
        own = [branch] if straight else []
        return sorted({*own, *forks})


def expect_branch(session: Session, number: int) -> int:
    """The number, if the session has such a branch."""
    if number != MAIN and all(fork.number != number for fork in session.forks):
        raise NotFound(NO_BRANCH)
    return number
