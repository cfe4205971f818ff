"""Runs async code from blocking code: in scripts, in notebooks, and inside a running event loop.

One event loop per process runs on a background thread, started on first use. A blocking call
blocks only its caller, not the work on the background loop.

User callbacks (hooks, strategies) may make blocking calls themselves. They run "aside": on a
separate loop, one more for each level of nesting, so that no loop waits for itself.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, copy_context
from threading import Event, Lock, Thread, current_thread
from typing import Any, Generic, NamedTuple, TypeVar, overload

from dragoman.errors import InvalidInputError

T = TypeVar("T")

_MAX_NESTING = 100
_CLEANUP_TIMEOUT = 2.0  # seconds
_CLEANUP_POLLS = 40


class _Portal(NamedTuple):
    loop: asyncio.AbstractEventLoop
    thread: Thread


class _Exit(NamedTuple):
    error: BaseException


_lock = Lock()
_portals: dict[int, _Portal] = {}
# The number of user callbacks around this call. Context variables are passed on between threads.
_level: ContextVar[int] = ContextVar("dragoman_portal_level", default=0)


@overload
def run_sync(work: Coroutine[Any, Any, T]) -> T: ...
@overload
def run_sync(work: AsyncIterator[T]) -> Iterator[T]: ...
def run_sync(work: Coroutine[Any, Any, T] | AsyncIterator[T]) -> T | Iterator[T]:
    """Runs a coroutine and returns its result, or iterates over an async iterator, blocking.

    ```python
    problems = run_sync(storage.verify())
    for line in run_sync(export(storage)): ...
    ```

    Where a blocking method exists (`send_sync`, `open_sync`), use that: it is faster.
    """
    if isinstance(work, AsyncIterator):
        return _each(work)
    given: object = work
    if not isinstance(given, Coroutine):
        kind = type(given).__name__
        msg = f"run_sync takes a coroutine or an async iterator, not {kind}"
        raise InvalidInputError(msg)
    return run(work)


def _each(items: AsyncIterator[T]) -> Iterator[T]:
    async def next_ones() -> list[T]:
        try:
            return [await anext(items)]
        except StopAsyncIteration:
            return []

    try:
        while found := run(next_ones()):
            yield from found
    finally:
        if isinstance(items, AsyncGenerator):
            run(items.aclose())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the coroutine's result, run on the background loop; an interrupt cancels it."""
    portal = _portal(0)
    if current_thread() is portal.thread:
        coroutine.close()
        msg = "a blocking call was made on the event loop that has to run it; use the async method"
        raise InvalidInputError(msg)
    return _result(_Running(coroutine, portal.loop, _level.get()))


def run_aside(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `run`, for user callbacks, which may make blocking calls themselves."""
    return _result(_aside(coroutine))


async def await_aside(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `run_aside`, awaitable from the background loop."""
    return _unwrapped(await asyncio.wrap_future(_aside(coroutine).start()))


async def call_aside(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function on a thread of its own, where it may make blocking calls."""
    return await asyncio.wrap_future(start_aside(function, *arguments))


def start_aside(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Like `call_aside`, but returns the future without waiting."""
    level = _next_level()
    future: Future[T] = Future()

    def call() -> None:
        _level.set(level)
        try:
            result = function(*arguments)
        except BaseException as error:  # noqa: BLE001 - passed on to the caller
            _settle(future, error=error)
        else:
            _settle(future, result)

    # Not from a pool: nested calls would exhaust it and deadlock.
    Thread(target=copy_context().run, args=(call,), name="dragoman-aside", daemon=True).start()
    return future


def run_inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine that never suspends; raises if it does."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    msg = "a blocking call reached code that needs an event loop"
    raise InvalidInputError(msg)


def _result(running: _Running[T]) -> T:
    try:
        return _unwrapped(running.start().result())
    except BaseException:  # also KeyboardInterrupt: don't leave the work running
        running.stop()
        raise


def _settle(future: Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    if not future.set_running_or_notify_cancel():
        return  # the waiting caller was interrupted
    if isinstance(error, StopIteration):  # neither futures nor coroutines may raise it
        error = RuntimeError("a hook raised StopIteration")
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _next_level() -> int:
    level = _level.get() + 1
    if level > _MAX_NESTING:
        msg = f"hooks made nested blocking calls more than {_MAX_NESTING} levels deep"
        raise RecursionError(msg)
    return level


def _aside(coroutine: Coroutine[Any, Any, T]) -> _Running[T]:
    try:
        level = _next_level()
    except RecursionError:
        coroutine.close()
        raise
    return _Running(coroutine, _portal(level).loop, level)


class _Running(Generic[T]):
    """A coroutine on one of our event loops."""

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, level: int
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._level = level
        self._task: asyncio.Task[Any] | None = None
        self._is_stopped = False
        self._has_ended = Event()

    def start(self) -> Future[T | _Exit]:
        """Schedules the coroutine and returns its future."""
        return asyncio.run_coroutine_threadsafe(self._run(), self._loop)

    async def _run(self) -> T | _Exit:
        """Awaits the coroutine; returns, not raises, exceptions that would stop the loop."""
        self._task = asyncio.current_task()
        _level.set(self._level)
        try:
            if self._is_stopped:
                raise asyncio.CancelledError
            return await self._coroutine
        except (SystemExit, KeyboardInterrupt) as error:
            return _Exit(error)
        finally:
            self._has_ended.set()

    def stop(self) -> None:
        """Cancels the coroutine and waits, with a timeout, until it has cleaned up.

        Cancels the task rather than the future, because an interrupt may arrive before the caller
        has the future.
        """
        if self._has_ended.is_set():
            return
        self._is_stopped = True
        self._loop.call_soon_threadsafe(self._cancel)
        for _ in range(_CLEANUP_POLLS):
            if self._has_ended.wait(_CLEANUP_TIMEOUT / _CLEANUP_POLLS) or self._task is None:
                break
        if self._task is None:
            self._coroutine.close()  # it never started

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _unwrapped(outcome: T | _Exit) -> T:
    if isinstance(outcome, _Exit):
        raise outcome.error
    return outcome


def _portal(level: int) -> _Portal:
    with _lock:
        portal = _portals.get(level)
        if portal is None:
            loop = asyncio.new_event_loop()
            thread = Thread(target=loop.run_forever, name="dragoman-loop", daemon=True)
            thread.start()
            portal = _portals[level] = _Portal(loop, thread)
        return portal


def _shut_down() -> None:
    """Cancels the tasks left on the loops, in case a program ends without closing its resources.

    Otherwise asyncio warns about pending tasks, such as those of a connection pool.
    """
    for portal in list(_portals.values()):
        ending = asyncio.run_coroutine_threadsafe(_ended_tasks(), portal.loop)
        with suppress(Exception):  # whatever is stuck ends with the process
            ending.result(_CLEANUP_TIMEOUT)
        portal.loop.call_soon_threadsafe(portal.loop.stop)
        portal.thread.join(_CLEANUP_TIMEOUT)


async def _ended_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


atexit.register(_shut_down)


def _reset_after_fork() -> None:
    global _lock, _portals
    _lock, _portals = Lock(), {}  # the threads exist only in the parent process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
