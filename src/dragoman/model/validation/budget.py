"""Limits the work that validation may take: an untrusted schema of a few lines can take years.

Work is counted in steps, not in seconds, so the outcome is the same on every machine.
"""

from __future__ import annotations

_UNIT = 64
"""Bytes, characters or entries that are scanned, copied or written in about one step."""


class TooManyStepsError(Exception):
    """The budget is used up. Internal: the budget's owner converts it to its own result."""


class Budget:
    """The number of steps left; a step takes a microsecond or two."""

    __slots__ = ("_left", "_steps")

    def __init__(self, steps: int = 500_000) -> None:
        self._steps = self._left = steps

    @property
    def spent(self) -> int:
        """The number of steps taken."""
        return self._steps - self._left

    def spend(self, steps: int = 1) -> None:
        """Takes steps; raises if not enough are left."""
        self._left -= steps
        if self._left < 0:
            raise TooManyStepsError

    def spend_on(self, size: int) -> None:
        """Takes the steps for one pass over this many characters or entries."""
        if size >= _UNIT:
            self.spend(size // _UNIT)
