"""Branches of a conversation: reads pages of a branch and finds the siblings of each message.

A branch starts at an anchor: the last message that it shares with its parent. Messages that
directly follow the same anchor, on any branch, are siblings.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from dragoman.errors import NotFound
from dragoman.history.branches import Stretch, is_on, read_tail, stretches
from dragoman.history.storage.protocol import MAIN, NO_BRANCH, NO_MESSAGE, Row, Session, Storage

_MAX_FORKS = 500  # only the latest are considered
_MAX_CACHED = 64
Anchor = tuple[int, int]
"""The branch and sequence number of a message; `START` is before the first message."""
START: Anchor = (MAIN, 0)


class Leaf(NamedTuple):
    """A forked branch."""

    number: int
    parent: int
    anchor: Anchor
    from_message: str | None
    """The id of the anchor message."""
    is_empty: bool


class BranchPage(NamedTuple):
    """A page of a branch's messages, in order, and the message before them."""

    rows: list[Row]
    before: Row | None
    has_more: bool


class Branches:
    """A cache of the branches of recently opened conversations."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._kept: OrderedDict[tuple[str, int, float], list[Leaf]] = OrderedDict()

    async def leaves(self, session: Session) -> list[Leaf]:
        """Returns the forked branches in order of creation."""
        if not session.forks:
            return []
        key = (session.identity.digest, session.version, session.created_at)
        found = self._kept.get(key)
        if found is None:
            found = [await self._leaf(session, each.number) for each in session.forks[-_MAX_FORKS:]]
            self._kept[key] = found
            if len(self._kept) > _MAX_CACHED:
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

    # --- pages of a branch

    async def read(self, session: Session, branch: int, before: str, limit: int) -> BranchPage:
        """Returns the last messages of a branch, or the last ones before a message."""
        path = await self._path(session, branch, before)
        rows = await read_tail(self._storage, session.identity, path, limit + 1)
        has_more = len(rows) > limit
        return BranchPage(
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

    # --- siblings

    async def siblings(self, session: Session, found: BranchPage) -> dict[str, list[int]]:
        """Maps a message id to the branches with a sibling of it, including its own."""
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
    """Returns the number if the session has this branch; else raises `NotFound`."""
    if number != MAIN and all(fork.number != number for fork in session.forks):
        raise NotFound(NO_BRANCH)
    return number
