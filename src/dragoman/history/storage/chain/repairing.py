"""Brings whole members up to date with the primary."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from dragoman.errors import Corrupt, DragomanError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.catching_up import ANOTHER, LEFT_OVER, mend
from dragoman.history.storage.chain.damaged_copies import heal
from dragoman.history.storage.chain.members import Member, Report
from dragoman.history.storage.chain.replicas import Replicas
from dragoman.history.storage.protocol import Session

_PAGE = 200


class Repair(msgspec.Struct, frozen=True):
    """The number of sessions checked and copies updated, and the remaining problems."""

    sessions: int
    mended: int
    problems: tuple[Report, ...] = ()
    healed: tuple[Report, ...] = ()
    """Damaged copies that were replaced by intact ones."""


async def repair(replicas: Replicas, identity: SessionIdentity | None) -> Repair:
    """See `ChainStorage.repair`."""
    work = _Work(replicas)
    if identity is not None:
        await work.mend(identity, replicas.secondaries)
    else:
        async for session in _everything(replicas.primary):
            await work.mend(session.identity, replicas.secondaries)
            work.seen.add(session.identity.digest)
        for member in replicas.secondaries:
            await work.look_for_more(member)
    return Repair(work.sessions, work.mended, tuple(work.problems), tuple(work.healed))


class _Work:
    """A repair in progress."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self.sessions = 0
        self.mended = 0
        self.problems: list[Report] = []
        self.healed: list[Report] = []
        self.seen: set[str] = set()

    async def mend(self, identity: SessionIdentity, members: list[Member]) -> None:
        """Updates every member's copy of a session."""
        async with self._replicas.locked(identity):
            self.sessions += 1
            healed, failed = await heal(self._replicas, identity)
            self.healed += healed
            self.problems += failed
            # A failing primary is not a member's fault, and nothing can be repaired from it.
            await self._replicas.primary.has(identity)
            for member in members:
                await self._mend(identity, member)

    async def _mend(self, identity: SessionIdentity, member: Member) -> None:
        try:
            self.mended += await mend(self._replicas.primary, member, identity)
            await _expect_as_many(self._replicas.primary, member, identity)
        except DragomanError as error:
            self.problems.append(self._replicas.reports.add(member, "repair", error))
        else:
            member.behind.discard(identity.digest)

    async def look_for_more(self, member: Member) -> None:
        """Reports sessions that only this member has."""
        primary = self._replicas.primary
        try:
            async for session in _everything(member):
                if session.identity.digest in self.seen:
                    continue
                try:
                    is_there = await primary.has(session.identity)
                except Corrupt:  # unreadable, so it was not in the listing
                    await self.mend(session.identity, self._replicas.secondaries)
                    self.seen.add(session.identity.digest)
                    continue
                if not is_there:
                    self.problems.append(self._replicas.reports.add(member, "repair", LEFT_OVER))
        except DragomanError as error:
            self.problems.append(self._replicas.reports.add(member, "repair", error))


async def _expect_as_many(primary: Member, member: Member, identity: SessionIdentity) -> None:
    """Raises if two sessions of the same version have different numbers of messages."""
    counts: set[int] = set()
    versions: set[int | None] = set()
    for each in (primary, member):
        counts.add(await each.run(lambda storage: storage.count(identity)))
        session = await each.run(lambda storage: storage.session(identity))
        versions.add(None if session is None else session.version)
    if len(versions) == 1 < len(counts):
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
