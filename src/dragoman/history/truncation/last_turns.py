"""`LastTurns`: keeps a fixed number of turns."""

from __future__ import annotations

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import notes
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.strategy import Room
from dragoman.history.truncation.window import Window
from dragoman.model.collection import Messages


class LastTurns(msgspec.Struct, frozen=True):
    """Keeps the last `n` turns, even if more would fit."""

    n: int
    marker: bool = True
    """Whether to add a message that says how many were left out."""

    def __post_init__(self) -> None:
        if self.n < 1:
            msg = "LastTurns must keep at least one turn"
            raise InvalidInputError(msg)

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut before the last turns."""
        window = await Window.opened(messages, cut, room)
        if len(window.groups) <= self.n:
            return cut
        place = max(window.groups[-self.n].start, window.at)
        gone = window.boundary(place).gone
        if not gone:
            return cut
        stated = notes.others(cut.notes, "marker")
        if self.marker:
            stated = (*stated, notes.marker(cut.left_out + gone))
        return window.cut_at(place, stated)
