"""Seals again: content that the owner confirms, and everything with the current key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import ConfigError, Conflict, Corrupt, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.protocol import NO_SESSION, Row, Session, Storage, conflict
from dragoman.history.storage.sealed.examining import Examiner, Known, Look
from dragoman.history.storage.sealed.keyring import is_sealed_as, life_in, read_sealed
from dragoman.history.storage.sealed.records import DAMAGED, Field, Records, has_place
from dragoman.history.storage.sealed.state import State, misfit, new_life
from dragoman.history.storage.sealed.writing import Writer, state_of
from dragoman.history.transfer import every_session

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


# --- rotation: others continue to write


_BATCH = 200
_ROTATION_TRIES = 1000
_ROTATION_BUSY = "a session is being written to constantly; run the rotation again"


class Rotation(msgspec.Struct, frozen=True):
    """How many messages and windows were re-encrypted, and how many could not be decrypted."""

    sealed: int
    broken: int
    plain: int = 0
    """How many of the broken ones are in plain text; these need `accept_plain`."""
    sessions: int = 0
    """How many sessions were skipped because they were tampered with."""


class Rotating:
    """A rotation in progress; it may be interrupted at any time and started again."""

    def __init__(
        self, storage: Storage, records: Records, known: Known, examiner: Examiner, writer: Writer
    ) -> None:
        self._storage = storage
        self._records = records
        self._known = known
        self._examiner = examiner
        self._writer = writer
        self._sealed = 0
        self._broken = 0
        self._plain = 0
        self._passed = 0

    async def run(self) -> Rotation:
        """Processes all sessions."""
        async for session in every_session(self._storage):
            try:
                await self._session(session.identity)
            except Corrupt:  # a tampered session must not come out as valid
                self._passed += 1
        return Rotation(self._sealed, self._broken, self._plain, self._passed)

    async def _session(self, identity: SessionIdentity) -> None:
        found = await self._examiner.whole(identity)
        if found is None:
            return
        look, rows, held = found
        look.expect_sound()
        state = look.state
        if state is None and not self._records.accept_plain and _are_plain(rows):
            self._broken += len(rows)
            self._plain += len(rows)
            return
        is_sound = state is None or (held == state.rows and state.sum_of(rows) == state.total)
        broken = self._broken
        for branch in {row.branch for row in rows}:
            after: int | None = 0
            while after is not None:
                after = await self._batch(identity, branch, after, is_sound=is_sound)
        await self._windows(identity)
        await self._head(identity, binds=is_sound and self._broken == broken)

    async def _batch(
        self, identity: SessionIdentity, branch: int, after: int, *, is_sound: bool
    ) -> int | None:
        """Re-encrypts some messages; returns the number of the last, or `None` at the end."""
        size = _BATCH
        for attempt in range(_ROTATION_TRIES):
            async with self._writer.locks.of(identity.digest):
                state = await self._state(identity)
                rows = await self._storage.rows(identity, branch=branch, after=after, limit=size)
                if state is None or not rows:
                    return None
                if await self._rewritten(identity, state, rows, is_sound=is_sound):
                    return rows[-1].seq if rows[-1].seq > after else None
            size = max(1, size // 2)  # another writer interfered: use smaller batches
            await self._writer.pause(min(attempt, 3))
        raise StoreError(_ROTATION_BUSY)

    async def _state(self, identity: SessionIdentity) -> State | None:
        look = await self._examiner.look(identity)
        if look is None:
            return None
        look.expect_sound()
        try:
            return look.state or await self._writer.adopted(look)
        except Conflict:  # another writer has created a head in the meantime
            return await self._state(identity)

    async def _rewritten(
        self, identity: SessionIdentity, state: State, rows: Sequence[Row], *, is_sound: bool
    ) -> bool:
        old = [row for row in rows if not self._records.is_current(row)]
        new = {row.id: self._anew(identity, row, state, is_sound=is_sound) for row in old}
        kept = [row for row in new.values() if row is not None]
        if kept:
            gone = [row for row in old if new[row.id] is not None]
            under = self._records.keyring.label
            if not await self._write(identity, state, kept, added=kept, under=under, removed=gone):
                return False
        self._sealed += len(kept)
        self._broken += len(old) - len(kept)
        self._plain += sum(new[row.id] is None and not is_sealed(row.body) for row in old)
        return True

    def _anew(
        self, identity: SessionIdentity, row: Row, state: State, *, is_sound: bool
    ) -> Row | None:
        """A row encrypted with the current key at its position; `None` if it is not trustworthy.

        A row without a position is trusted only if all messages are as they were left.
        """
        if not is_sound and not has_place(row):
            return None
        body = self._records.body_in(identity, row, state)
        if body is None:
            return None
        plain = msgspec.structs.replace(row, body=body)
        return self._records.sealed(identity, plain, state.life, row.branch, row.seq)

    async def _write(
        self, identity: SessionIdentity, state: State, replaced: Sequence[Row], **changes: Any
    ) -> bool:
        """Stores a state and its rows; returns `False` if another writer was faster."""
        after = state.written(**changes)
        try:
            await self._storage.rewrite(
                identity, replaced=replaced, expected=state.version,
                seal=self._records.head(identity, after),
            )  # fmt: skip
        except (Conflict, NotFound):
            return False
        finally:
            self._known.unsure(identity.digest)
        self._known.saw(identity.digest, after)
        return True

    async def _head(self, identity: SessionIdentity, *, binds: bool) -> None:
        """Re-encrypts the head; if it `binds`, rows without a position are rejected from now on."""
        for attempt in range(_ROTATION_TRIES):
            async with self._writer.locks.of(identity.digest):
                look = await self._examiner.look(identity)
                if look is None or look.state is None or await self._has_head(look, binds):
                    return
            await self._writer.pause(min(attempt, 3))
        raise StoreError(_ROTATION_BUSY)

    async def _has_head(self, look: Look, binds: bool) -> bool:  # noqa: FBT001 - private
        session, state = look.session, look.state
        if state is None or look.problem is not None:
            return True
        if binds and not state.bound:
            return await self._write(session.identity, state, (), bound=True)
        if session.seal is None or self._records.is_current_head(session.seal):
            return True
        try:
            await self._storage.activate(
                session.identity, session.active, expected=session.version,
                seal=self._records.head(session.identity, state),
            )  # fmt: skip
        except Conflict:
            return False
        return True

    async def _windows(self, identity: SessionIdentity) -> None:
        for attempt in range(_ROTATION_TRIES):
            look = await self._examiner.look(identity)
            if look is None or await self._has_windows(look):
                return
            await self._writer.pause(min(attempt, 3))
        raise StoreError(_ROTATION_BUSY)

    async def _has_windows(self, look: Look) -> bool:
        """Re-encrypts the windows; returns `False` if another writer may have changed them."""
        session, state = look.session, look.state
        # The single cut of an earlier release moves to the new field, which clears the old one.
        name: Field = "window" if session.windows is None else "windows"
        raw: bytes | None = getattr(session, name)
        life = None if state is None else state.life
        if raw is None or (name == "windows" and self._records.is_current_window(raw, life)):
            return True
        opened = self._records.window_in(session, name, state)
        if opened is None:
            self._broken += 1
            return True
        if await self._storage.session(session.identity) != session:
            return False
        await self._writer.keep_windows(session.identity, opened)
        self._sealed += 1
        return True


def _are_plain(rows: Sequence[Row]) -> bool:
    return bool(rows) and not any(is_sealed(row.body) for row in rows)
