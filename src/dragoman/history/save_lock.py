"""One save at a time, whichever tasks or threads ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import Lock

# What is being saved by whoever asks: a hook may save what is being saved, and must not wait for
# itself. Contexts go along into the tasks and threads that hooks run in.
_held: ContextVar[frozenset[int]] = ContextVar("dragoman_saving", default=frozenset())


class Turns:
    """The turns that the saves of one history take."""

    def __init__(self) -> None:
        self.inline = False
        """Whether those who save are threads, and nothing can be awaited."""
        self._thread_lock = Lock()
        self._task_lock = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[None]:
        """Wait for a turn, and hold it."""
        if id(self) in _held.get():
            yield
            return
        token = _held.set(_held.get() | {id(self)})
        try:
            if self.inline:
                with self._thread_lock:
                    yield
            else:
                async with self._task_lock:
                    yield
        finally:
            _held.reset(token)
