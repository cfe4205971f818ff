"""Drops an overlay field once the model value that it stands for has been edited.

A decoder that can't read a field, or finds two fields for one setting, keeps the field in the
overlay: a `tool_choice` of an unknown kind, `max_tokens` beside `max_completion_tokens`. Such a
field stands for a value in the model, usually an empty one. A dialect lists these fields with the
model path that each stands for (`Places`). While the value at that path is what it was when the
body was decoded, the field is sent back as it came; once it differs, the field is left out, and the
edit wins. A digest of the value is stored in the overlay, unless the value is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.jsontext import dumps_sorted
from dragoman.model.value import shallow_copy
from dragoman.wire.digests import sha256
from dragoman.wire.overlay import current, fields_of, note_of, with_note

T = TypeVar("T", bound=msgspec.Struct)
Places = Mapping[str, Any]
"""By wire field: the path in the model (`sampling.stop`; empty for the value itself), or the
`Places` of the fields inside it."""


class PartlyRead(str):
    """A path whose value was read from the field itself; the overlay holds the rest of the field.

    The rest is kept while the path has any value; if it had none, the field is one that could not
    be read, and is treated like any other.
    """

    __slots__ = ()


PARTS = "parts of "
"""Prefix of a path to all parts of one kind in a message: `parts of Thinking`."""
_SAID = "said"
_NOTHING: tuple[Any, ...] = (None, (), EMPTY)
_DIGEST = 16


def with_digests(value: T, dialect: str, places: Places) -> T:
    """A value that was just decoded, with digests of what its overlay fields stand for."""
    extras: Mapping[str, Any] = getattr(value, "extras", EMPTY)
    fields = fields_of(extras, dialect)
    if places.keys().isdisjoint(fields):
        return value
    said = {place: _digest(value, place) for place in _places_of(fields, places)}
    said = {place: digest for place, digest in said.items() if digest is not None}
    if not said:
        return value
    made: T = shallow_copy(value)
    msgspec.structs.force_setattr(made, "extras", with_note(extras, dialect, _SAID, said))
    return made


def without_edited(value: Any, dialect: str, places: Places) -> Mapping[str, Any]:
    """The extras of a value, without overlay fields whose model value has been edited."""
    extras: Mapping[str, Any] = value.extras
    fields = fields_of(extras, dialect)
    if places.keys().isdisjoint(fields):
        return extras
    noted = note_of(extras, dialect, _SAID)
    said: Mapping[str, Any] = noted if isinstance(noted, Mapping) else EMPTY
    edited = {
        place
        for place in _places_of(fields, places)
        if not _is_unedited(place, _digest(value, place), said.get(place))
    }
    if not edited:
        return extras
    return FrozenDict({**current(extras, dialect), dialect: _without(fields, places, edited)})


def _is_unedited(place: str, now: Any, then: Any) -> bool:
    if isinstance(place, PartlyRead) and now is not None and then is not None:
        return True
    return bool(now == then)


def _places_of(fields: Mapping[str, Any], places: Places) -> Iterator[str]:
    """The model paths that the fields of an overlay stand for."""
    for key, place in places.items():
        if key not in fields:
            continue
        if isinstance(place, str):
            yield place
        elif isinstance(inner := fields[key], Mapping):
            yield from _places_of(inner, place)


def _without(fields: Mapping[str, Any], places: Places, edited: set[str]) -> FrozenDict:
    left: dict[str, Any] = {}
    for key, value in fields.items():
        place = places.get(key)
        if place is None or (isinstance(place, str) and place not in edited):
            left[key] = value
        elif not isinstance(place, str):
            inner = _without(value, place, edited) if isinstance(value, Mapping) else value
            if inner or not value:
                left[key] = inner
    return FrozenDict(left)


def _digest(value: Any, place: str) -> Any:
    """A digest of the value at a path; None if it is empty."""
    if place.startswith(PARTS):
        kind = place.removeprefix(PARTS)
        value = tuple(part for part in value.parts if type(part).__name__ == kind)
    else:
        for name in place.split(".") if place else ():
            value = getattr(value, name, None)
    if any(value is nothing or value == nothing for nothing in _NOTHING):
        return None
    if isinstance(value, msgspec.Struct) and "extras" in value.__struct_fields__ and not place:
        value = msgspec.structs.replace(value, extras=EMPTY)  # the digests are stored there
    return sha256(dumps_sorted(value)).hexdigest()[:_DIGEST]
