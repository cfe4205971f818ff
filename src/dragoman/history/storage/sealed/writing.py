"""Writes to an encrypted session: every write includes the head that proves it.

The message's number and the version are part of what is encrypted, so they must be known before the
write: each write expects the version that was seen last. If another writer was faster, it is
prepared again for the new version, until it succeeds.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from dragoman.errors import ConfigError, Conflict, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.protocol import (
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Appended,
    DuplicateIds,
    Entry,
    Row,
    Session,
    Storage,
    conflict,
)
from dragoman.history.storage.sealed.examining import Examiner, Known, Look, refusal
from dragoman.history.storage.sealed.records import GONE, PLAIN, Records, has_place
from dragoman.history.storage.sealed.state import State, forks_of, new_state
from dragoman.history.storage.session_locks import SessionLocks

T = TypeVar("T")
Made = tuple[T, State]
_TRIES = 1000
_PAUSE, _MAX_PAUSE = 0.0005, 0.05  # seconds
_MAX_SINGLE_READS = 20
_BUSY = "the session is being written to constantly; try again"


class Writer:
    """Writes to the underlying storage, with seals."""

    def __init__(
        self, storage: Storage, records: Records, known: Known, examiner: Examiner
    ) -> None:
        self._storage = storage
        self._records = records
        self._known = known
        self._examiner = examiner
        self.locks = SessionLocks(blocking=storage.is_blocking)

    # --- the writes

    async def append(
        self, identity: SessionIdentity, entries: Sequence[Entry], branch: int, expected: int | None
    ) -> Appended:
        """See `Storage.append`."""

        async def write(state: State) -> Made[Appended]:
            rows = [
                self._records.sealed(identity, entry, state.life, branch, seq)
                for seq, entry in enumerate(entries, state.last_seq + 1)
            ]
            last, under = state.last_seq + len(rows), self._records.keyring.label
            after = state.written(added=rows, under=under, last_seq=last)
            made = await self._storage.append(
                identity, rows, branch=branch, expected=state.version,
                seal=self._records.head(identity, after),
            )  # fmt: skip
            return made, after

        first = entries[0].at if entries else 0.0
        return await self._written(identity, expected, write, created_at=first)

    async def rewrite(
        self,
        identity: SessionIdentity,
        replaced: Sequence[Entry],
        removed: Sequence[str],
        expected: int | None,
    ) -> int:
        """See `Storage.rewrite`."""

        async def write(state: State) -> Made[int]:
            old = await self._rows_of(identity, state, {*removed, *(each.id for each in replaced)})
            new = {
                entry.id: self._resealed(identity, entry, old[entry.id], state)
                for entry in replaced
            }
            after = state.written(
                added=[row for id, row in new.items() if id not in set(removed)],
                under=self._records.keyring.label,
                removed=list(old.values()),
            )
            version = await self._storage.rewrite(
                identity, replaced=list(new.values()), removed=removed, expected=state.version,
                seal=self._records.head(identity, after),
            )  # fmt: skip
            return version, after

        return await self._written(identity, expected, write)

    def _resealed(self, identity: SessionIdentity, entry: Entry, there: Row, state: State) -> Row:
        return self._records.sealed(identity, entry, state.life, there.branch, there.seq)

    async def _rows_of(
        self, identity: SessionIdentity, state: State, ids: set[str]
    ) -> dict[str, Row]:
        """The stored rows with these ids."""
        if len(ids) <= _MAX_SINGLE_READS:
            found = [await self._storage.row(identity, id) for id in ids]
            rows = {row.id: row for row in found if row is not None}
        else:
            branches = [
                await self._storage.rows(identity, branch=branch) for branch in state.branches
            ]
            rows = {row.id: row for branch in branches for row in branch if row.id in ids}
        if len(rows) < len(ids):
            await self._expect_version(identity, state.version)
            raise NotFound(NO_MESSAGE)
        return rows

    async def _expect_version(self, identity: SessionIdentity, version: int) -> None:
        """Raises `Conflict` if another writer interfered: missing rows may have been moved."""
        session = await self._storage.session(identity)
        actual = 0 if session is None else session.version
        if actual != version:
            raise conflict(version, actual)

    async def clear(self, identity: SessionIdentity, at: float, expected: int | None) -> int:
        """See `Storage.clear`. A new life starts, whatever was wrong with the previous one."""

        async def write(state: State) -> Made[int]:
            before = self._known.newest(identity.digest)
            after = new_state(
                state.created_at, version=state.version + 1, last_seq=state.last_seq,
                after=before or state,
            )  # fmt: skip
            version = await self._storage.clear(
                identity, at=at, expected=state.version,
                seal=self._records.head(identity, after),
            )  # fmt: skip
            return version, after

        return await self._written(identity, expected, write, created_at=at, anyhow=True)

    async def fork(
        self, identity: SessionIdentity, parent: int, at: int, expected: int | None
    ) -> int:
        """See `Storage.fork`."""

        async def write(state: State) -> Made[int]:
            after = state.forked(parent, at)
            number = await self._storage.fork(
                identity, parent=parent, at=at, expected=state.version,
                seal=self._records.head(identity, after),
            )  # fmt: skip
            return number, after

        return await self._written(identity, expected, write)

    async def activate(self, identity: SessionIdentity, branch: int, expected: int | None) -> None:
        """See `Storage.activate`, but increments the version. See `State.activated`."""

        async def write(state: State) -> Made[int]:
            if branch not in state.branches:
                await self._expect_version(identity, state.version)
                raise NotFound(NO_BRANCH)
            session = await self._storage.session(identity)
            if session is None or session.version != state.version:
                raise conflict(state.version, 0 if session is None else session.version)
            after = state.activated(branch, session.active)
            await self._storage.rewrite(
                identity, expected=state.version, seal=self._records.head(identity, after)
            )
            return after.version, after

        version = await self._written(identity, expected, write)
        with suppress(Conflict, NotFound):  # a later writer relies on the sealed state
            await self._storage.activate(identity, branch, expected=version)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`. There is no version to expect, so it checks again."""
        state = self._known.current(identity.digest) or await self._state_now(identity)
        for attempt in range(_TRIES):
            life = None if state is None else state.life
            sealed = self._records.sealed_window(identity, "windows", windows, life)
            await self._storage.keep_windows(identity, sealed)
            now = await self._state_now(identity)
            if windows is None or now is None or now.life == life:
                return
            state = now  # the session was cleared, or got its first head
            await self.pause(attempt)
        raise StoreError(_BUSY)

    async def _state_now(self, identity: SessionIdentity) -> State | None:
        look = await self._examiner.look(identity)
        return None if look is None else look.state

    # --- retries

    async def _written(
        self,
        identity: SessionIdentity,
        expected: int | None,
        write: Callable[[State], Awaitable[Made[T]]],
        *,
        created_at: float | None = None,
        anyhow: bool = False,
    ) -> T:
        """Makes a write for the current state; retries if another writer was faster."""
        digest = identity.digest
        async with self.locks.of(digest):
            for attempt in range(_TRIES):
                try:
                    state = await self._state(identity, expected, created_at, anyhow=anyhow)
                    made, after = await write(state)
                except DuplicateIds:
                    self._known.unsure(digest)
                    raise
                except Conflict:
                    self._known.unsure(digest)
                    if expected is not None:
                        raise
                    await self.pause(attempt)
                except BaseException:  # the write may or may not have happened
                    self._known.unsure(digest)
                    raise
                else:
                    self._known.saw(digest, after)
                    return made
        raise StoreError(_BUSY)

    async def pause(self, attempt: int) -> None:
        """Waits with exponential backoff and jitter, so that one of several writers succeeds."""
        longest = min(_PAUSE * 2 ** min(attempt, 10), _MAX_PAUSE)
        pause = random.uniform(0, longest)  # noqa: S311 - not a secret
        if self._storage.is_blocking:
            time.sleep(pause)  # noqa: ASYNC251 - a blocking storage must not suspend
        else:
            await asyncio.sleep(pause)

    async def _state(
        self,
        identity: SessionIdentity,
        expected: int | None,
        created_at: float | None,
        *,
        anyhow: bool,
    ) -> State:
        """The state to write to; raises if there is no trustworthy one."""
        state = self._known.current(identity.digest)
        if state is None or expected not in {None, state.version}:
            state = await self._seen(identity, created_at, anyhow=anyhow)
        if expected not in {None, state.version}:
            raise conflict(expected or 0, state.version)
        return state

    async def _seen(
        self, identity: SessionIdentity, created_at: float | None, *, anyhow: bool
    ) -> State:
        before = self._known.newest(identity.digest)
        look = await (self._examiner.judged_now if anyhow else self._examiner.look)(identity)
        if look is None:
            if created_at is None:
                raise NotFound(NO_SESSION)
            return new_state(created_at, after=before)
        if anyhow and (look.state is None or look.problem is not None):
            found = look.session
            return new_state(
                found.created_at, version=found.version, last_seq=found.last_seq, after=before
            )
        look.expect_sound()
        return look.state or await self.adopted(look)

    async def adopted(self, look: Look) -> State:
        """A state for a session without a head: of the rows that can be decrypted.

        Earlier alterations can't be detected. Rows that can't be decrypted are not included, so
        that `verify` keeps reporting them. Raises `Conflict` if the session has changed since.
        """
        session = look.session
        rows = await self._examiner.rows(session)
        await self._expect_version(session.identity, session.version)  # a consistent read
        if any(map(has_place, rows)):
            raise refusal(session.identity, GONE)
        sound = [row for row in rows if self._records.body_in(session.identity, row, None)]
        if rows and not sound and not any(is_sealed(row.body) for row in rows):
            msg = f"nothing was written to session {session.identity.digest}: {PLAIN}"
            raise ConfigError(msg)
        return state_of(session, sound, bound=not rows)


def state_of(
    session: Session,
    rows: Sequence[Row],
    *,
    life: str | None = None,
    after: State | None = None,
    bound: bool = True,
) -> State:
    """A state that describes a session and its rows."""
    new = new_state(
        session.created_at, version=session.version, last_seq=session.last_seq, after=after
    )
    return new.of_rows(
        rows, life=life or new.life, active=session.active, forks=forks_of(session.forks),
        bound=bound,
    )  # fmt: skip
