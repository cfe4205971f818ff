"""Serialises writes to a session within a process.

Between processes, versions detect conflicts. A conflict costs a chain a copy of the session, and an
encrypted store another attempt, so it should be rare.
"""

from __future__ import annotations

import asyncio
from threading import Lock

_Key = tuple[int, str]


class _Turn:
    """A lock, and the number of tasks or threads that hold it or wait for it."""

    def __init__(self, *, blocking: bool) -> None:
        self.users = 0
        self.lock = Lock() if blocking else asyncio.Lock()


class Turns:
    """Locks by session; each exists as long as it is in use."""

    def __init__(self, *, blocking: bool) -> None:
        self._blocking = blocking
        self._guard = Lock()
        self._turns: dict[_Key, _Turn] = {}

    def of(self, digest: str) -> _Waiting:
        """The lock of a session: `async with turns.of(digest):`."""
        # Blocking members never suspend, so a thread lock is right, whichever loop is running.
        key = (0 if self._blocking else id(asyncio.get_running_loop()), digest)
        return _Waiting(self, key)

    def joined(self, key: _Key) -> _Turn:
        """The lock of a session, with one more user."""
        with self._guard:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = _Turn(blocking=self._blocking)
            turn.users += 1
            return turn

    def left(self, key: _Key, turn: _Turn) -> None:
        """Releases one use of the lock."""
        with self._guard:
            turn.users -= 1
            if not turn.users:
                del self._turns[key]


class _Waiting:
    """A lock in use. A class, because a generator takes three times as long."""

    __slots__ = ("_key", "_turn", "_turns")

    def __init__(self, turns: Turns, key: _Key) -> None:
        self._turns = turns
        self._key = key

    async def __aenter__(self) -> None:
        turn = self._turn = self._turns.joined(self._key)
        try:
            if isinstance(turn.lock, asyncio.Lock):
                await turn.lock.acquire()
            else:
                turn.lock.acquire()
        except BaseException:  # cancelled while waiting
            self._turns.left(self._key, turn)
            raise

    async def __aexit__(self, *_raised: object) -> None:
        self._turn.lock.release()
        self._turns.left(self._key, self._turn)
