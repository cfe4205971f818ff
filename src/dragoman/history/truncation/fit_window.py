"""`FitWindow`, the default strategy: leaves out the oldest turns until the rest fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import notes
from dragoman.history.truncation.counting import tallied
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.strategy import Room
from dragoman.history.truncation.window import Boundary, Window, weight_of
from dragoman.model.collection import Messages
from dragoman.model.messages import Message

_MAX_ATTEMPTS = 16


class FitWindow(msgspec.Struct, frozen=True):
    """Leaves out the oldest turns until the rest fits.

    It leaves out more than necessary, so that the cut does not move with every turn: `slack` is the
    fraction of the limit to free up, if possible. If the last turn alone is too long and `rounds`
    is set, its oldest rounds of tool calls are left out too.
    """

    slack: float = 0.2
    marker: bool = True
    """Whether to add a message that says how many were left out."""
    rounds: bool = False

    def __post_init__(self) -> None:
        check_slack(self.slack)

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut after which the window fits, or is as short as possible."""
        return await self.because("", messages, cut, room)

    async def because(self, reason: str, messages: Messages, cut: Cut, room: Room) -> Cut:
        """Like a call; `reason` goes into the marker's metadata: why another strategy failed."""
        window = await Window.opened(messages, cut, room)
        if window.tokens <= room.limit:
            return cut
        if room.count is None:
            found = self._choice(window, room.limit, reason)
            return found.cut if found else smallest(window, rounds=self.rounds)
        return await self._counted(window, room, reason)

    async def _counted(self, window: Window, room: Room, reason: str) -> Cut:
        """Like the estimate, but checks each choice with the configured counter."""
        messages = Messages.wrapping(window.messages)
        for _ in range(_MAX_ATTEMPTS):
            found = self._choice(window, room.limit, reason)
            if found is None:
                break
            tokens, _ = await tallied(messages, found.cut, room)
            if tokens <= room.limit:
                return found.cut
            window.ratio *= tokens / max(found.tokens, 1)  # the rest costs more than the average
        return smallest(window, rounds=self.rounds)

    def _choice(self, window: Window, limit: int, reason: str) -> _Choice | None:
        stated = _Notes(window.cut, self.marker, reason)
        most = stated.notes(len(window.messages))
        for boundaries, ceiling, is_stated in self._attempts(window, limit):
            found = window.first_fit(boundaries, ceiling, most if is_stated else ())
            if found:
                made = stated.notes(found.gone) if is_stated else ()
                tokens = window.cost(found.weight, weight_of(made))
                return _Choice(window.cut_at(found.place, made), tokens)
        return None

    def _attempts(self, window: Window, limit: int) -> Iterator[tuple[list[Boundary], int, bool]]:
        """Where to cut, the token limit, and whether to add notes; best first."""
        target = int(limit * (1 - self.slack))
        for boundaries in (window.turns(), window.rounds() if self.rounds else []):
            yield boundaries, target, True
            yield boundaries, limit, True
            yield boundaries, limit, False


class _Choice(NamedTuple):
    cut: Cut
    tokens: int


class _Notes(NamedTuple):
    """Builds the notes; keeps an existing summary."""

    cut: Cut
    has_marker: bool
    reason: str

    def notes(self, gone: int) -> tuple[Message, ...]:
        old = notes.others(self.cut.notes, "marker")
        count = self.cut.left_out + gone
        return (*old, notes.marker(count, self.reason)) if self.has_marker else old


def smallest(window: Window, *, rounds: bool = False) -> Cut:
    """The shortest possible cut, without notes."""
    boundaries = [*window.turns(), *(window.rounds() if rounds else [])]
    if not boundaries or not (boundaries[-1].gone or window.cut.notes):
        return window.cut
    return window.cut_at(boundaries[-1].place)


def check_slack(slack: float) -> None:
    """Raises unless slack is a valid fraction."""
    if not 0 <= slack < 1:
        msg = "slack must be a fraction of the limit: at least 0 and less than 1"
        raise InvalidInputError(msg)
