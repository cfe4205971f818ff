"""Whether a cut may be made: no strategy can break a history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from dragoman.errors import InvalidInputError
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.groups import Group, grouped, is_instruction, rounds
from dragoman.model.messages import Message


def check(made: Cut, before: Cut, messages: Sequence[Message]) -> None:
    """Raise unless the cut moves forward and leaves whole turns, and all that has to stay."""
    left, at = before.rest_of(messages)
    place = made.place_in(left)
    if place is None or place < at:
        _refuse("it moves the cut back, or nowhere")
    kept = frozenset(made.kept)
    is_in = [index >= place or message.id in kept for index, message in enumerate(left)]
    for group in grouped(left):
        _check_group(group, left, is_in, place)


def _check_group(group: Group, left: list[Message], is_in: list[bool], place: int) -> None:
    own = range(group.start, group.stop)
    said = [index for index in own if not is_instruction(left[index])]
    inside = [index for index in said if is_in[index]]
    if any(is_instruction(left[index]) and not is_in[index] for index in own):
        _refuse("it leaves out instructions")
    if len(inside) == len(said):
        return
    if group.stays:
        _refuse("it leaves out a pinned turn")
    if inside and inside != _shortened(group, left, said, place):
        _refuse("it tears a turn apart")


def _shortened(group: Group, left: list[Message], said: list[int], place: int) -> list[int]:
    """What of a turn may be left: how it began, and whole rounds of tool calls."""
    starts = rounds(left, group)
    if place not in starts:
        return []
    return [index for index in said if index < starts[0] or index >= place]


def _refuse(why: str) -> NoReturn:
    msg = f"the truncation strategy can't do this: {why}"
    raise InvalidInputError(msg)
