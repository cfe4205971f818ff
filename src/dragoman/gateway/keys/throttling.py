"""Slows down guessing: after too many invalid keys within a minute, a client's others are refused.

Valid keys never wait: those who have one may share their address with those who guess.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

_WINDOW = 60.0
_MAX_TRACKED = 10_000  # clients; under attack, the oldest are dropped


class Throttle:
    """Counts failures per client within a minute, in this process."""

    def __init__(self, allowed: int = 20, *, clock: Callable[[], float] = monotonic) -> None:
        self._allowed = allowed
        self._clock = clock
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, who: str) -> float:
        """Seconds until a client may try again; 0: it may try now."""
        since, count = self._failures.get(who, (0.0, 0))
        left = since + _WINDOW - self._clock()
        return left if count >= self._allowed and left > 0 else 0.0

    def note(self, who: str) -> None:
        """Count a failure of a client."""
        now = self._clock()
        since, count = self._failures.pop(who, (now, 0))
        self._failures[who] = (since, count + 1) if now < since + _WINDOW else (now, 1)
        if len(self._failures) > _MAX_TRACKED:
            self._failures.popitem(last=False)
