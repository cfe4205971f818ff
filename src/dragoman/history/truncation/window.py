"""The window after a cut: its tokens, where a strategy may cut further, and why it may not fit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from inspect import isawaitable
from itertools import accumulate
from math import ceil
from typing import NamedTuple, Self

from dragoman.history.part_tokens import Size
from dragoman.history.reported_tokens import MAX_RATIO, MIN_RATIO
from dragoman.history.tokens import Count, Cover, Measured, count_measured, estimate, place_of
from dragoman.history.truncation.cut import (
    Counter,
    Cut,
    Group,
    Room,
    grouped,
    is_instruction,
    rounds,
)
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Tally(NamedTuple):
    """The tokens of a prompt, and the ratio of actual to estimated tokens."""

    total: int
    ratio: float


async def tallied(messages: Messages, cut: Cut, room: Room) -> Tally:
    """The tokens of the window, including tools and system instructions.

    Usage reported after the cut covers exactly this window. Usage reported before it also covers
    messages left out since; then the window is estimated, with the ratio of reported to estimated
    tokens at the time of the cut. (Subtracting the estimates of omitted messages from the old
    report would be wrong: reports also contain, for example, tools that are not known here, and
    tokens that belong to no message would never go away.)
    """
    window = cut.apply(messages)
    if room.count is not None:
        return await _asked(window, room, room.count)
    return tally_of(Measured(window, room.sizes), cut, room)


def tally_of(window: Measured, cut: Cut, room: Room) -> Tally:
    """Like `tallied`, for a measured window, using reports and estimates."""
    cover = cover_of(cut, room, reported_since(cut, window.messages))
    found = counted(window, cut, room, cover)
    if cut.since and not found.anchored:
        return Tally(found.total, cut.ratio)
    slope = window.slope(_beside(room), cover) if found.anchored else None
    return Tally(found.total, _ratio(cut, found, slope))


def cover_of(cut: Cut, room: Room, since: int) -> Cover:
    """Which reports apply to the window after a cut."""
    return Cover(since, cut.ratio, bool(cut.since), room.model)


def counted(window: Measured, cut: Cut, room: Room, cover: Cover) -> Count:
    """The tokens of a window, according to the reports that apply to it."""
    beside = _beside(room)
    found = count_measured(window, now=beside, then=beside, cover=cover)
    if found.anchored or not cut.since:
        return found
    plain = room.sizes.weight_of(cut.notes) + beside.total
    total = cost(max(found.total - plain, 0), plain, cut.ratio)
    return Count(total, estimated=total, ratio=cut.ratio)


def _beside(room: Room) -> Size:
    return room.sizes.beside(room.tools, room.system)


def reported_since(cut: Cut, window: Sequence[Message]) -> int:
    """The index in a window from which on reports apply to it."""
    last = place_of(cut.since, window) if cut.since else None
    return 0 if last is None else last + 1


def _ratio(cut: Cut, found: Count, slope: float | None) -> float:
    """Actual tokens per estimated token: from the growth of reports, or from a single one."""
    if slope is not None:
        return slope
    was_measured = cut.since and not MIN_RATIO <= cut.ratio <= MAX_RATIO
    return cut.ratio if was_measured else found.ratio


def around(room: Room) -> int:
    """The estimated tokens of what is sent besides the messages."""
    return _beside(room).total


def scaled(estimated: int, ratio: float) -> int:
    """Converts estimated to actual tokens."""
    return ceil(estimated * ratio)


def cost(weight: int, plain: int, ratio: float) -> int:
    """The tokens of messages, and of the plain text next to them: tools, system and notes.

    The growth of reports tells what messages of this conversation cost, including media that can't
    be inspected. It tells less about plain text, so that uses a ratio within the usual range.
    """
    usual = usual_ratio(ratio)
    if usual == ratio:
        return scaled(weight + plain, ratio)
    return scaled(weight, ratio) + scaled(plain, usual)


def usual_ratio(ratio: float) -> float:
    """The ratio, limited to the usual range for text."""
    return min(max(ratio, MIN_RATIO), MAX_RATIO)


async def _asked(window: Messages, room: Room, counter: Counter) -> Tally:
    answer = counter(window)
    total = (await answer if isawaitable(answer) else answer) + around(room)
    estimated = room.sizes.weight_of(window) + around(room)
    return Tally(total, total / estimated if estimated else 1.0)


# --- the window


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


# --- why a history can't be made to fit


async def shortage(messages: Messages, smallest: Cut, room: Room) -> str:
    """The size of the shortest window, its components, and advice; without content."""
    window = await Window.opened(messages, smallest, room)
    shares = ", ".join(f"{tokens} of {what}" for what, tokens in _shares(window, room) if tokens)
    return (
        f"the shortest valid window takes {window.tokens} tokens, but there is room for only"
        f" {room.limit}. Estimated: {shares or 'nothing'}. {_advice(window)}"
    )


def _shares(window: Window, room: Room) -> Iterator[tuple[str, int]]:
    """The estimated tokens of each component of a window."""
    told = [message for message in window.messages if is_instruction(message)]
    weights = {"tools and system prompt": around(room), "instructions": weight_of(told)}
    for group in window.groups:
        kind = "pinned turns" if group.stays else "the last turn"
        said = window.messages[group.start : group.stop]
        spoken = weight_of(message for message in said if not is_instruction(message))
        weights[kind] = weights.get(kind, 0) + spoken
    for kind, weight in weights.items():
        yield kind, scaled(weight, window.ratio)


def _advice(window: Window) -> str:
    advice = "Use a larger context window, reserve less for the response, or shorten what must stay"
    if any(group.stays for group in window.groups):
        advice += "; unpin messages"
    if window.rounds():
        advice += "; FitWindow(rounds=True) leaves out the oldest tool calls of the last turn"
    return f"{advice}."
