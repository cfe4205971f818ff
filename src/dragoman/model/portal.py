"""Async code called from blocking code: scripts, notebooks, and inside a running loop.

One event loop per process runs on a thread of its own, started on first need; what waits there
never blocks the caller's own loop's tasks from being made, only the caller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")

_lock = Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, from the background loop; an interrupt cancels it there."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _running_loop())
    try:
        return future.result()
    except BaseException:  # ctrl-C lands here, and must not leave the work going on
        future.cancel()
        raise


def run_inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits; one that does is an error."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    msg = "a blocking call met something that waits for an event loop"
    raise RuntimeError(msg)


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            Thread(target=_loop.run_forever, name="dragoman-loop", daemon=True).start()
        return _loop


def _forget() -> None:
    global _lock, _loop
    _lock, _loop = Lock(), None  # the thread stayed behind in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
