"""Guessing is slowed down: who presented too many wrong keys within a minute has to wait."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

_WINDOW = 60.0
_MAX_TRACKED = 10_000  # who is remembered; a process under attack forgets the oldest


class Throttle:
    """Counts failures by who caused them, in this process, for a minute."""

    def __init__(self, allowed: int = 20, *, clock: Callable[[], float] = monotonic) -> None:
        self._allowed = allowed
        self._clock = clock
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, who: str) -> float:
        """The seconds until they may try again; 0 where they may now."""
        since, count = self._failures.get(who, (0.0, 0))
        left = since + _WINDOW - self._clock()
        return left if count >= self._allowed and left > 0 else 0.0

    def note(self, who: str) -> None:
        """They failed once more."""
        now = self._clock()
        since, count = self._failures.pop(who, (now, 0))
        self._failures[who] = (since, count + 1) if now < since + _WINDOW else (now, 1)
        if len(self._failures) > _MAX_TRACKED:
            self._failures.popitem(last=False)
