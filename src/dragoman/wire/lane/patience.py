"""Heads whose conversations leave the lane again and again: they are looked at ever more seldom.

What is odd about a conversation is mostly the client's way, and comes with every request. To find
it out costs a part of what the general path takes, each time in vain.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock

_LONGEST = 7
_MOST = 1024


class Patience:
    """Who has to wait, bounded in number. Safe to share among threads."""

    def __init__(self) -> None:
        self._odd: dict[int, tuple[int, int]] = {}
        """How often in a row they were odd, and how many requests are left out now."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._odd)

    def is_over(self, head: Hashable) -> bool:
        """Whether to leave this request out; each time that it is, the wait gets shorter."""
        if not self._odd or (hashed := hash(head)) not in self._odd:
            return False
        with self._lock:
            times, wait = self._odd.get(hashed, (0, 0))
            if wait:
                self._odd[hashed] = times, wait - 1
        return wait > 0

    def note_odd(self, head: Hashable) -> None:
        """Its conversation has left the lane: the first time costs nothing, then ever more."""
        hashed = hash(head)
        with self._lock:
            if len(self._odd) >= _MOST:
                self._odd.clear()
            times = self._odd.get(hashed, (0, 0))[0]
            self._odd[hashed] = times + 1, min(times, _LONGEST)

    def note_plain(self, head: Hashable) -> None:
        """Its conversation was plain: all is forgotten."""
        if self._odd:
            self._odd.pop(hash(head), None)

    def clear(self) -> None:
        """Forget them all."""
        self._odd.clear()
