"""Creates new seals for content that the owner confirms: copies and repaired sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from dragoman.errors import ConfigError, Conflict, Corrupt, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.protocol import NO_SESSION, Row, Session, Storage, conflict
from dragoman.history.storage.sealed.binding import life_in
from dragoman.history.storage.sealed.examining import Examiner, Look
from dragoman.history.storage.sealed.keyring import is_sealed_as, read_sealed
from dragoman.history.storage.sealed.records import DAMAGED, Field, Records, has_place
from dragoman.history.storage.sealed.seen_states import Known
from dragoman.history.storage.sealed.state import State, misfit, new_life
from dragoman.history.storage.sealed.writing import Writer, state_of

_TRIES = 50
_BUSY = "the session is being written to constantly; try again"


class Repairer:
    """Creates heads for sessions that have no valid one."""

    def __init__(
        self, storage: Storage, records: Records, known: Known, examiner: Examiner, writer: Writer
    ) -> None:
        self._storage = storage
        self._records = records
        self._known = known
        self._examiner = examiner
        self._writer = writer

    # --- setting aside

    async def set_aside(
        self, identity: SessionIdentity, seqs: Sequence[int], reason: str, expected: int | None
    ) -> int:
        """See `Storage.set_aside`; what is left becomes the valid content of the session."""
        async with self._writer.locks.of(identity.digest):
            for attempt in range(_TRIES):
                try:
                    return await self._set_aside(identity, seqs, reason, expected)
                except Conflict:
                    if expected is not None:
                        raise
                    await self._writer.pause(attempt)
        raise StoreError(_BUSY)

    async def _set_aside(
        self, identity: SessionIdentity, seqs: Sequence[int], reason: str, expected: int | None
    ) -> int:
        try:
            look = await self._examiner.judged_now(identity)
        except Corrupt:  # its counters are unreadable: they are recomputed, then sealed
            moved = await self._storage.set_aside(
                identity, seqs, reason, expected=expected, seal=None
            )
            await self._seal_again(identity, None)
            return moved
        if look is None:
            raise NotFound(NO_SESSION)
        version = look.session.version
        if expected not in {None, version}:
            raise conflict(expected or 0, version)
        left = [row for row in await self._examiner.rows(look.session) if row.seq not in set(seqs)]
        later = msgspec.structs.replace(look.session, version=version + 1)
        after = self._renewed(look, later, left)
        moved = await self._storage.set_aside(
            identity, seqs, reason, expected=version, seal=self._records.head(identity, after)
        )
        await self._seal_again(identity, after)
        return moved

    def _renewed(self, look: Look | None, session: Session, rows: Sequence[Row]) -> State:
        """The state of the current rows: the next one, or a new one if there was no valid state."""
        state = None if look is None else look.state
        if look is not None and state is not None and look.problem is None:
            return state.of_rows(rows, version=session.version)
        life = _life_of(rows) if state is None else state.life
        newest = self._known.newest(session.identity.digest)
        bound = all(map(has_place, rows))
        return state_of(session, rows, life=life, after=newest or state, bound=bound)

    async def _seal_again(self, identity: SessionIdentity, state: State | None) -> None:
        """Updates the head if the underlying storage computed other counters than expected."""
        session = await self._storage.session(identity)
        if session is None:
            return
        if state is None or misfit(session, state) is not None:
            state = self._renewed(None, session, await self._examiner.rows(session))
            await self._storage.activate(
                identity, session.active, expected=session.version,
                seal=self._records.head(identity, state),
            )  # fmt: skip
        self._known.saw(identity.digest, state)

    # --- copies

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`. An encrypted copy has to prove itself, as where it was."""
        identity = session.identity
        async with self._writer.locks.of(identity.digest):
            plain = self._proven(session, rows)
            if plain is None:  # keep it visible that something is wrong
                self._known.unsure(identity.digest)
                return await self._storage.restore(_without_plain_windows(session), rows)
            state, copy, sealed = self._sealed_copy(session, plain)
            restored = await self._storage.restore(copy, sealed)
            self._known.unsure(identity.digest)
            if restored:
                self._known.saw(identity.digest, state)
            return restored

    def _proven(self, session: Session, rows: Sequence[Row]) -> list[Row] | None:
        """The rows, decrypted as far as possible; `None` if a seal does not match."""
        if not all(is_sealed(row.body) for row in rows):  # a copy that was read with its keys
            return [self._opened(session.identity, row, None) for row in rows]
        if session.seal is None:
            raw = [row for row in rows if damage_to(row) is None and has_place(row)]
            return None if raw else [self._opened(session.identity, row, None) for row in rows]
        state = self._state_in(session)
        if state is None:
            return None
        fits = misfit(msgspec.structs.replace(session, version=state.version), state) is None
        if not fits or len(rows) != state.rows or state.sum_of(rows) != state.total:
            return None
        return [self._opened(session.identity, row, state) for row in rows]

    def _state_in(self, session: Session) -> State | None:
        try:
            return self._records.state_in(session)[0]
        except ConfigError:  # the head of the copy, which may be anybody's
            return None

    def _opened(self, identity: SessionIdentity, row: Row, state: State | None) -> Row:
        """A row to be encrypted; plain text is given by the owner of the store."""
        return self._records.opened(identity, row, state).row if is_sealed(row.body) else row

    def _sealed_copy(
        self, session: Session, rows: Sequence[Row]
    ) -> tuple[State, Session, list[Row]]:
        life = new_life()
        sealed = [self._sealed_row(session.identity, row, life) for row in rows]
        before = self._known.newest(session.identity.digest)
        state = state_of(session, sealed, life=life, after=before)
        copy = msgspec.structs.replace(
            session,
            window=self._sealed_window(session, "window", life),
            windows=self._sealed_window(session, "windows", life),
            seal=self._records.head(session.identity, state),
        )
        return state, copy, sealed

    def _sealed_row(self, identity: SessionIdentity, row: Row, life: str) -> Row:
        if is_sealed(row.body):  # it could not be decrypted
            return msgspec.structs.replace(row, checksum=DAMAGED)
        sealed = self._records.sealed(identity, row, life, row.branch, row.seq)
        if damage_to(row) is None:
            return sealed
        return msgspec.structs.replace(sealed, checksum=DAMAGED)  # encrypting it does not repair it

    def _sealed_window(self, session: Session, name: Field, life: str) -> bytes | None:
        raw: bytes | None = getattr(session, name)
        if raw is not None and is_sealed_as("SealedWindow", raw):
            state = self._state_in(session)
            raw = self._records.window_in(session, name, state)
        return self._records.sealed_window(session.identity, name, raw, life)


def _without_plain_windows(session: Session) -> Session:
    """Removes windows in plain text, so that nothing is stored unencrypted."""
    plain = [
        name
        for name in ("window", "windows")
        if (raw := getattr(session, name)) is not None and not is_sealed_as("SealedWindow", raw)
    ]
    return msgspec.structs.replace(session, **dict.fromkeys(plain)) if plain else session


def _life_of(rows: Sequence[Row]) -> str | None:
    """The life of most of these rows."""
    read = (read_sealed("SealedMessage", row.body) for row in rows)
    lives = Counter(life_in(each.place) for each in read if each is not None and each.place)
    return lives.most_common(1)[0][0] if lives else None
