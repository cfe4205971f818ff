"""Checkpoints: a store's latest state, kept elsewhere to detect rollback and deletion."""

from __future__ import annotations

import msgspec

from dragoman.errors import ConfigError, Corrupt, InvalidInputError
from dragoman.history.storage.protocol import Session, Storage
from dragoman.history.storage.sealed.keyring import CHECKPOINT, read_sealed
from dragoman.history.storage.sealed.records import Records
from dragoman.history.storage.sealed.shelf import SealedShelf
from dragoman.history.storage.sealed.state import State
from dragoman.history.transfer import every_session
from dragoman.model.value import expect

_OLDER = "it is older than at the checkpoint: an earlier state was restored"
_GONE = "it was deleted since the checkpoint, by you or by somebody else"


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    """The latest state of a session; without a life, it had no head."""

    life: str = ""
    made: float = 0.0
    version: int = 0
    total: str = ""
    step: int = 0


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


async def checkpoint(storage: Storage, records: Records, shelf: SealedShelf) -> bytes:
    """See `SealedStorage.checkpoint`."""
    marks: dict[str, _Mark] = {}
    async for each in every_session(storage):
        look = await shelf.look(each.identity.digest)
        if look is None:
            continue
        look.expect_fresh()
        if look.problem is not None:
            msg = f"session {each.identity.digest}: {look.problem}; run `verify` for details"
            raise Corrupt(msg)
        state = look.state
        marks[each.identity.digest] = (
            _Mark()
            if state is None
            else _Mark(state.life, state.made, state.version, state.total, state.step)
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
    then = mark.made, mark.version, mark.step
    now = state.made, state.version, state.step
    return now < then or (now == then and (state.life, state.total) != (mark.life, mark.total))
