"""Runs blocking functions from async code, on reusable daemon threads.

Not asyncio's own pool: its threads keep the process from exiting while one hangs, and it has a
limit, so that functions that wait for each other may deadlock. Not a thread per call
(`portal.call_aside`) either: starting one takes about ten times as long as waking one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_IDLE_SECONDS = 10.0
"""Seconds after which an idle thread ends."""
_MAX_DEPTH = 100

# Nesting depth of such calls. Contexts are passed from thread to thread.
_level: ContextVar[int] = ContextVar("dragoman_thread_level", default=0)


class _Outcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class _Job(NamedTuple):
    future: asyncio.Future[_Outcome]
    context: Context
    call: Callable[[], Any]

    def run(self) -> None:
        outcome = self.context.run(_outcome, self.call)
        try:
            self.future.get_loop().call_soon_threadsafe(_settle, self.future, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            _drop(outcome.value)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function on another thread, with this one's context, and return its result.

    Cancelling doesn't wait for the thread: the function goes on, and its result is dropped.
    """
    future: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
    context = copy_context()
    context.run(_one_further)
    _crew.take(_Job(future, context, lambda: function(*args, **kwargs)))
    value, error = await future
    if error is None:
        returned: T = value
        return returned
    try:
        raise error
    finally:
        del error  # its traceback refers to this frame: avoids a reference cycle


def _one_further() -> None:
    level = _level.get() + 1
    if level > _MAX_DEPTH:
        msg = f"blocking functions called each other through threads {_MAX_DEPTH} times"
        raise RecursionError(msg)
    _level.set(level)


def _outcome(call: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(call())
    except BaseException as error:  # noqa: BLE001 - whatever it is, who waits for it is told
        return _Outcome(error=error)


def _settle(future: asyncio.Future[_Outcome], outcome: _Outcome) -> None:
    if future.done():
        _drop(outcome.value)
    else:
        future.set_result(outcome)


def _drop(value: Any) -> None:
    if inspect.iscoroutine(value):
        value.close()  # or Python complains that nobody awaited it


class _Crew:
    """The threads; as many as are needed at once."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset after a fork: the threads stayed in the parent."""
        self._lock = Lock()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._idle = 0  # idle threads without an assigned job

    def take(self, job: _Job) -> None:
        """Run a job on an idle thread, or on a new one."""
        with self._lock:
            has_idle = self._idle > 0
            self._idle -= has_idle
        if not has_idle:
            Thread(target=self._work, name="dragoman-tool", daemon=True).start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            del job  # a waiting thread must not keep its last job alive
            with self._lock:
                self._idle += 1

    def _next(self) -> _Job | None:
        try:
            return self._jobs.get(timeout=_IDLE_SECONDS)
        except Empty:
            pass
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                return None
        return self._jobs.get()  # a job was assigned at this moment


_crew = _Crew()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crew.forget)
