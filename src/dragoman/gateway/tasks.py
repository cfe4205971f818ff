"""Background tasks that outlive the request that started them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Tasks:
    """Tasks by name. Callers limit their number with `len`."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def count(self, prefix: str) -> int:
        """How many running tasks have names that begin so."""
        return sum(name.startswith(prefix) for name in self._tasks)

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a named task."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def cancel(self, name: str) -> None:
        """Cancel the task of a name, if there is one."""
        task = self._tasks.get(name)
        if task is not None:
            task.cancel()

    async def finish(self, seconds: float) -> None:
        """Wait for all tasks; cancel those that take longer."""
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
