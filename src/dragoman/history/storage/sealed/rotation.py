"""Encrypts everything with the current key, while others continue to write."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.errors import Conflict, Corrupt, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.protocol import Row
from dragoman.history.storage.sealed.records import Records, has_place
from dragoman.history.storage.sealed.shelf import Look
from dragoman.history.transfer import every_session

if TYPE_CHECKING:
    from dragoman.history.storage.sealed.storage import SealedStorage

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

    def __init__(self, storage: SealedStorage, records: Records) -> None:
        self._storage = storage
        self._shelf = storage.shelf
        self._records = records
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
        found = await self._shelf.whole(identity.digest)
        if found is None:
            return
        look, rows, held = found
        look.expect_sound()
        if look.state is None and not self._records.accept_plain and _are_plain(rows):
            self._broken += len(rows)
            self._plain += len(rows)
            return
        has_old = self._has_old_windows(look)
        is_sound = look.state is None or self._shelf.is_proved(look, rows, held)
        for branch in {row.branch for row in rows}:
            after: int | None = 0
            while after is not None:
                after = await self._batch(identity, branch, after, is_sound=is_sound)
        await self._head(identity)
        self._sealed += has_old

    async def _batch(
        self, identity: SessionIdentity, branch: int, after: int, *, is_sound: bool
    ) -> int | None:
        """Re-encrypts some messages; returns the number of the last, or `None` at the end."""
        size = _BATCH
        for _ in range(_TRIES):
            look = await self._look(identity)
            rows = await self._shelf.inner.rows(
                identity.digest,
                branch,
                after,
                None,
                size,
                False,  # noqa: FBT003
            )
            if look is None or not rows:
                return None
            if await self._rewritten(look, rows, is_sound=is_sound):
                return rows[-1].seq if rows[-1].seq > after else None
            size = max(1, size // 2)  # another writer interfered: use smaller batches
        raise StoreError(_BUSY)

    async def _look(self, identity: SessionIdentity) -> Look | None:
        look = await self._shelf.look(identity.digest)
        if look is not None:
            look.expect_sound()
        return look

    async def _rewritten(self, look: Look, rows: Sequence[Row], *, is_sound: bool) -> bool:
        """Writes messages again; returns `False` if another writer was faster."""
        identity = look.head.session.identity
        old = [row for row in rows if not self._records.is_current(row)]
        new: list[Row] = []
        for row in old:
            # Plain text is trusted only if all messages are as they were left.
            is_trusted = is_sound or has_place(row)
            body = self._records.body_in(identity.digest, row, look.state) if is_trusted else None
            if body is not None:
                new.append(msgspec.structs.replace(row, body=body))
        if new:
            try:
                await self._storage.rewrite(
                    identity, replaced=new, expected=look.head.session.version
                )
            except (Conflict, NotFound):
                return False
        kept = {row.id for row in new}
        self._sealed += len(new)
        self._broken += len(old) - len(new)
        self._plain += sum(row.id not in kept and not is_sealed(row.body) for row in old)
        return True

    async def _head(self, identity: SessionIdentity) -> None:
        """Re-encrypts the head and the windows: a commit writes them with the current key."""
        look = await self._look(identity)
        if look is None or look.state is None:
            return
        self._broken += look.has_broken_windows
        if self._has_old_windows(look) or not self._records.is_current_head(look.head.session.seal):
            with suppress(NotFound):  # deleted meanwhile
                await self._storage.touch(identity)

    def _has_old_windows(self, look: Look) -> bool:
        life, raw = "" if look.state is None else look.state.life, look.head.session.windows
        return not (look.has_broken_windows or self._records.are_current_windows(raw, life))


def _are_plain(rows: Sequence[Row]) -> bool:
    return bool(rows) and not any(is_sealed(row.body) for row in rows)
