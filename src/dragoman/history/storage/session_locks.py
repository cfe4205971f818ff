"""Serialises writes to a session within a process.

Between processes, versions detect conflicts. A conflict costs a chain a copy of the session, and an
encrypted store another attempt, so it should be rare.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from threading import Lock

_Key = tuple[int, str]


class _Lock:
    """A lock, and the number of tasks or threads that hold it or wait for it."""

    def __init__(self, *, blocking: bool) -> None:
        self.users = 0
        self.lock = Lock() if blocking else asyncio.Lock()


class SessionLocks:
    """Locks by session; each exists as long as it is in use."""

    def __init__(self, *, blocking: bool) -> None:
        self._blocking = blocking
        self._guard = Lock()
        self._locks: dict[_Key, _Lock] = {}

    def of(self, digest: str) -> _HeldLock:
        """The lock of a session: `async with locks.of(digest):`."""
        # Blocking members never suspend, so a thread lock is right, whichever loop is running.
        key = (0 if self._blocking else id(asyncio.get_running_loop()), digest)
        return _HeldLock(self, key)

    def retain(self, key: _Key) -> _Lock:
        """The lock of a session, with one more user."""
        with self._guard:
            entry = self._locks.get(key)
            if entry is None:
                entry = self._locks[key] = _Lock(blocking=self._blocking)
            entry.users += 1
            return entry

    def release(self, key: _Key, entry: _Lock) -> None:
        """Releases one use of the lock."""
        with self._guard:
            entry.users -= 1
            if not entry.users:
                del self._locks[key]


class _HeldLock(AbstractAsyncContextManager[None]):
    """A lock in use. A class, because a generator takes three times as long."""

    __slots__ = ("_entry", "_key", "_locks")

    def __init__(self, locks: SessionLocks, key: _Key) -> None:
        self._locks = locks
        self._key = key

    async def __aenter__(self) -> None:
        entry = self._entry = self._locks.retain(self._key)
        try:
            if isinstance(entry.lock, asyncio.Lock):
                await entry.lock.acquire()
            else:
                entry.lock.acquire()
        except BaseException:  # cancelled while waiting
            self._locks.release(self._key, entry)
            raise

    async def __aexit__(self, *_raised: object) -> None:
        self._entry.lock.release()
        self._locks.release(self._key, self._entry)
