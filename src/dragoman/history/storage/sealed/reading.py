"""Reads encrypted messages, and compares them with the head if all of them were read."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from dragoman.errors import ConfigError, Corrupt, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.history.storage.sealed.examining import Examiner, Known
from dragoman.history.storage.sealed.keyring import CHECKPOINT, read_sealed
from dragoman.history.storage.sealed.records import (
    GONE,
    Opened,
    Records,
    has_place,
    refuse_plain,
)
from dragoman.history.storage.sealed.state import State
from dragoman.history.transfer import every_session
from dragoman.model.value import expect

_LOG = logging.getLogger("dragoman.history")


class Reader:
    """Reads from the underlying storage."""

    def __init__(
        self, storage: Storage, records: Records, known: Known, examiner: Examiner
    ) -> None:
        self._storage = storage
        self._records = records
        self._known = known
        self._examiner = examiner

    async def state(self, identity: SessionIdentity) -> State | None:
        """The state in the session's head, cached if possible; `None` if it has none."""
        known = self._known.current(identity.digest)
        return known if known is not None else await self._state_now(identity)

    async def _state_now(self, identity: SessionIdentity) -> State | None:
        look = await self._examiner.look(identity)
        return None if look is None else look.state

    async def rows(
        self,
        identity: SessionIdentity,
        *,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,
    ) -> list[Opened]:
        """See `SealedStorage.rows`."""
        state = await self.state(identity)
        found = await self._storage.rows(
            identity, branch=branch, after=after, upto=upto, limit=limit, newest=newest
        )
        state, opened = await self._opened(identity, found, state)
        if state is None:
            self._judge_without_head(identity, found, opened)
        elif (branch, after, upto, limit, state.forks) == (MAIN, 0, None, None, ()):
            await self._compare(identity, state, found)
        return opened

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        state = await self.state(identity)
        found = await self._storage.row(identity, id)
        if found is None:
            return None
        state, opened = await self._opened(identity, [found], state)
        if state is None:
            self._judge_without_head(identity, [found], opened)
        return opened[0].row

    async def _opened(
        self, identity: SessionIdentity, rows: Sequence[Row], state: State | None
    ) -> tuple[State | None, list[Opened]]:
        """The decrypted rows, and the head they were decrypted with."""
        opened = [self._records.opened(identity, row, state) for row in rows]
        is_odd = state is None and any(map(has_place, rows))
        if is_odd or any(each.problem for each in opened):
            now = await self._state_now(identity)  # another writer may have changed or cleared it
            if now != state:
                state = now
                opened = [self._records.opened(identity, row, state) for row in rows]
        return state, opened

    def _judge_without_head(
        self, identity: SessionIdentity, rows: Sequence[Row], opened: list[Opened]
    ) -> None:
        if any(map(has_place, rows)):
            if self._known.problem(identity.digest) is None:
                self._examiner.tell(identity.digest, GONE)
        else:
            refuse_plain(opened)

    async def _compare(self, identity: SessionIdentity, state: State, rows: Sequence[Row]) -> None:
        """Reports if all messages together are not those that were written."""
        digest = identity.digest
        rows = [row for row in rows if row.seq <= state.last_seq]
        if len(rows) == state.rows and state.sum_of(rows) == state.total:
            self._known.tell_rows(digest, None)
            return
        if self._known.problem(digest) is not None or await self._state_now(identity) != state:
            return  # already reported, or changed in the meantime, which proves nothing
        problems = await self._examiner.problems(identity)
        beyond = [each for each in problems if not each.startswith("message ")]  # rows show theirs
        if beyond and self._known.tell_rows(digest, beyond[-1]):
            where = (self._storage.name, digest, beyond[-1])
            _LOG.warning("history store %s, session %s: %s", *where)


# --- checkpoints: a store's latest state, kept elsewhere to detect rollback and deletion


_OLDER = "it is older than at the checkpoint: an earlier state was restored"
_GONE = "it was deleted since the checkpoint, by you or by somebody else"


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    """The latest state of a session; without a life, it had no head."""

    life: str = ""
    made: float = 0.0
    version: int = 0
    total: str = ""


class Checkpoint(msgspec.Struct, frozen=True):
    """The latest states of all sessions, by digest."""

    sessions: dict[str, _Mark]

    async def problems(self, storage: Storage, records: Records) -> list[str]:
        """Reports sessions that were deleted or are older."""
        told: list[str] = []
        left = dict(self.sessions)
        async for session in every_session(storage):
            mark = left.pop(session.identity.digest, None)
            if mark is not None and mark.life and _is_older(_state(records, session), mark):
                told.append(f"session {session.identity.digest}: {_OLDER}")
        return told + [f"session {digest}: {_GONE}" for digest in left]


_CHECKPOINTS = msgspec.json.Decoder(Checkpoint)


async def checkpoint(storage: Storage, records: Records, examiner: Examiner) -> bytes:
    """See `SealedStorage.checkpoint`."""
    marks: dict[str, _Mark] = {}
    async for each in every_session(storage):
        look = await examiner.look(each.identity)
        if look is None:
            continue
        if look.problem is not None:
            msg = f"session {each.identity.digest}: {look.problem}; run `verify` for details"
            raise Corrupt(msg)
        state = look.state
        marks[each.identity.digest] = (
            _Mark() if state is None else _Mark(state.life, state.made, state.version, state.total)
        )
    raw = msgspec.json.encode(Checkpoint(marks))
    return records.keyring.seal("SealedCheckpoint", raw, CHECKPOINT)


def checked(records: Records, given: bytes) -> Checkpoint:
    """Decrypts a checkpoint; raises if it does not belong to this store's keys."""
    expect(given, bytes, "a checkpoint")
    sealed = read_sealed("SealedCheckpoint", given)
    raw = None if sealed is None else records.keyring.open(sealed, CHECKPOINT)
    if raw is None:
        msg = "not a valid checkpoint, or it was altered; pass what `checkpoint()` returned"
        raise InvalidInputError(msg)
    return _CHECKPOINTS.decode(raw)


def _state(records: Records, session: Session) -> State | None:
    try:
        return records.state_in(session)[0]
    except ConfigError:  # reported by the examination of the session
        return None


def _is_older(state: State | None, mark: _Mark) -> bool:
    if state is None:
        return True
    if state.made != mark.made:
        return state.made < mark.made
    if state.version != mark.version:
        return state.version < mark.version
    return (state.life, state.total) != (mark.life, mark.total)
