"""Sealing everything anew under the current key, while others go on writing."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from dragoman.errors import Conflict, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.history.storage.sealed.keyring import Keyring, Kind, is_sealed_as

_BATCH = 200
_TRIES = 1000
_PAGE = 200


class Rotation(msgspec.Struct, frozen=True):
    """How many messages and windows were sealed anew, and how many could not be opened."""

    sealed: int
    broken: int


def bound_to(identity: SessionIdentity, id: str | None = None) -> bytes:
    """What a sealed record belongs to: its session and its id, or the session's window."""
    return identity.digest.encode() + (
        b"" if id is None else b":" + id.encode(errors="surrogatepass")
    )


class Rotating:
    """A rotation under way; it may be broken off at any time and started again."""

    def __init__(self, storage: Storage, keyring: Keyring) -> None:
        self._storage = storage
        self._keyring = keyring
        self._sealed = 0
        self._broken = 0

    async def run(self) -> Rotation:
        """Go through all sessions."""
        async for session in self._sessions():
            for branch in (MAIN, *(fork.number for fork in session.forks)):
                await self._branch(session.identity, branch)
            await self._window(session.identity)
        return Rotation(self._sealed, self._broken)

    async def _sessions(self) -> AsyncGenerator[Session]:
        after = ""
        while page := await self._storage.sessions(limit=_PAGE, after=after):
            for session in page:
                yield session
            after = page[-1].identity.digest

    async def _branch(self, identity: SessionIdentity, branch: int) -> None:
        after: int | None = 0
        while after is not None:
            after = await self._batch(identity, branch, after)

    async def _batch(self, identity: SessionIdentity, branch: int, after: int) -> int | None:
        """Seal some messages anew; the number of the last, None where there are no more."""
        size = _BATCH
        for _ in range(_TRIES):
            head = await self._storage.session(identity)
            rows = await self._storage.rows(identity, branch=branch, after=after, limit=size)
            if head is None or not rows:
                return None
            if await self._rewritten(head, rows):
                return rows[-1].seq
            size = max(1, size // 2)  # somebody wrote meanwhile: be quicker
        msg = "a session is written to all the time; run the rotation again"
        raise StoreError(msg)

    async def _rewritten(self, head: Session, rows: list[Row]) -> bool:
        old = [row for row in rows if not self._keyring.is_current("SealedMessage", row.body)]
        new = [self._anew(head.identity, row) for row in old]
        replaced = [row for row in new if row is not None]
        if replaced:
            try:
                await self._storage.rewrite(head.identity, replaced=replaced, expected=head.version)
            except (Conflict, NotFound):
                return False
        self._sealed += len(replaced)
        self._broken += len(old) - len(replaced)
        return True

    def _anew(self, identity: SessionIdentity, row: Row) -> Row | None:
        bound = bound_to(identity, row.id)
        body = self._resealed("SealedMessage", row.body, bound)
        return None if body is None else msgspec.structs.replace(row, body=body)

    def _resealed(self, kind: Kind, raw: bytes, bound: bytes) -> bytes | None:
        plain = self._keyring.open(kind, raw, bound) if is_sealed_as(kind, raw) else raw
        return None if plain is None else self._keyring.seal(kind, plain, bound)

    async def _window(self, identity: SessionIdentity) -> None:
        head = await self._storage.session(identity)
        if head is None or head.window is None:
            return
        if self._keyring.is_current("SealedWindow", head.window):
            return
        window = self._resealed("SealedWindow", head.window, bound_to(identity))
        if window is None:
            self._broken += 1
        elif await self._storage.session(identity) == head:  # it has no version to expect
            await self._storage.keep_window(identity, window)
            self._sealed += 1
