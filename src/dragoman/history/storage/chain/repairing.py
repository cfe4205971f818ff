"""Repairs the members of a chain from each other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

import msgspec

from dragoman.errors import Corrupt, DragomanError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.shelf import (
    ANOTHER,
    LEFT_OVER,
    ChainShelf,
    Copy,
    Member,
    Report,
    copy_of,
    mend,
)
from dragoman.history.storage.integrity import missing_rows, problem_with
from dragoman.history.storage.protocol import MAIN, Row, Session, is_proving

_NO_COPY = "its copy of a session is damaged, and no member has an intact one of the same state"
_CHANGED = "its session was changed in the meantime; try again"
_PAGE = 200


class Repair(msgspec.Struct, frozen=True):
    """The number of sessions checked and copies updated, and the remaining problems."""

    sessions: int
    mended: int
    problems: tuple[Report, ...] = ()
    healed: tuple[Report, ...] = ()
    """Damaged copies that were replaced by intact ones."""


async def repair(shelf: ChainShelf, identity: SessionIdentity | None) -> Repair:
    """See `ChainStorage.repair`."""
    work = _Work(shelf)
    if identity is not None:
        await work.mend(identity)
    else:
        seen: set[str] = set()
        async for session in _everything(shelf.primary):
            await work.mend(session.identity)
            seen.add(session.identity.digest)
        for member in shelf.secondaries:
            await work.look_for_more(member, seen)
    return Repair(work.sessions, work.mended, tuple(work.problems), tuple(work.healed))


class _Found(NamedTuple):
    """What a member has of a session, and what is wrong with it."""

    member: Member
    copy: Copy | None
    """`None` if its head is unreadable."""
    rows: Sequence[Row]
    problem: str | None


class _Work:
    """A repair in progress."""

    def __init__(self, shelf: ChainShelf) -> None:
        self._shelf = shelf
        self.sessions = 0
        self.mended = 0
        self.problems: list[Report] = []
        self.healed: list[Report] = []

    async def mend(self, identity: SessionIdentity) -> None:
        """Replaces damaged copies, and updates the others."""
        self.sessions += 1
        primary, digest = self._shelf.primary, identity.digest
        await self._heal(identity)
        # A failing primary is not a member's fault, and nothing can be repaired from it.
        await primary.get(digest)
        for member in self._shelf.secondaries:
            try:
                self.mended += await mend(primary, member, digest)
                await _expect_as_many(primary, member, digest)
            except DragomanError as error:
                self._tell(member, error)

    def _tell(self, member: Member, problem: DragomanError | str) -> None:
        self.problems.append(self._shelf.reports.add(member, "repair", problem))

    async def look_for_more(self, member: Member, seen: set[str]) -> None:
        """Reports sessions that only this member has."""
        try:
            async for session in _everything(member):
                if session.identity.digest in seen:
                    continue
                seen.add(session.identity.digest)
                if await self._shelf.primary.get(session.identity.digest) is None:
                    self._tell(member, LEFT_OVER)
                else:  # unreadable, so it was not in the listing
                    await self.mend(session.identity)
        except DragomanError as error:
            self._tell(member, error)

    # --- damaged copies
    #
    # The intact copy must have the same state: the same version, and everything that is still
    # readable in the damaged one. If its head is unreadable, only its messages are compared.

    async def _heal(self, identity: SessionIdentity) -> None:
        found = [await _found(member, identity) for member in self._shelf.members]
        there = [each for each in found if each is not None]
        sound = [each for each in there if each.problem is None and each.copy is not None]
        for bad in there:
            if bad.problem is None:
                continue
            good = next((each for each in sound if _is_of_same_state(each, bad)), None)
            if good is None or good.copy is None:
                self._tell(bad.member, _NO_COPY)
                continue
            try:
                await self._replace(bad.member, good.copy)
            except DragomanError as error:
                self._tell(bad.member, error)
            else:
                told = f"its damaged copy of a session was replaced by that of {good.member.name}"
                self.healed.append(self._shelf.reports.add(bad.member, "repair", told))

    async def _replace(self, member: Member, copy: Copy) -> None:
        there = await member.get(copy.stored.digest)
        before = 0 if there is None else there.stamp
        change = copy.change._replace(is_repair=True)
        if not await member.commit(before, copy.stored, change):
            raise StoreError(_CHANGED)


async def _found(member: Member, identity: SessionIdentity) -> _Found | None:
    try:
        copy = await copy_of(member, identity.digest, identity)
    except Corrupt as error:
        return _Found(member, None, await _readable(member, identity), str(error))
    except DragomanError:
        return None  # it is unavailable, which is reported elsewhere
    if copy is None:
        return None
    return _Found(member, copy, copy.rows, _problem(member, copy.head.session, copy.rows))


async def _readable(member: Member, identity: SessionIdentity) -> Sequence[Row]:
    """The readable rows of the main branch, if the other branches are unknown."""
    try:
        return await member.run(lambda storage: storage.rows(identity, branch=MAIN))
    except DragomanError:
        return ()


def _problem(member: Member, session: Session, rows: Sequence[Row]) -> str | None:
    for row in rows:
        problem = problem_with(row)
        if problem is not None:
            return problem
    problem = missing_rows(session, len(rows))
    if problem is None and is_proving(member.storage):
        return member.storage.problem_of(session.identity)
    return problem


def _is_of_same_state(good: _Found, bad: _Found) -> bool:
    if good.copy is None:
        return False
    mine = good.copy.head.session
    if bad.copy is not None:
        other = bad.copy.head.session
        if (other.version, other.created_at) != (mine.version, mine.created_at):
            return False
    held = {(row.branch, row.seq): _content_of(row) for row in good.rows}
    readable = [row for row in bad.rows if problem_with(row) is None]
    return all(held.get((row.branch, row.seq)) == _content_of(row) for row in readable)


def _content_of(row: Row) -> Row:
    return msgspec.structs.replace(row, checksum=None, chain=None)


# --- whole members


async def _expect_as_many(primary: Member, member: Member, digest: str) -> None:
    """Raises if two sessions of the same commit have different numbers of messages."""
    stamps: set[int | None] = set()
    counts: set[int] = set()
    for each in (primary, member):
        counts.add(await each.run(lambda storage: storage.shelf.count(digest, None)))
        stored = await each.get(digest)
        stamps.add(None if stored is None else stored.stamp)
    if len(stamps) == 1 < len(counts):
        raise StoreError(ANOTHER)


async def _everything(member: Member) -> AsyncGenerator[Session]:
    """All sessions of a member, page by page."""
    after = ""
    while page := await _page(member, after):
        for session in page:
            yield session
        after = page[-1].identity.digest


async def _page(member: Member, after: str) -> list[Session]:
    return await member.run(lambda storage: storage.sessions(limit=_PAGE, after=after))
