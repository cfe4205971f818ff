"""Re-encrypts everything with the current key, while others continue to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import Conflict, Corrupt, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.protocol import Row, Storage
from dragoman.history.storage.sealed.examining import Examiner, Look
from dragoman.history.storage.sealed.records import Field, Records, has_place
from dragoman.history.storage.sealed.seen_states import Known
from dragoman.history.storage.sealed.state import State
from dragoman.history.storage.sealed.writing import Writer
from dragoman.history.transfer import every_session

_BATCH = 200
_TRIES = 1000
_BUSY = "a session is being written to constantly; run the rotation again"


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
        for attempt in range(_TRIES):
            async with self._writer.locks.of(identity.digest):
                state = await self._state(identity)
                rows = await self._storage.rows(identity, branch=branch, after=after, limit=size)
                if state is None or not rows:
                    return None
                if await self._rewritten(identity, state, rows, is_sound=is_sound):
                    return rows[-1].seq if rows[-1].seq > after else None
            size = max(1, size // 2)  # another writer interfered: use smaller batches
            await self._writer.pause(min(attempt, 3))
        raise StoreError(_BUSY)

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
        for attempt in range(_TRIES):
            async with self._writer.locks.of(identity.digest):
                look = await self._examiner.look(identity)
                if look is None or look.state is None or await self._has_head(look, binds):
                    return
            await self._writer.pause(min(attempt, 3))
        raise StoreError(_BUSY)

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
        for attempt in range(_TRIES):
            look = await self._examiner.look(identity)
            if look is None or await self._has_windows(look):
                return
            await self._writer.pause(min(attempt, 3))
        raise StoreError(_BUSY)

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
