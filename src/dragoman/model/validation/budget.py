"""How much work a schema may cause: schemas come from strangers, and a few lines can ask for years.

Work is counted in steps, never in seconds: the same schema takes the same steps on every machine.
"""

from __future__ import annotations

_UNIT = 64
"""Bytes, characters or entries that are looked through, copied or written in about one step."""


class TooManyStepsError(Exception):
    """The budget is used up. Internal: whoever made the budget turns it into its own answer."""


class Budget:
    """How much work may still be done; a step takes a microsecond or two."""

    __slots__ = ("_left", "_steps")

    def __init__(self, steps: int = 500_000) -> None:
        self._steps = self._left = steps

    @property
    def spent(self) -> int:
        """The steps that were taken."""
        return self._steps - self._left

    def spend(self, steps: int = 1) -> None:
        """Take these steps, or raise where they are not left."""
        self._left -= steps
        if self._left < 0:
            raise TooManyStepsError

    def spend_on(self, size: int) -> None:
        """Take the steps for going once over that many characters or entries."""
        if size >= _UNIT:
            self.spend(size // _UNIT)
