"""What stores with blocking calls share: they run on a worker thread, or in the caller's."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import RLock, get_ident
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from dragoman.errors import InvalidInputError, StoreError

Durability = Literal["process", "power"]
S = TypeVar("S")  # the open store
P = ParamSpec("P")
T = TypeVar("T")
# The other operations read many sessions: only each of their steps runs on the worker thread.
_ON_WORKER = (
    "session", "append", "rows", "row", "count", "rewrite", "clear", "fork", "activate",
    "keep_windows", "delete", "restore", "set_aside", "lease", "renew", "release", "holder",
    "change", "whole",
)  # fmt: skip


def expect_durability(durability: str) -> None:
    """Raises unless it is a known value."""
    if durability not in {"process", "power"}:
        msg = "durability must be 'process' (survives kill -9) or 'power' (survives a power cut)"
        raise InvalidInputError(msg)


def expect_open(opened: T | None, name: str) -> T:
    """The open store; raises if it is not open."""
    if opened is None:
        msg = (
            f"the store {name} is not open; use `async with ChatHistory(…)` or `await"
            " ChatHistory.open(…)`, or call `await storage.open()` on your own backend"
        )
        raise StoreError(msg)
    return opened


class ThreadedShelf(ABC, Generic[S]):
    """A shelf with blocking functions, which run one at a time on a worker thread.

    With `blocking` there is no worker thread: they run in the calling thread.
    """

    def __init__(self, thread: str, *, blocking: bool) -> None:
        self.is_blocking = blocking
        self._worker = Worker(thread, is_blocking=blocking)
        self._lock = RLock()  # blocking callers may use several threads
        self._kept: S | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """See `Shelf.name`."""

    async def open(self) -> None:
        """See `Shelf.open`."""
        self._worker.start()
        await self._worker.run(self._open_once)

    async def close(self) -> None:
        """See `Shelf.close`."""
        await self._worker.stop(self._close_once)

    def _open_once(self) -> None:
        with self._lock:
            if self._kept is None:
                self._kept = self._connect()

    def _close_once(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, None
            if kept is not None:
                self._disconnect(kept)

    @property
    def _opened(self) -> S:
        return expect_open(self._kept, self.name)

    async def read(
        self, work: Callable[Concatenate[S, P], T], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Runs a function that only reads, with the open store."""
        return await self._worker.run(self._read, work, arguments)

    async def write(
        self, work: Callable[Concatenate[S, P], T], *arguments: P.args, **_none: P.kwargs
    ) -> T:
        """Runs a function that writes, with the open store."""
        return await self._worker.run(self._write, work, arguments)

    def run_as_a_whole(self, operations: object) -> None:
        """Runs each operation on one session as a whole on the worker thread.

        That is one change of threads for an operation, not one for each of its steps.
        """
        if not self.is_blocking:
            for name in _ON_WORKER:
                setattr(operations, name, partial(self._worker.drive, getattr(operations, name)))

    # --- implemented by shelves; everything runs on the worker thread

    @abstractmethod
    def _connect(self) -> S:
        """Opens the store."""

    @abstractmethod
    def _disconnect(self, opened: S) -> None:
        """Closes the store."""

    @abstractmethod
    def _read(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Runs a function that only reads."""

    @abstractmethod
    def _write(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Runs a function that writes; atomic."""


def _driven(
    work: Callable[..., Coroutine[Any, Any, T]], arguments: tuple[Any, ...], named: dict[str, Any]
) -> T:
    try:
        work(*arguments, **named).send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    msg = "a coroutine on the worker thread waited for something else"
    raise RuntimeError(msg)


class Worker:
    """A single thread while the store is open; none if callers block."""

    def __init__(self, name: str, *, is_blocking: bool) -> None:
        self.is_blocking = is_blocking
        self._name = name
        self._thread: ThreadPoolExecutor | None = None
        self._ident = 0

    def start(self) -> None:
        """Starts the thread. Idempotent."""
        if not self.is_blocking and self._thread is None:
            self._thread = ThreadPoolExecutor(1, self._name, initializer=self._started)

    def _started(self) -> None:
        self._ident = get_ident()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Runs a function on the thread, or directly."""
        if self._thread is None or get_ident() == self._ident:
            return function(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)

    async def drive(
        self, work: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Runs a coroutine that waits for nothing but this thread, as a whole, on the thread."""
        if self._thread is None or get_ident() == self._ident:
            return await work(*arguments, **named)
        return await self.run(_driven, work, arguments, named)

    async def stop(self, last: Callable[[], None]) -> None:
        """Runs one last function, and stops the thread."""
        thread = self._thread
        try:
            await self.run(last)
        finally:  # even when cancelled: queued work is finished, then the thread ends
            self._thread = None
            if thread is not None:
                thread.shutdown(wait=False)
