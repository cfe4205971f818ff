"""Counts the tokens of the window after a cut."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isawaitable
from math import ceil
from typing import NamedTuple

from dragoman.history.counted_tokens import Cover, Measured, place_of
from dragoman.history.part_tokens import Size
from dragoman.history.reported_tokens import MAX_RATIO, MIN_RATIO
from dragoman.history.tokens import Count, count_measured
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.strategy import Counter, Room
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
