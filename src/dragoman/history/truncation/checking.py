"""Validates cuts, so that no strategy can break a history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from dragoman.errors import InvalidInputError
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.groups import Group, grouped, is_instruction, rounds
from dragoman.model.messages import Message


def check(made: Cut, before: Cut, messages: Sequence[Message]) -> None:
    """Raises unless the cut moves forward and keeps whole turns and everything that must stay."""
    left, at = before.rest_of(messages)
    place = made.place_in(left)
    if place is None or place < at:
        _refuse("it moves the cut back, or to an unknown message")
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
        _refuse("it splits a turn")


def _shortened(group: Group, left: list[Message], said: list[int], place: int) -> list[int]:
    """The messages of a turn that may remain: its beginning, and whole rounds of tool calls."""
    starts = rounds(left, group)
    if place not in starts:
        return []
    return [index for index in said if index < starts[0] or index >= place]


def _refuse(why: str) -> NoReturn:
    msg = f"the truncation strategy returned an invalid cut: {why}"
    raise InvalidInputError(msg)
