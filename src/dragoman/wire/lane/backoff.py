"""Backoff for requests that repeatedly leave the lane: they are tried less and less often.

What makes a conversation unusual is mostly a habit of the client, and recurs in every request.
Finding out costs part of the general path's time, wasted each time.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock

_MAX_SKIPS = 15
_MAX_ENTRIES = 1024


class Backoff:
    """The backoff state by head, bounded in number. Thread-safe."""

    def __init__(self) -> None:
        self.failures: dict[int, tuple[int, int]] = {}
        """The number of failures in a row, and how many requests to skip now."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.failures)

    def should_skip(self, head: Hashable) -> bool:
        """Whether to skip the lane for this request; each skipped request shortens the wait."""
        if not self.failures or (hashed := hash(head)) not in self.failures:
            return False
        with self._lock:
            times, wait = self.failures.get(hashed, (0, 0))
            if wait:
                self.failures[hashed] = times, wait - 1
        return wait > 0

    def record_failure(self, head: Hashable) -> None:
        """Record that a conversation left the lane: the wait grows from the second time on."""
        hashed = hash(head)
        with self._lock:
            if len(self.failures) >= _MAX_ENTRIES:
                self.failures.clear()
            times = self.failures.get(hashed, (0, 0))[0]
            self.failures[hashed] = times + 1, min(times, _MAX_SKIPS)

    def record_success(self, head: Hashable) -> None:
        """Record that a conversation was plain: resets the backoff."""
        if self.failures:
            self.failures.pop(hash(head), None)

    def clear(self) -> None:
        """Remove all entries."""
        self.failures.clear()
