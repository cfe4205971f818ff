"""Repairs the members of a chain from each other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from dragoman.errors import Corrupt, DragomanError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.replicas import (
    ANOTHER,
    LEFT_OVER,
    Member,
    Replicas,
    Report,
    mend,
    snapshot,
)
from dragoman.history.storage.integrity import missing_rows, problem_with
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage, is_proving

# --- damaged copies
#
# The intact copy must have the same state: the same version, and everything that is still readable
# in the damaged one. If a member's counters are unreadable, only its messages are compared.


_NO_COPY = "its copy of a session is damaged, and no member has an intact one of the same state"


class _Copy(msgspec.Struct, frozen=True):
    """A member's copy of a session, and what is wrong with it."""

    member: Member
    session: Session | None
    """`None` if its counters are unreadable."""
    rows: tuple[Row, ...]
    problem: str | None


async def heal(replicas: Replicas, identity: SessionIdentity) -> tuple[list[Report], list[Report]]:
    """Replaces damaged copies; returns reports of those replaced and of those that could not be."""
    found = [await _copy(member, identity) for member in replicas.members]
    copies = [copy for copy in found if copy is not None]
    sound = [copy for copy in copies if copy.problem is None]
    healed: list[Report] = []
    failed: list[Report] = []
    for bad in copies:
        if bad.problem is None:
            continue
        good = next((copy for copy in sound if _is_of_same_state(copy, bad)), None)
        if good is None:
            failed.append(replicas.reports.add(bad.member, "repair", _NO_COPY))
            continue
        try:
            await _replace(bad, good, is_primary=bad.member is replicas.primary)
        except DragomanError as error:
            failed.append(replicas.reports.add(bad.member, "repair", error))
        else:
            told = f"its damaged copy of a session was replaced by that of {good.member.name}"
            healed.append(replicas.reports.add(bad.member, "repair", told))
    return healed, failed


async def _copy(member: Member, identity: SessionIdentity) -> _Copy | None:
    try:
        found = await member.run(lambda storage: snapshot(storage, identity))
    except Corrupt as error:
        return _Copy(member, None, await _readable(member, identity), str(error))
    except DragomanError:
        return None  # it is unavailable, which is reported elsewhere
    if found is None:
        return None
    session, rows = found
    problem = _problem(member.storage, session, rows)
    return _Copy(member, session, tuple(rows), problem)


async def _readable(member: Member, identity: SessionIdentity) -> tuple[Row, ...]:
    """The readable rows of the main branch, if the other branches are unknown."""
    try:
        return tuple(await member.run(lambda storage: storage.rows(identity, branch=MAIN)))
    except DragomanError:
        return ()


def _problem(storage: Storage, session: Session, rows: Sequence[Row]) -> str | None:
    for row in rows:
        problem = problem_with(row)
        if problem is not None:
            return problem
    problem = missing_rows(session, len(rows))
    if problem is None and is_proving(storage):
        return storage.problem_of(session.identity)
    return problem


def _is_of_same_state(good: _Copy, bad: _Copy) -> bool:
    if good.session is None:
        return False
    if bad.session is not None:
        numbers = (bad.session.version, bad.session.created_at)
        if numbers != (good.session.version, good.session.created_at):
            return False
    held = {(row.branch, row.seq): _content_of(row) for row in good.rows}
    readable = [row for row in bad.rows if problem_with(row) is None]
    return all(held.get((row.branch, row.seq)) == _content_of(row) for row in readable)


def _content_of(row: Row) -> Row:
    return msgspec.structs.replace(row, checksum=None, chain=None)


async def _replace(bad: _Copy, good: _Copy, *, is_primary: bool) -> None:
    session = good.session
    if session is None:
        return
    identity = session.identity
    if is_primary and bad.session is not None and session.seal is None:
        # Atomically, as others may be writing; the other members get the new version afterwards.
        newer = msgspec.structs.replace(session, version=session.version + 1, chain=None)
        if await bad.member.run(lambda storage: storage.restore(newer, good.rows)):
            return
        msg = "its session was changed in the meantime; try again"
        raise StoreError(msg)
    # A seal is valid for one version only. If this is interrupted, the session is restored from
    # the member that has it.
    await bad.member.run(lambda storage: storage.delete(identity))
    await bad.member.run(lambda storage: storage.restore(session, good.rows))


# --- whole members


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
