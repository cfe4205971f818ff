"""Cancelling a task at any suspension, and finding threads that remain."""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Coroutine, Generator
from typing import Any

_LOOP = "dragoman-loop"


@types.coroutine
def cancelled_at(work: Coroutine[Any, Any, Any], most: int) -> Generator[Any, Any, int]:
    """Run, and cancel the task at that suspension; returns how many there were."""
    number, value, error = 0, None, None
    while True:
        try:
            waiting = work.send(value) if error is None else work.throw(error)
        except StopIteration:
            return number
        number += 1
        if number == most:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        value = error = None
        try:
            value = yield waiting
        except BaseException as caught:  # noqa: BLE001 - the work itself decides
            error = caught


class ThreadWatch:
    """The threads started since it was created.

    Threads of earlier tests are ignored: they may wait for more work.
    """

    def __init__(self) -> None:
        self._before = frozenset(threading.enumerate())

    @property
    def started(self) -> list[str]:
        """Our threads that still run, except the loop that all blocking calls share."""
        new = {thread.name for thread in set(threading.enumerate()) - self._before}
        return sorted(name for name in new if name.startswith("dragoman") and name != _LOOP)
