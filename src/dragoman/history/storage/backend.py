"""`Backend`: implements `Storage` on top of plain functions.

A backend is a table of functions (`Operations`). Their first argument is the open store (a
connection, a directory, a server); the others are those of the method in `Storage`, in the same
order. `_read` and `_write` decide where they run: on a thread, in a transaction, or awaited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Appended,
    Entry,
    Erasure,
    Filter,
    Group,
    Hit,
    Row,
    Seal,
    Session,
    Total,
    expect_query,
)
from dragoman.history.storage.scanning import words_of
from dragoman.model.value import expect

S = TypeVar("S")  # the open store
P = ParamSpec("P")
T = TypeVar("T")
Answer: TypeAlias = T | Awaitable[T]


class Operations(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """The functions of a backend, sync or async."""

    session: Callable[[S, SessionIdentity], Answer[Session | None]]
    append: Callable[[S, SessionIdentity, Sequence[Entry], int, int | None, Seal], Answer[Appended]]
    rows: Callable[[S, SessionIdentity, int, int, int | None, int | None, bool], Answer[list[Row]]]
    row: Callable[[S, SessionIdentity, str], Answer[Row | None]]
    count: Callable[[S, SessionIdentity, int | None], Answer[int]]
    rewrite: Callable[
        [S, SessionIdentity, Sequence[Entry], Sequence[str], int | None, Seal], Answer[int]
    ]
    clear: Callable[[S, SessionIdentity, float, int | None, Seal], Answer[int]]
    fork: Callable[[S, SessionIdentity, int, int, int | None, Seal], Answer[int]]
    activate: Callable[[S, SessionIdentity, int, int | None, Seal], Answer[None]]
    keep_windows: Callable[[S, SessionIdentity, bytes | None], Answer[None]]
    delete: Callable[[S, SessionIdentity], Answer[bool]]
    restore: Callable[[S, Session, Sequence[Row]], Answer[bool]]
    set_aside: Callable[[S, SessionIdentity, Sequence[int], str, int | None, Seal], Answer[int]]
    sessions: Callable[[S, Filter, int | None, str], Answer[list[Session]]]
    search: Callable[[S, str, Filter, int], Answer[list[Hit]]]
    totals: Callable[[S, Group, Filter], Answer[list[Total]]]


class Backend(ABC, Generic[S]):
    """A `Storage` implemented by functions on an open store."""

    _operations: Operations[S]

    # --- how functions run

    @abstractmethod
    async def _read(
        self, work: Callable[Concatenate[S, P], Answer[T]], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Runs a function that only reads."""

    @abstractmethod
    async def _write(
        self, work: Callable[Concatenate[S, P], Answer[T]], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Runs a function that writes; atomic."""

    async def _read_slowly(
        self, work: Callable[Concatenate[S, P], Answer[T]], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Like `_read`, for long-running functions over many sessions."""
        return await self._read(work, *arguments, **_none)

    async def _write_slowly(
        self, work: Callable[Concatenate[S, P], Answer[T]], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Like `_write`, for long-running functions."""
        return await self._write(work, *arguments, **_none)

    @abstractmethod
    async def _append(
        self, work: Callable[Concatenate[S, P], Answer[T]], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Like `_write`, for an append, which may be retried but is stored once."""

    async def _index(self, which: Filter) -> None:
        """Updates the search index, if there is one."""

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None`."""
        return await self._read(self._operations.session, identity)

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
        return await self._append(
            self._operations.append, identity, entries, branch, expected, seal
        )

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
        return await self._read(self._operations.rows, identity, branch, after, upto, limit, newest)

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        return await self._read(self._operations.row, identity, id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await self._read(self._operations.count, identity, branch)

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
        return await self._write(
            self._operations.rewrite, identity, replaced, removed, expected, seal
        )

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> int:
        """See `Storage.clear`."""
        return await self._write(self._operations.clear, identity, at, expected, seal)

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
        return await self._write(self._operations.fork, identity, parent, at, expected, seal)

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
        seal: Seal = UNSET,
    ) -> None:
        """See `Storage.activate`."""
        await self._write(self._operations.activate, identity, branch, expected, seal)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""
        await self._write(self._operations.keep_windows, identity, windows)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        return await self._write(self._operations.delete, identity)

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        return await self._write_slowly(self._operations.restore, session, rows)

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
        return await self._write_slowly(
            self._operations.set_aside, identity, seqs, reason, expected, seal
        )

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        return await self._read_slowly(self._operations.sessions, which, limit, after)

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`."""
        expect_query(which, text=text, limit=limit)
        words_of(text)  # raises if there are no words, before anything is read
        await self._index(which)
        return await self._read_slowly(self._operations.search, text, which, limit)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`."""
        expect_query(which, by=by)
        return await self._read_slowly(self._operations.totals, by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`."""
        expect(user, str, "the user to forget")
        return await self._forget(user)

    @abstractmethod
    async def _forget(self, user: str) -> Erasure:
        """Erases all sessions of a user."""


def expect_open(opened: T | None, name: str) -> T:
    """The open store; raises if it is not open."""
    if opened is None:
        msg = (
            f"the store {name} is not open; use `async with ChatHistory(…)` or `await"
            " ChatHistory.open(…)`, or call `await storage.open()` on your own backend"
        )
        raise StoreError(msg)
    return opened
