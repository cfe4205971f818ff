"""Reads encrypted messages, and compares them with the head if all of them were read."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import MAIN, Row, Storage
from dragoman.history.storage.sealed.examining import Examiner
from dragoman.history.storage.sealed.records import (
    GONE,
    Opened,
    Records,
    has_place,
    refuse_plain,
)
from dragoman.history.storage.sealed.seen_states import Known
from dragoman.history.storage.sealed.state import State

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
