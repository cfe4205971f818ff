"""One write at a time to a session, within a process: members get writes in the same order.

Between processes the versions see to that: a member that got them in another order conflicts, and
is mended. That costs a copy of the session, so it should be rare.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from threading import Lock

_Key = tuple[int, str]


class _Turn:
    """A lock, and how many wait for it or hold it."""

    def __init__(self, *, blocking: bool) -> None:
        self.users = 0
        self.lock = Lock() if blocking else asyncio.Lock()


class Turns:
    """Locks by session; each lives as long as somebody needs it."""

    def __init__(self, *, blocking: bool) -> None:
        self._blocking = blocking
        self._guard = Lock()
        self._turns: dict[_Key, _Turn] = {}

    @asynccontextmanager
    async def of(self, digest: str) -> AsyncGenerator[None]:
        """Wait for the session's turn, and hold it."""
        # Blocking members never suspend: a thread's lock is right, and the loop does not matter.
        key = (0 if self._blocking else id(asyncio.get_running_loop()), digest)
        with self._guard:
            turn = self._turns.setdefault(key, _Turn(blocking=self._blocking))
            turn.users += 1
        try:
            if isinstance(turn.lock, asyncio.Lock):
                async with turn.lock:
                    yield
            else:
                with turn.lock:
                    yield
        finally:
            with self._guard:
                turn.users -= 1
                if not turn.users:
                    del self._turns[key]
