"""Conversations of which only the end is plain: everything before it is part of the head.

Like instructions, the beginning is translated once by the general path, and then found by its
bytes. So one unusual message doesn't keep all that follow it out of the lane.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from dragoman.wire.lane.plain import Json, Lane, Marks, NotPlain, Turns
from dragoman.wire.lane.survey import Survey, surveyed

Odd = NotPlain | ValidationError
_TRIES = 4
"""After this many unusual messages in a row the search ends: the plain end would be short."""
_PLACE = re.compile(r"\$\[(\d+)\]")
_elements = Decoder(list[Raw]).decode


class _Told(Struct, gc=False):
    """The role and type of an item."""

    role: str | UnsetType = UNSET
    type: str | UnsetType = UNSET


_told = Decoder(_Told).decode
_OF_OTHERS = ("user", "tool", "system", "developer")


class Ending(NamedTuple):
    """The plain end of a conversation."""

    beginning: Sequence[Raw]
    """The items before it."""
    raw: bytes
    turns: Turns
    marks: Marks
    survey: Survey


def plain_ending(raw: Json, lane: Lane, odd: Odd) -> Ending:
    """The plain end of a conversation, after the unusual messages; raises if there is none.

    It begins with a user message, or with the first item of a model turn.
    """
    items = _elements(raw)
    first = 0
    for _ in range(_TRIES):
        first = _next_opening(items, _number(odd, items, first, lane) + 1)
        if _is_odd(items[first], lane):  # no need to read what follows
            odd = NotPlain()
            odd.number = 0
            continue
        ending = b"[" + b",".join(items[first:]) + b"]"
        try:
            turns, marks = lane.read(ending)
            survey = surveyed(turns)
        except (NotPlain, ValidationError) as another:
            odd = another
            continue
        if lane.has_places and survey[1]:
            break  # call ids depend on the messages before
        return Ending(items[:first], ending, turns, marks, survey)
    raise NotPlain


def _number(odd: Odd, items: Sequence[Raw], first: int, lane: Lane) -> int:
    """The index of the unusual item, or of one near it; counted from `first`."""
    if isinstance(odd, NotPlain):
        return first + odd.number if odd.number is not None else _sought(items, first, lane)
    found = _PLACE.search(str(odd))
    return first + int(found[1]) if found else first


def _sought(items: Sequence[Raw], first: int, lane: Lane) -> int:
    for number in range(first, len(items)):
        try:
            lane.read(b"[" + items[number] + b"]")
        except (NotPlain, ValidationError):
            return number
    return first  # it is unusual only in context


def _is_odd(item: Raw, lane: Lane) -> bool:
    try:
        lane.read(b"[" + item + b"]")
    except ValidationError:
        return True
    except NotPlain:
        pass  # perhaps only because it is alone
    return False


def _next_opening(items: Sequence[Raw], first: int) -> int:
    """The next item that begins a message, whatever precedes it."""
    before = _told(items[first - 1]) if first <= len(items) else None
    for number in range(first, len(items)):
        item = _told(items[number])
        if item.role == "user" or (_is_of_model(item) and not _is_of_model(before)):
            return number
        before = item
    raise NotPlain


def _is_of_model(item: _Told | None) -> bool:
    """Whether an item may be part of a model turn of several items."""
    if item is None or item.role in _OF_OTHERS:
        return False
    return item.type != "function_call_output"
