"""`Chained`: applies several strategies in order."""

from __future__ import annotations

from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.strategy import Room, Strategy
from dragoman.model.collection import Messages


class Chained:
    """Applies strategies in order, each to the result of the previous one.

    >>> Chained(LastTurns(20), FitWindow())  # doctest: +SKIP
    """

    __slots__ = ("strategies",)

    def __init__(self, *strategies: Strategy) -> None:
        self.strategies = strategies

    def __repr__(self) -> str:
        return f"Chained({', '.join(type(each).__name__ for each in self.strategies)})"

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut that the last strategy makes."""
        for strategy in self.strategies:
            cut = await strategy(messages, cut, room)
        return cut
