"""The window after a cut, with the positions where a strategy may cut further."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Self

from dragoman.history.tokens import estimate
from dragoman.history.truncation.counting import Tally, around, cost, tallied
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.groups import Group, grouped, is_instruction, rounds
from dragoman.history.truncation.strategy import Room
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Boundary(NamedTuple):
    """A position where the history may be cut."""

    place: int
    gone: int
    """How many more messages a cut here leaves out."""
    weight: int
    """The estimated tokens of the remaining messages."""


class Window:
    """The messages that a cut keeps, and where they could be cut further.

    Weights are estimated tokens; `cost` converts them to actual ones.
    """

    def __init__(self, messages: Sequence[Message], cut: Cut, room: Room, tally: Tally) -> None:
        self.cut = cut
        self.tokens, self.ratio = tally
        self.messages, self.at = cut.rest_of(messages)
        self.groups = grouped(self.messages)
        self._around = around(room)
        self._limit = room.limit
        self._estimate = room.sizes.estimate

    @classmethod
    async def opened(cls, messages: Messages, cut: Cut, room: Room) -> Self:
        """Creates the window, and counts its tokens."""
        return cls(messages, cut, room, await tallied(messages, cut, room))

    def cost(self, weight: int, notes: int = 0) -> int:
        """The tokens of a prompt whose messages and notes have these weights."""
        return cost(weight, notes + self._around, self.ratio)

    # --- where it may be cut

    def turns(self) -> list[Boundary]:
        """The starts of turns after which the rest might fit, and always that of the last turn.

        The position of the current cut comes first, if it is one of them.
        """
        later = (group.start for group in self.groups if group.start > self.at)
        places = (self.at, *later) if self.messages else ()
        nearest = places[bisect_left(places, self._horizon) :] or places[-1:]
        return [self.boundary(place) for place in nearest]

    def rounds(self) -> list[Boundary]:
        """The starts of rounds of tool calls in the last turn, except the first round."""
        if not self.groups or self.groups[-1].stays:
            return []
        places = rounds(self.messages, self.groups[-1])[1:]
        return [self.boundary(place) for place in places if place > self.at]

    def boundary(self, place: int) -> Boundary:
        """The effect of cutting at a position."""
        opening = self._opening(place)
        gone, lost = self._gone, self._lost
        return Boundary(
            place,
            gone[place] - (gone[opening.stop] - gone[opening.start]),
            self._weight - lost[place] + (lost[opening.stop] - lost[opening.start]),
        )

    def first_fit(
        self, boundaries: Iterable[Boundary], ceiling: int, notes: Iterable[Message] | int = ()
    ) -> Boundary | None:
        """The first position at which something is left out and the rest fits, with these notes.

        `notes` may be a weight. Without any, dropping the notes of the current cut is enough.
        """
        extra = notes if isinstance(notes, int) else weight_of(notes)
        for each in boundaries:
            if self.cost(each.weight, extra) <= ceiling and (each.gone or self._drops(extra)):
                return each
        return None

    def _drops(self, extra: int) -> bool:
        return not extra and bool(self.cut.notes)

    # --- cutting it

    def left_out(self, place: int) -> list[Message]:
        """The messages that a cut at this position leaves out."""
        opening = self._opening(place)
        return [
            message
            for index, message in enumerate(self.messages[:place])
            if not self._stays[index] and index not in opening
        ]

    def cut_at(self, place: int, notes: Iterable[Message] = (), also: Collection[int] = ()) -> Cut:
        """The cut at a position; `also`: indexes before it that stay in addition."""
        opening = self._opening(place)
        kept = tuple(
            message.id
            for index, message in enumerate(self.messages[:place])
            if self._stays[index] or index in opening or index in also
        )
        return Cut(
            first=self.messages[place].id,
            kept=kept,
            notes=tuple(notes),
            left_out=self.cut.left_out + place - len(kept),
            since=self.messages[-1].id,
            ratio=self.ratio,
        )

    # --- internals

    def _opening(self, place: int) -> range:
        """The beginning of a turn that is cut in the middle; it stays."""
        group = self._group_at(place)
        if place <= group.start:
            return range(0)
        return range(group.start, next(iter(rounds(self.messages, group)), group.start))

    def _group_at(self, place: int) -> Group:
        return self.groups[bisect_right(self._starts, place) - 1]

    @cached_property
    def _starts(self) -> list[int]:
        return [group.start for group in self.groups]

    @cached_property
    def _stays(self) -> list[bool]:
        return [
            group.stays or is_instruction(message)
            for group in self.groups
            for message in self.messages[group.start : group.stop]
        ]

    @cached_property
    def _gone(self) -> list[int]:
        """For each index, how many messages before it need not stay."""
        return [0, *accumulate(not stays for stays in self._stays)]

    @cached_property
    def _horizon(self) -> int:
        """The index before which cutting is useless, because the rest is already too long.

        Most of a long history is before it, and need not be measured.
        """
        place = self.groups[-1].start if self.groups else 0
        weight = sum(map(self._estimate, self.messages[place:]))
        while place and self.cost(weight) <= self._limit:
            place -= 1
            weight += self._estimate(self.messages[place])
        return place

    @cached_property
    def _weights(self) -> list[int]:
        """The weights of messages that stay or are after the horizon."""
        return [
            self._estimate(message) if stays or index >= self._horizon else 0
            for index, (message, stays) in enumerate(zip(self.messages, self._stays, strict=True))
        ]

    @cached_property
    def _weight(self) -> int:
        return sum(self._weights)

    @cached_property
    def _lost(self) -> list[int]:
        """For each index, the weight of the messages before it that need not stay."""
        pairs = zip(self._weights, self._stays, strict=True)
        return [0, *accumulate(0 if stays else weight for weight, stays in pairs)]


def weight_of(messages: Iterable[Message]) -> int:
    """The estimated tokens of messages."""
    return sum(map(estimate, messages))
