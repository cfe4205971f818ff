"""`FileStorage`: a directory with one file of JSON lines per session.

When `append` returns, the messages survive a crash of the process; with `durability="power"`, at
the cost of one fsync per write, also a power failure. Any number of processes may use the directory
at the same time, on a local disk. The lines have the format of an export: a file can be read with
any tool, and moved by copying it.

Appending messages, and reading the last ones, a range or one by id, cost the same at any length.
Everything else (replacing, removing, branching, moving the window) rewrites the session's file: for
long sessions that change a lot, SQLite is the better choice. Searching reads every file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dragoman.history.storage.anchoring import moved
from dragoman.history.storage.backend import Operations
from dragoman.history.storage.files import (
    checking,
    erasing,
    listing,
    reading,
    rewriting,
    writing,
)
from dragoman.history.storage.files.directory import Directory, explanation
from dragoman.history.storage.protocol import Erasure
from dragoman.history.storage.threaded import Durability, ThreadedBackend, expect_durability

T = TypeVar("T")


class FileStorage(ThreadedBackend[Directory]):
    """A backend in a directory. Its calls run on a worker thread; with `blocking`, in the caller's.

    >>> FileStorage("chats").name
    'file:chats'
    """

    _operations = Operations(
        session=reading.session,
        append=writing.append,
        rows=reading.rows,
        row=reading.row,
        count=reading.count,
        rewrite=rewriting.rewrite,
        clear=rewriting.clear,
        fork=rewriting.fork,
        activate=rewriting.activate,
        keep_windows=rewriting.keep_windows,
        delete=rewriting.delete,
        restore=rewriting.restore,
        set_aside=rewriting.set_aside,
        sessions=listing.sessions,
        search=listing.search,
        totals=listing.totals,
    )

    def __init__(
        self, directory: str | Path, *, durability: Durability = "process", blocking: bool = False
    ) -> None:
        expect_durability(durability)
        super().__init__("dragoman-files", blocking=blocking)
        self._path = Path(directory)
        self._durability = durability

    @property
    def name(self) -> str:
        """The kind of backend and its location."""
        return f"file:{self._path.name}"

    def _connect(self) -> Directory:
        is_synced = self._durability == "power"
        return self._explained(lambda: Directory(self._path, is_synced=is_synced))

    def _disconnect(self, opened: Directory) -> None:
        opened.close()

    def _asked(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            directory = self._opened
            if not directory.holds():
                raise moved(self.name)
            return self._explained(work, directory, *arguments)

    _changed = _asked  # writers take the session's lock

    def _explained(self, action: Callable[..., T], *arguments: Any) -> T:
        try:
            return action(*arguments)
        except OSError as error:
            raised = explanation(error, self.name)
        raise raised

    async def _forget(self, user: str) -> Erasure:
        return await self._write(erasing.forget, user)  # files are removed, not overwritten

    async def verify(self) -> list[str]:
        """Reports unreadable and inconsistent lines, as `file:line: problem`."""
        return await self._read(checking.verify)
