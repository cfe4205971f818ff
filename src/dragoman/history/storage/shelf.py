"""`Shelf`: what a backend has to do. It keeps heads and rows, and knows nothing of sessions' rules.

Every write is one `commit`: a head that replaces the one that was read, rows to put, rows to drop,
all or nothing. The rules stand in `history.storage.ledger`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from dragoman.errors import StoreError
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.protocol import Filter, Group, Hit, Row, Session, Total


class Change(NamedTuple):
    """What one commit writes."""

    head: Session
    puts: Sequence[Row] = ()
    drops: Sequence[str] = ()
    """The ids of rows to remove, before others are put."""
    is_emptied: bool = False
    """Whether all rows are removed, before others are put."""
    aside: Sequence[Any] = ()
    """The keys of records (`Record`) to move to a separate place."""
    reason: str = ""
    """Why they are moved."""
    is_repair: bool = False
    """Whether the names beside the head are written again, and the search index is checked."""


class Record(NamedTuple):
    """A row as far as it is readable, and what its shelf finds it by, however damaged it is."""

    key: Any
    row: Row


class LostReply(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The connection broke during a commit, or it took too long: was it done?"""

    def __init__(self, message: str, *, is_repeatable: bool = True) -> None:
        super().__init__(message)
        self.is_repeatable = is_repeatable
        """Whether to send it again, if it was not done."""


class Shelf(Protocol):
    """A place that keeps heads and rows. Methods raise `StoreError` if it fails."""

    @property
    def name(self) -> str:
        """See `Storage.name`."""
        ...

    @property
    def is_blocking(self) -> bool:
        """See `Storage.is_blocking`."""
        ...

    async def open(self) -> None:
        """Connects, and creates or migrates what is missing. Idempotent."""
        ...

    async def close(self) -> None:
        """Releases all resources. Idempotent."""
        ...

    async def get(self, digest: str) -> Stored | None:
        """A session's head."""
        ...

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """Replaces the head with stamp `before` (0: there is none), and writes the change's rows.

        Returns whether it did; it does nothing if the stamp is another. Raises `DuplicateIds` if a
        row's id or position is in use, and `LostReply` if it is unknown whether it was done.
        """
        ...

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - one caller, with the arguments of `Storage.rows`
    ) -> list[Row]:
        """See `Storage.rows`. An unreadable row is returned such that its damage is detected."""
        ...

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """The rows with these ids, as far as they exist."""
        ...

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """The number of rows on these branches, or of all records, readable or not."""
        ...

    async def records(self, digest: str) -> list[Record]:
        """Everything kept of a session; the number of a row without a position is 0."""
        ...

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """Heads in the order of their digests, starting after `after`."""
        ...

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """Removes sessions, by digest and stamp; returns the number of rows of each.

        `None` for those that have another stamp: nothing of them is removed. All at once, or
        one after another.
        """
        ...

    async def scrub(self, user: str) -> tuple[str, ...]:
        """Erases what was set aside of a user, and traces of removed rows; returns what remains."""
        ...

    async def watch(self) -> None:
        """Starts the feed of changes, which costs nothing before. Idempotent."""
        ...

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """The digests of sessions that were written after a cursor, and the next cursor.

        A change is told when no other can follow that has a lower place.
        """
        ...

    async def prune(self, upto: str) -> None:
        """Removes the part of the feed up to a cursor."""
        ...

    async def problems(self) -> list[str]:
        """Structural problems; sessions are checked by the ledger."""
        ...


class RunningAsAWhole(Protocol):
    """A shelf with a thread of its own, where an operation runs as a whole."""

    def run_as_a_whole(self, operations: object) -> None:
        """Makes the operations on one session run there."""
        ...


class Searching(Protocol):
    """A shelf that searches and sums by itself; in others, every message is read."""

    async def search(self, words: Sequence[str], which: Filter, limit: int) -> list[Hit]:
        """See `Storage.search`."""
        ...

    async def totals(self, by: Group, which: Filter) -> list[Total]:
        """See `Storage.totals`."""
        ...
