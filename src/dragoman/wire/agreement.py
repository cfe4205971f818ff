"""What the wire said of a setting holds only while nobody has changed the setting.

A decoder that can't read a field, or finds a thing said twice, keeps it in the overlay: a
`tool_choice` of an unknown kind, `max_tokens` beside `max_completion_tokens`. Such a field stands
for what the model says in its place, mostly nothing. A dialect lists these fields with the place
in the model that each bears on (`Bearings`). While that place says what it said when the body was
read, the field goes back as it came; once it says something else, the field is left out, and the
edit counts. What the place said is noted beside the overlay, unless it said nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping

T = TypeVar("T", bound=msgspec.Struct)
Bearings = Mapping[str, Any]
"""By a field of the wire: the path of the place in the model (`sampling.stop`; the value itself
where it is empty), or the bearings of the fields inside it."""


class Beside(str):
    """A place whose field was read: what is left of the field stands beside it.

    It stays where it is while the place says anything at all; if the place said nothing, the field
    is one that nobody could read, and goes as any other.
    """

    __slots__ = ()


PARTS = "parts of "
"""Begins the place of all parts of a kind in a message: `parts of Thinking`."""
_NOTHING: tuple[Any, ...] = (None, (), EMPTY)
_DIGEST = 16


@cache
def notes_of(dialect: str) -> str:
    """Where it is kept what the places said: by their path."""
    return f"{dialect} meant"


def with_notes(value: T, dialect: str, bearings: Bearings) -> T:
    """A value that was just read, with notes of what its overlay stands for."""
    given: Mapping[str, Any] = getattr(value, "extras", EMPTY)
    found = given.get(dialect)
    if not isinstance(found, Mapping) or bearings.keys().isdisjoint(found):
        return value
    notes: dict[str, Any] = {}
    for place in _places(found, bearings):
        said = _digest(value, place)
        if said is not None:
            notes[place] = said
    if not notes:
        return value
    extras = freeze_mapping({**given, notes_of(dialect): notes}, "the wire")
    return msgspec.structs.replace(value, extras=extras)


def agreed(value: Any, dialect: str, bearings: Bearings) -> Mapping[str, Any]:
    """The extras of a value, without what stands for something that has been changed since."""
    extras: Mapping[str, Any] = value.extras
    found = extras.get(dialect)
    if not isinstance(found, Mapping) or bearings.keys().isdisjoint(found):
        return extras
    noted = extras.get(notes_of(dialect))
    notes: Mapping[str, Any] = noted if isinstance(noted, Mapping) else EMPTY
    edited = {
        place
        for place in _places(found, bearings)
        if not _agrees(place, _digest(value, place), notes.get(place))
    }
    if not edited:
        return extras
    return FrozenDict({**extras, dialect: _without(found, bearings, edited)})


def _agrees(place: str, now: Any, then: Any) -> bool:
    if isinstance(place, Beside) and now is not None and then is not None:
        return True
    return bool(now == then)


def _places(found: Mapping[str, Any], bearings: Bearings) -> Iterator[str]:
    """The places that the fields of an overlay bear on."""
    for key, place in bearings.items():
        if key not in found:
            continue
        if isinstance(place, str):
            yield place
        elif isinstance(inner := found[key], Mapping):
            yield from _places(inner, place)


def _without(found: Mapping[str, Any], bearings: Bearings, edited: set[str]) -> FrozenDict:
    left: dict[str, Any] = {}
    for key, value in found.items():
        place = bearings.get(key)
        if place is None or (isinstance(place, str) and place not in edited):
            left[key] = value
        elif not isinstance(place, str):
            inner = _without(value, place, edited) if isinstance(value, Mapping) else value
            if inner or not value:
                left[key] = inner
    return FrozenDict(left)


def _digest(value: Any, place: str) -> Any:
    """What a place says, in short; None where it says nothing."""
    if place.startswith(PARTS):
        kind = place.removeprefix(PARTS)
        value = tuple(part for part in value.parts if type(part).__name__ == kind)
    else:
        for name in place.split(".") if place else ():
            value = getattr(value, name, None)
    if any(value is nothing or value == nothing for nothing in _NOTHING):
        return None
    if isinstance(value, msgspec.Struct) and "extras" in value.__struct_fields__ and not place:
        value = msgspec.structs.replace(value, extras=EMPTY)  # the notes are in there
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:_DIGEST]
