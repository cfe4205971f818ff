"""Cancelling a task wherever it waits."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any


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
