"""Serialises saves across tasks and threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import Lock

# The saves in progress in this context: a hook may save the history that is being saved, and must
# not wait for itself. Context variables are passed on to the tasks and threads that run hooks.
_held: ContextVar[frozenset[int]] = ContextVar("dragoman_saving", default=frozenset())


class SaveLock:
    """A lock for the saves of one history, reentrant within hooks."""

    def __init__(self) -> None:
        self.inline = False
        """Whether callers are threads, and nothing can be awaited."""
        self._thread_lock = Lock()
        self._task_lock = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Waits for the lock and holds it."""
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
