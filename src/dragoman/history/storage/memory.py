"""`MemoryStorage`: keeps sessions in memory, for tests and temporary data."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from threading import RLock
from time import time
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import Tally, damage_in, protected
from dragoman.history.storage.plausibility import is_plain, mended
from dragoman.history.storage.protocol import (
    CLEARED,
    EVERYTHING,
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Appended,
    DuplicateIds,
    Entry,
    Erasure,
    Filter,
    Fork,
    Group,
    Hit,
    Row,
    Seal,
    Session,
    Total,
    conflict,
    expect_query,
    placed,
)
from dragoman.history.storage.scanning import found, summed
from dragoman.model.value import expect


class _Kept:
    """One session: its head, and its rows by branch and by id."""

    def __init__(self, head: Session) -> None:
        self.head = head
        self.by_id: dict[str, Row] = {}
        self.branches: dict[int, list[Row]] = {MAIN: []}

    def put(self, row: Row) -> None:
        self.by_id[row.id] = row
        insort(self.branches.setdefault(row.branch, []), row, key=_seq)

    def write(self, at: float, **changes: Any) -> None:
        """Increments the version, and changes other fields of the head."""
        head = msgspec.structs.replace(
            self.head, version=self.head.version + 1, updated_at=at, **changes
        )
        self.head = msgspec.structs.replace(head, chain=self.tally(head))

    def tally(self, head: Session) -> str:
        return str(Tally(head.version, head.last_seq, len(self.by_id), len(head.forks)))

    def index(self, row: Row) -> int:
        rows = self.branches[row.branch]
        at = bisect_right(rows, row.seq, key=_seq) - 1
        while rows[at].id != row.id:  # an imported copy may have duplicate numbers
            at -= 1
        return at


class MemoryStorage:
    """A backend in memory; its content is lost when the process ends."""

    name = "memory"
    is_blocking = True

    def __init__(self) -> None:
        self._lock = RLock()
        self._sessions: dict[str, _Kept] = {}
        self._aside: list[tuple[SessionIdentity, Row, str]] = []

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do; it can be opened again with its content."""

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None`."""
        kept = self._sessions.get(identity.digest)
        return None if kept is None else kept.head

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> Appended:
        """See `Storage.append`."""
        with self._lock:
            kept = self._sessions.get(identity.digest) or _Kept(_new(identity, entries[0].at))
            _expect(kept.head, expected)
            if branch not in kept.branches:
                raise NotFound(NO_BRANCH)
            known = [entry.id for entry in entries if entry.id in kept.by_id]
            if known or len({entry.id for entry in entries}) < len(entries):
                raise DuplicateIds(known)
            first = kept.head.last_seq + 1
            for seq, entry in enumerate(entries, first):
                kept.put(placed(entry, seq, branch))
            last = first + len(entries) - 1
            kept.write(entries[-1].at, last_seq=last, **_sealed(seal))
            self._sessions[identity.digest] = kept
            return Appended(kept.head.version, last)

    async def rows(
        self,
        identity: SessionIdentity,
        *,
        branch: int = MAIN,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[Row]:
        """See `Storage.rows`."""
        with self._lock:
            kept = self._sessions.get(identity.digest)
            rows = [] if kept is None else kept.branches.get(branch, [])
            low = bisect_right(rows, after, key=_seq)
            high = len(rows) if upto is None else bisect_right(rows, upto, key=_seq)
            if limit is not None:
                low, high = (
                    (max(low, high - limit), high) if newest else (low, min(high, low + limit))
                )
            return rows[low:high]

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        kept = self._sessions.get(identity.digest)
        return None if kept is None else kept.by_id.get(id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        kept = self._sessions.get(identity.digest)
        if kept is None:
            return 0
        return len(kept.by_id) if branch is None else len(kept.branches.get(branch, ()))

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.rewrite`."""
        with self._lock:
            kept = self._existing(identity, expected)
            ids = [*removed, *(entry.id for entry in replaced)]
            if len(set(removed)) < len(removed) or any(id not in kept.by_id for id in ids):
                raise NotFound(NO_MESSAGE)
            for entry in replaced:
                old = kept.by_id[entry.id]
                row = kept.by_id[entry.id] = placed(entry, old.seq, old.branch)
                kept.branches[old.branch][kept.index(old)] = row
            for id in removed:
                old = kept.by_id.pop(id)
                del kept.branches[old.branch][kept.index(old)]
            kept.write(time(), **_sealed(seal))
            return kept.head.version

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.clear`."""
        with self._lock:
            kept = self._sessions.get(identity.digest)
            head = _new(identity, at) if kept is None else kept.head
            _expect(head, expected)
            cleared = self._sessions[identity.digest] = _Kept(head)
            cleared.write(at, **{**CLEARED, **_sealed(seal)})
            return cleared.head.version

    async def fork(
        self,
        identity: SessionIdentity,
        *,
        parent: int,
        at: int,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.fork`."""
        with self._lock:
            kept = self._existing(identity, expected)
            if parent not in kept.branches:
                raise NotFound(NO_BRANCH)
            number = max(kept.branches) + 1
            kept.branches[number] = []
            forks = (*kept.head.forks, Fork(number, parent, at))
            kept.write(time(), active=number, forks=forks, **_sealed(seal))
            return number

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> None:
        """See `Storage.activate`."""
        with self._lock:
            kept = self._existing(identity, expected)
            if branch not in kept.branches:
                raise NotFound(NO_BRANCH)
            kept.head = msgspec.structs.replace(kept.head, active=branch, **_sealed(seal))

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""
        with self._lock:
            kept = self._existing(identity, None)
            kept.head = msgspec.structs.replace(kept.head, window=None, windows=windows)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        with self._lock:
            return self._sessions.pop(identity.digest, None) is not None

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        with self._lock:
            digest = session.identity.digest
            there = self._sessions.get(digest)
            if there is not None and there.head.version >= session.version:
                return False
            kept = self._sessions[digest] = _Kept(session)
            for fork in session.forks:
                kept.branches[fork.number] = []
            for row in sorted(rows, key=_seq):
                kept.put(protected(row))
            if session.chain is None:
                kept.head = msgspec.structs.replace(session, chain=kept.tally(session))
            return True

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.set_aside`."""
        with self._lock:
            kept = self._existing(identity, expected)
            broken = [row for row in kept.by_id.values() if row.seq in set(seqs)]
            for row in broken:
                self._aside.append((identity, row, reason))
                del kept.by_id[row.id]
                del kept.branches[row.branch][kept.index(row)]
            kept.write(time())
            plain = is_plain(row.body for row in kept.by_id.values())
            kept.head = msgspec.structs.replace(mended(kept.head, is_plain=plain), **_sealed(seal))
            return len(broken)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        with self._lock:
            heads = [self._sessions[d].head for d in sorted(self._sessions) if d > after]
            return [head for head in heads if which.takes(head)][:limit]

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`."""
        expect_query(which, text=text, limit=limit)
        return found(text, self._rows_of(which), limit)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`."""
        expect_query(which, by=by)
        return summed(by, self._rows_of(which))

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`."""
        expect(user, str, "the user to forget")
        with self._lock:
            gone = [d for d, kept in self._sessions.items() if kept.head.identity.user == user]
            messages = sum(len(self._sessions.pop(digest).by_id) for digest in gone)
            self._aside = [item for item in self._aside if item[0].user != user]
        return Erasure(len(gone), messages)

    async def verify(self) -> list[str]:
        """See `Storage.verify`; an imported copy may contain damage."""
        return [
            f"session {session.identity.digest}: {problem}"
            for session in await self.sessions()
            async for problem in damage_in(self, session)
        ]

    def _existing(self, identity: SessionIdentity, expected: int | None) -> _Kept:
        kept = self._sessions.get(identity.digest)
        if kept is None:
            raise NotFound(NO_SESSION)
        _expect(kept.head, expected)
        return kept

    def _rows_of(self, which: Filter) -> Iterator[tuple[Session, Row]]:
        with self._lock:
            kept = [kept for kept in self._sessions.values() if which.takes(kept.head)]
            listed = [(each.head, row) for each in kept for row in each.by_id.values()]
        return iter(listed)


def _seq(row: Row) -> int:
    return row.seq


def _new(identity: SessionIdentity, at: float) -> Session:
    return Session(identity, version=0, last_seq=0, created_at=at, updated_at=at)


def _sealed(seal: Seal) -> dict[str, Any]:
    return {} if seal is UNSET else {"seal": seal}


def _expect(head: Session, expected: int | None) -> None:
    if expected is not None and head.version != expected:
        raise conflict(expected, head.version)
