"""The backend: a directory with one file of JSON lines per session.

When `append` returns, the messages survive the death of the process; with `durability="power"`
also that of the machine, for one fsync per write. Any number of processes may use the directory
at once, on a local disk. The lines are those of an export: a file can be read with any tool, and
moved by copying it.

Adding messages and reading the last ones, a range or one by its id cost the same at any length.
Everything else (replacing, removing, branching, moving the window) writes the session's file anew:
for long sessions that change much, SQLite is the better choice. Searching reads every file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files import checking, erasing, listing, reading, writing
from dragoman.history.storage.files.directory import Directory, explanation
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
    Session,
    Total,
    expect_query,
)
from dragoman.history.storage.worker import Durability, Worker, expect_durability
from dragoman.model.value import expect

P = ParamSpec("P")
T = TypeVar("T")


class FileStorage:
    """A backend in a directory. Its calls run on a worker thread; with `blocking`, in the caller's.

    >>> FileStorage("chats").name
    'file:chats'
    """

    def __init__(
        self, directory: str | Path, *, durability: Durability = "process", blocking: bool = False
    ) -> None:
        expect_durability(durability)
        self._path = Path(directory)
        self._durability = durability
        self._worker = Worker("dragoman-files", is_blocking=blocking)
        self._lock = RLock()  # blocking callers may be in several threads
        self._directory: Directory | None = None

    @property
    def name(self) -> str:
        """What it is and where."""
        return f"file:{self._path.name}"

    @property
    def is_blocking(self) -> bool:
        """Whether calls run in the calling thread."""
        return self._worker.is_blocking

    async def open(self) -> None:
        """Open the directory, making it if need be."""
        self._worker.start()
        await self._worker.run(self._open)

    async def close(self) -> None:
        """Let go of the directory."""
        await self._worker.stop(self._close)

    def _open(self) -> None:
        with self._lock:
            if self._directory is None:
                self._directory = self._explained(self._made)

    def _made(self) -> Directory:
        return Directory(self._path, is_synced=self._durability == "power")

    def _close(self) -> None:
        with self._lock:
            directory, self._directory = self._directory, None
            if directory is not None:
                directory.close()

    # --- where and how calls run

    async def _do(
        self,
        action: Callable[Concatenate[Directory, P], T],
        *arguments: P.args,
        **_none: P.kwargs,
    ) -> T:
        return await self._worker.run(self._done, action, arguments)

    def _done(self, action: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            return self._explained(action, self._opened(), *arguments)

    def _explained(self, action: Callable[..., T], *arguments: Any) -> T:
        try:
            return action(*arguments)
        except OSError as error:
            raised = explanation(error, self.name)
        raise raised

    def _opened(self) -> Directory:
        if self._directory is None:
            msg = f"the store {self.name} is not open"
            raise StoreError(msg)
        return self._directory

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none."""
        return await self._do(reading.session, identity)

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
    ) -> Appended:
        """See `Storage.append`."""
        return await self._do(writing.append, identity, entries, branch, expected)

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
        return await self._do(reading.rows, identity, branch, after, upto, limit, newest)

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
        return await self._do(reading.row, identity, id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await self._do(reading.count, identity, branch)

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
    ) -> int:
        """See `Storage.rewrite`."""
        return await self._do(writing.rewrite, identity, replaced, removed, expected)

    async def clear(
        self, identity: SessionIdentity, *, at: float, expected: int | None = None
    ) -> int:
        """See `Storage.clear`."""
        return await self._do(writing.clear, identity, at, expected)

    async def fork(
        self, identity: SessionIdentity, *, parent: int, at: int, expected: int | None = None
    ) -> int:
        """See `Storage.fork`."""
        return await self._do(writing.fork, identity, parent, at, expected)

    async def activate(self, identity: SessionIdentity, branch: int) -> None:
        """See `Storage.activate`."""
        await self._do(writing.activate, identity, branch)

    async def keep_window(self, identity: SessionIdentity, window: bytes | None) -> None:
        """See `Storage.keep_window`."""
        await self._do(writing.keep_window, identity, window)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        return await self._do(writing.delete, identity)

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        return await self._do(writing.restore, session, rows)

    async def set_aside(self, identity: SessionIdentity, seqs: Sequence[int], reason: str) -> int:
        """See `Storage.set_aside`; they are kept in a file beside it, `.aside`.

        Lines that can't be read at all have no number: they go with every call.
        """
        return await self._do(writing.set_aside, identity, seqs, reason)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        return await self._do(listing.sessions, which, limit, after)

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`; every message is read."""
        expect_query(which, text=text, limit=limit)
        return await self._do(listing.search, text, which, limit)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`; every message is read."""
        expect_query(which, by=by)
        return await self._do(listing.totals, by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`: files are removed, not overwritten."""
        expect(user, str, "the user to forget")
        return await self._do(erasing.forget, user)

    async def verify(self) -> list[str]:
        """What can't be read or does not fit together, as `file:line: what`."""
        return await self._do(checking.verify)
