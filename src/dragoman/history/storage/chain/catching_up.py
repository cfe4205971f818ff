"""Brings a member's copy of a session up to date with the primary.

Only an older state of the same session is ever overwritten. A copy that is ahead of the primary, or
belongs to another session with the same names (created at another time), may be the only copy of
its content: it is reported, and left for people to decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain.members import Member
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage, is_proving

_TRIES = 50  # an attempt fails only if another writer interferes
_BUSY = "the session is being written to constantly; try again"
LEFT_OVER = "it has a session that the primary does not have; it was left unchanged"
_AHEAD = "its session is ahead of the primary's; it was left unchanged"
ANOTHER = "it has another session with the same names; it was left unchanged"


async def mend(primary: Member, member: Member, identity: SessionIdentity) -> bool:
    """Makes the member's session equal to the primary's; returns whether it had to change."""
    for _ in range(_TRIES):
        ours = await primary.run(lambda storage: storage.session(identity))
        theirs = await member.run(lambda storage: storage.session(identity))
        if theirs is None or (ours is not None and ours.version > theirs.version):
            if await _copied(primary, member, ours, theirs):
                return True
        elif ours is None:
            raise StoreError(LEFT_OVER)
        elif ours.version == theirs.version:
            return await _aligned(member, ours, theirs)
        elif await primary.run(lambda storage: storage.session(identity)) == ours:
            if not await _is_ahead_in_versions_only(primary, member, identity):
                raise StoreError(_AHEAD)
            await member.run(lambda storage: storage.delete(identity))
    raise StoreError(_BUSY)


async def _copied(
    primary: Member, member: Member, ours: Session | None, theirs: Session | None
) -> bool:
    """Replaces a missing or older copy; returns whether it is equal now."""
    if ours is None:
        return theirs is None
    if theirs is not None and theirs.created_at != ours.created_at:
        raise StoreError(ANOTHER)
    copy = await primary.run(lambda storage: snapshot(storage, ours.identity))
    if copy is None or not await member.run(lambda storage: storage.restore(*copy)):
        return False
    if not await primary.has(ours.identity):
        # Just deleted, on the members first: the copy must not be left over.
        await member.run(lambda storage: storage.delete(ours.identity))
    return True


async def _is_ahead_in_versions_only(
    primary: Member, member: Member, identity: SessionIdentity
) -> bool:
    """Whether an encrypted copy is ahead only in version numbers, as encryption adds versions."""
    if not is_proving(member.storage):
        return False
    ours = await primary.run(lambda storage: snapshot(storage, identity))
    theirs = await member.run(lambda storage: snapshot(storage, identity))
    if ours is None or theirs is None or ours[0].created_at != theirs[0].created_at:
        return False
    return [_content_of(row) for row in ours[1]] == [_content_of(row) for row in theirs[1]]


def _content_of(row: Row) -> Row:
    return msgspec.structs.replace(row, checksum=None, chain=None)


async def _aligned(member: Member, ours: Session, theirs: Session) -> bool:
    """Aligns what has no version, for sessions that are otherwise equal."""
    alike = (theirs.created_at, theirs.last_seq, theirs.forks)
    if alike != (ours.created_at, ours.last_seq, ours.forks):
        raise StoreError(ANOTHER)
    if (ours.active, ours.seal) != (theirs.active, theirs.seal):
        seal = UNSET if ours.seal == theirs.seal else ours.seal
        await member.run(lambda storage: storage.activate(ours.identity, ours.active, seal=seal))
    if ours.windows != theirs.windows:
        await member.run(lambda storage: storage.keep_windows(ours.identity, ours.windows))
    return (ours.active, ours.seal, ours.windows) != (theirs.active, theirs.seal, theirs.windows)


async def snapshot(
    storage: Storage, identity: SessionIdentity
) -> tuple[Session, Sequence[Row]] | None:
    """A session with all rows of all branches, in one consistent state."""
    for _ in range(_TRIES):
        head = await storage.session(identity)
        if head is None:
            return None
        rows: list[Row] = []
        for branch in (MAIN, *(fork.number for fork in head.forks)):
            rows += await storage.rows(identity, branch=branch)
        after = await storage.session(identity)
        if after is not None and after.version == head.version:
            return after, rows
    raise StoreError(_BUSY)
