"""Cancelling a task wherever it waits, and the threads that are left of it."""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Coroutine, Generator
from typing import Any

_LOOP = "dragoman-loop"


@types.coroutine
def cancelled_at(work: Coroutine[Any, Any, Any], most: int) -> Generator[Any, Any, int]:
    """Run, and cancel the task at the suspension of that number; how many there were."""
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
    """The threads that were started since it was made.

    Those that ran before are others' business: what earlier tests used may wait for more work.
    """

    def __init__(self) -> None:
        self._before = frozenset(threading.enumerate())

    @property
    def started(self) -> list[str]:
        """The names of ours that still run; the loop that all blocking calls share may stay."""
        new = {thread.name for thread in set(threading.enumerate()) - self._before}
        return sorted(name for name in new if name.startswith("dragoman") and name != _LOOP)
