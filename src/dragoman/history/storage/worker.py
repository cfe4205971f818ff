"""Where the calls of a store that blocks run: on a thread of its own, or in the caller's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from dragoman.errors import InvalidInputError

Durability = Literal["process", "power"]
T = TypeVar("T")


def expect_durability(durability: str) -> None:
    """Raise unless it is one that there is."""
    if durability not in {"process", "power"}:
        msg = "durability is 'process' (survives kill -9) or 'power' (survives a power cut)"
        raise InvalidInputError(msg)


class Worker:
    """One thread, while the store is open; none where the callers block."""

    def __init__(self, name: str, *, is_blocking: bool) -> None:
        self.is_blocking = is_blocking
        self._name = name
        self._thread: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin; calling it again does nothing."""
        if not self.is_blocking and self._thread is None:
            self._thread = ThreadPoolExecutor(1, self._name)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function returns."""
        if self._thread is None:
            return function(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)

    async def stop(self, last: Callable[[], None]) -> None:
        """Do one last thing, and end."""
        thread = self._thread
        try:
            await self.run(last)
        finally:  # cancelled or not: what was queued is done, then the thread ends
            self._thread = None
            if thread is not None:
                thread.shutdown(wait=False)
