"""`SealedStorage`: wraps another storage, which sees only encrypted content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Never

import msgspec
from msgspec.structs import replace

from dragoman.errors import ConfigError, Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import (
    EVERYTHING,
    Erasure,
    Filter,
    Group,
    Hit,
    Row,
    Session,
    Storage,
    Total,
    expect_query,
    touched,
)
from dragoman.history.storage.sealed.keyring import CHECKPOINT, Keyring, is_sealed_as, read_sealed
from dragoman.history.storage.sealed.records import Records, State, has_place, misfit
from dragoman.history.storage.sealed.rotation import Rotating, Rotation
from dragoman.history.storage.sealed.shelf import REPLAYED, SealedShelf
from dragoman.history.transfer import every_session
from dragoman.model.value import expect


class SealedStorage(Ledger):
    """Encrypts the content of messages, on any storage that is a `Ledger`.

    >>> from dragoman.history import MemoryStorage
    >>> SealedStorage(MemoryStorage(), keys={"2026": bytes(32)}, current="2026").name
    'memory, encrypted'

    Encrypted are the bodies of messages and the windows (cuts with their summaries). In plain text
    are the names of the session, ids, times, model names and token counts: they are not content,
    and the store uses them for lookup and aggregation. So `totals` work, but `search` raises,
    because nothing is ever indexed in plain text.

    Somebody who can write to the store but has no key can't forge content: a message is bound to
    its session, branch, number, and everything stored next to it. A message that was altered, moved
    or swapped is reported as damaged (`Corrupt`). Each session has a sealed head with the number of
    its messages and their checksum: `verify` and `ChatHistory.damaged` report messages that are
    missing, added or reverted. An open storage remembers the sessions it has seen, and raises
    `Corrupt` for an older state. To detect what happened before it was opened, keep a `checkpoint`
    elsewhere and pass it to `verify`.

    All writes need the keys. A missing or wrong key raises a `ConfigError` that names its id.
    Messages in plain text are rejected, unless `accept_plain` is set because the store was not
    encrypted before; then call `rotate` once, and omit `accept_plain` from then on.
    """

    shelf: SealedShelf

    def __init__(
        self,
        storage: Storage,
        *,
        keys: Mapping[str, bytes],
        current: str,
        accept_plain: bool = False,
    ) -> None:
        if isinstance(storage, SealedStorage):
            msg = "the storage is already a SealedStorage; it can't be encrypted twice"
            raise InvalidInputError(msg)
        if not isinstance(storage, Ledger):
            msg = (
                "encryption needs a storage that is a Ledger on a shelf, not"
                f" {type(storage).__name__}"
            )
            raise InvalidInputError(msg)
        self._storage = storage
        self._records = Records(Keyring(keys, current), accept_plain=accept_plain)
        super().__init__(SealedShelf(storage.shelf, self._records))

    def __reduce__(self) -> Never:
        msg = "a storage with keys can't be pickled or copied"
        raise TypeError(msg)

    async def rotate(self) -> Rotation:
        """Re-encrypts everything that does not use the current key.

        Messages in plain text are encrypted only with `accept_plain`. What can't be decrypted is
        left unchanged. Both are counted. Sessions that were tampered with are skipped; `verify`
        reports them. Others may write at the same time. It may be interrupted and run again.

        To replace a key: give all processes the new key, make it current everywhere, rotate, then
        remove the old key. Every session that is changed gets a new version and time. Records set
        aside and backups keep their old key. A database may hold old plain text in free pages, logs
        and a search index until it is vacuumed.
        """
        return await Rotating(self, self._records).run()

    async def checkpoint(self) -> bytes:
        """The latest state of the store, encrypted; keep it elsewhere for `verify(since=…)`.

        Takes about 150 bytes per session. Raises `Corrupt` if a session is not valid.
        """
        return await checkpoint(self._storage, self._records, self.shelf)

    # --- what the heads prove

    @property
    def is_proving(self) -> bool:
        """Always: heads prove what their sessions hold."""
        return True

    def problem_of(self, identity: SessionIdentity) -> str | None:
        """What reading has found to be wrong with a session as a whole, or `None`."""
        return self.shelf.problem(identity.digest)

    async def expect_untouched(self, identity: SessionIdentity) -> None:
        """Raises `Corrupt` unless the session has all messages, as they were written.

        Reads all of them, without decrypting those that are in order.
        """
        found = await self.shelf.whole(identity.digest)
        if found is None:
            return
        found[0].expect_fresh()
        if self.shelf.is_proved(*found):
            return
        if found[0].misses_key:
            raise ConfigError(found[0].problem)
        problem = next(self.shelf.wrong_with_messages(*found), None)
        if problem is not None:
            raise touched(identity, problem)

    # --- operations that differ

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None`. Raises `Corrupt` if it is older than seen before."""
        found = await super().session(identity)
        if self.shelf.problem(identity.digest) is REPLAYED:
            msg = f"session {identity.digest}: {REPLAYED}"
            raise Corrupt(msg)
        return found

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`. An encrypted copy has to prove itself, as where it was."""
        copy = self._proven(session, rows)
        if copy is not None:
            return await super().restore(*copy)
        raw = session.windows  # keep it visible that something is wrong, but nothing in plain text
        if raw is not None and not is_sealed_as("SealedWindow", raw):
            session = replace(session, windows=None)
        self._seen.pop(session.identity.digest, None)
        return await self._storage.restore(session, rows)

    def _proven(
        self, session: Session, rows: Sequence[Row]
    ) -> tuple[Session, Sequence[Row]] | None:
        """The copy, decrypted as far as possible; `None` if a seal does not match."""
        state = self._state_in(session)
        is_read = not all(is_sealed(row.body) for row in rows)  # with its keys
        if not is_read and not self._is_proved(session, rows, state):
            return None
        windows, digest = session.windows, session.identity.digest
        if windows is not None and is_sealed_as("SealedWindow", windows):
            windows = self._records.windows_in(session, state)
        state = None if is_read else state
        opened = [
            self._records.opened(digest, row, state).row if is_sealed(row.body) else row
            for row in rows
        ]
        return replace(session, windows=windows, seal=None), opened

    def _state_in(self, session: Session) -> State | None:
        if session.seal is None:
            return None
        try:
            return self._records.state_in(session)[0]
        except ConfigError:  # the head of the copy, which may be anybody's
            return None

    def _is_proved(self, session: Session, rows: Sequence[Row], state: State | None) -> bool:
        if session.seal is None:
            return not any(damage_to(row) is None and has_place(row) for row in rows)
        return (
            state is not None
            and misfit(replace(session, version=state.version), state) is None
            and len(rows) == state.rows
            and state.sum_of(rows) == state.total
        )

    # --- many sessions

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """Always raises: a search would need an index in plain text."""
        expect_query(which, text=text, limit=limit)
        msg = (
            f"the store {self._storage.name} is encrypted and can't be searched:"
            " nothing is indexed in plain text"
        )
        raise StoreError(msg)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`; token counts are not encrypted."""
        return await self._storage.totals(by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`."""
        expect(user, str, "the user to forget")
        self._seen.clear()
        return await self._storage.forget(user)

    async def verify(self, *, since: bytes | None = None) -> list[str]:
        """See `Storage.verify`; also reports everything done to sessions without the keys.

        With a `checkpoint` in `since`, it also reports sessions that were reverted to an earlier
        state or deleted since then. It can't tell whether their owner or somebody else deleted
        them.
        """
        newest = None if since is None else checked(self._records, since)
        problems = await self._storage.verify()
        async for session in every_session(self._storage):
            digest = session.identity.digest
            problems += [f"session {digest}: {e}" for e in await self.shelf.problems_of(digest)]
        if newest is not None:
            problems += await newest.problems(self._storage, self._records)
        return list(dict.fromkeys(problems))


# --- checkpoints: a store's latest state, kept elsewhere to detect rollback and deletion


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
