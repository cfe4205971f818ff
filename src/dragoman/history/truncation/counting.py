"""How many tokens the window under a cut takes."""

from __future__ import annotations

from inspect import isawaitable
from math import ceil
from typing import NamedTuple

from dragoman.history.tokens import count, estimate
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.strategy import Counter, Room
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Tally(NamedTuple):
    """The tokens of a prompt, and how many of them there are for each estimated one."""

    total: int
    ratio: float


async def tallied(messages: Messages, cut: Cut, room: Room) -> Tally:
    """The tokens of the window, tools and system included.

    What was reported after the cut was made covers just this window. What was reported before
    covers what has been left out since: then the window is estimated, in the proportion between
    report and estimate that was found when the cut was made. (Taking estimates of what is gone
    off the old report would be the same, if reports held nothing else. But they do, such as tools
    that were not told here; and what can't be put down to a message would never go again.)
    """
    window = cut.apply(messages)
    if room.count is not None:
        return await _asked(window, room, room.count)
    found = count(_reported_since(cut, window), tools=room.tools, system=room.system)
    if found.anchored or not cut.since:
        return Tally(found.total, found.ratio)
    return Tally(scaled(found.total, cut.ratio), cut.ratio)


def around(room: Room) -> int:
    """The estimated tokens of what is sent besides the messages."""
    return count((), tools=room.tools, system=room.system).total


def scaled(estimated: int, ratio: float) -> int:
    """The tokens that an estimate stands for."""
    return ceil(estimated * ratio)


async def _asked(window: Messages, room: Room, counter: Counter) -> Tally:
    answer = counter(window)
    total = (await answer if isawaitable(answer) else answer) + around(room)
    estimated = sum(map(estimate, window)) + around(room)
    return Tally(total, total / estimated if estimated else 1.0)


def _reported_since(cut: Cut, window: Messages) -> Messages:
    """The window, without what was reported of an earlier one."""
    if not cut.since:
        return window
    places = range(len(window) - 1, -1, -1)
    last = next((place for place in places if window[place].id == cut.since), -1)
    return Messages.wrapping((*map(_unreported, window[: last + 1]), *window[last + 1 :]))


def _unreported(message: Message) -> Message:
    if message.usage is None and "usage" not in message.metadata:  # where seed 001 has it
        return message
    return message.without_metadata("usage").replace(usage=None)
