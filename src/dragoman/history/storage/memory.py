"""`MemoryStorage`: keeps sessions in memory, for tests and temporary data."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import count
from threading import RLock

from dragoman.history.identity import FIELDS, escaped
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import DuplicateIds, Filter, Row, columns_of
from dragoman.history.storage.shelf import Change, Record


class _Kept:
    """The rows of one session, by id, and by branch in order."""

    def __init__(self) -> None:
        self.by_id: dict[str, Row] = {}
        self.branches: dict[int, list[Row]] = {}

    def put(self, row: Row) -> None:
        self.by_id[row.id] = row
        rows = self.branches.get(row.branch)
        if rows is None:
            self.branches[row.branch] = [row]
        elif not rows or rows[-1].seq < row.seq:
            rows.append(row)
        else:
            insort(rows, row, key=_seq)

    def drop(self, id: str) -> Row:
        row = self.by_id.pop(id)
        rows = self.branches[row.branch]
        at = bisect_right(rows, row.seq, key=_seq) - 1
        while rows[at] is not row:  # an imported copy may have duplicate numbers
            at -= 1
        del rows[at]
        return row


class MemoryShelf:
    """Heads and rows in memory."""

    name = "memory"
    is_blocking = True

    def __init__(self) -> None:
        self._lock = RLock()
        self._heads: dict[str, Stored] = {}
        self._rows: dict[str, _Kept] = {}
        self._aside: list[tuple[str | None, Row, str]] = []
        self._feed: dict[str, int] | None = None
        self._numbers = count(1)

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do; it can be opened again with its content."""

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`."""
        return self._heads.get(digest)

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        digest = stored.digest
        with self._lock:
            there = self._heads.get(digest)
            if (0 if there is None else there.stamp) != before:
                return False
            if change is not None:
                self._change(stored, change)
            self._heads[digest] = stored
            if self._feed is not None:
                self._told(self._feed, digest)
            return True

    def _told(self, feed: dict[str, int], digest: str) -> None:
        feed.pop(digest, None)
        feed[digest] = next(self._numbers)  # the latest comes last

    def _change(self, stored: Stored, change: Change) -> None:
        kept = self._rows.get(stored.digest)
        if kept is None or change.is_emptied:
            kept = _Kept()
        known = [row.id for row in change.puts if row.id in kept.by_id]
        if known and change.drops:
            known = [id for id in known if id not in {*change.drops}]
        if known or (len(change.puts) > 1 and _has_duplicates(change.puts)):
            raise DuplicateIds(known)
        for id in change.drops:
            kept.drop(id)
        self._aside += [(stored.names[_USER], kept.drop(id), change.reason) for id in change.aside]
        for row in change.puts:
            kept.put(row)
        self._rows[stored.digest] = kept

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        """See `Shelf.rows`."""
        with self._lock:
            kept = self._rows.get(digest)
            rows = [] if kept is None else kept.branches.get(branch, [])
            low = bisect_right(rows, after, key=_seq)
            high = len(rows) if upto is None else bisect_right(rows, upto, key=_seq)
            if limit is not None and newest:
                low = max(low, high - limit)
            elif limit is not None:
                high = min(high, low + limit)
            return rows[low:high]

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        kept = self._rows.get(digest)
        return [] if kept is None else [kept.by_id[id] for id in ids if id in kept.by_id]

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        kept = self._rows.get(digest)
        if kept is None:
            return 0
        if branches is None:
            return len(kept.by_id)
        return sum(len(kept.branches.get(branch, ())) for branch in branches)

    async def records(self, digest: str) -> list[Record]:
        """See `Shelf.records`."""
        with self._lock:
            kept = self._rows.get(digest)
            return [] if kept is None else [Record(row.id, row) for row in kept.by_id.values()]

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        with self._lock:
            heads = [self._heads[digest] for digest in sorted(self._heads) if digest > after]
        return [each for each in heads if takes(which, each)][:limit]

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`."""
        with self._lock:
            return [self._removed(digest, stamp) for digest, stamp in which]

    def _removed(self, digest: str, stamp: int) -> int | None:
        there = self._heads.get(digest)
        if there is None or there.stamp != stamp:
            return None
        del self._heads[digest]
        if self._feed is not None:
            self._told(self._feed, digest)
        kept = self._rows.pop(digest, None)
        return 0 if kept is None else len(kept.by_id)

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`."""
        with self._lock:
            self._aside = [each for each in self._aside if each[0] != escaped(user)]
        return ()

    async def watch(self) -> None:
        """See `Shelf.watch`."""
        if self._feed is None:
            self._feed = {}

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """See `Shelf.changes`."""
        with self._lock:
            feed, above = self._feed or {}, int(after or 0)
            found = [(digest, number) for digest, number in feed.items() if number > above][:limit]
        return [digest for digest, _ in found], str(found[-1][1]) if found else after

    async def prune(self, upto: str) -> None:
        """See `Shelf.prune`."""
        with self._lock:
            if self._feed is not None:
                last = int(upto or 0)
                self._feed = {digest: n for digest, n in self._feed.items() if n > last}

    async def problems(self) -> list[str]:
        """Nothing is shared with others, who could damage it."""
        return []


class MemoryStorage(Ledger):
    """A backend in memory; its content is lost when the process ends."""

    shelf: MemoryShelf

    def __init__(self) -> None:
        super().__init__(MemoryShelf())


_USER = FIELDS.index("user")


def takes(which: Filter, stored: Stored) -> bool:
    """Whether a filter selects a head; for shelves that read all of them."""
    if which.since is not None and stored.at < which.since:
        return False
    if which.until is not None and stored.at >= which.until:
        return False
    return all(
        stored.names[FIELDS.index(field)] == name for field, name in columns_of(which).items()
    )


def _has_duplicates(rows: Sequence[Row]) -> bool:
    return len({row.id for row in rows}) < len(rows)


def _seq(row: Row) -> int:
    return row.seq
