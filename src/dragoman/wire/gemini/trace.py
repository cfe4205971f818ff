"""How a wire object was written, beyond what it said: kept in `extras`, restored on the way back.

Besides the fields that the model does not understand, an overlay holds notes under one key that
no wire uses (`$wire`). They name fields by their path inside the object (`generationConfig.topK`):

- `snake`: names that were spelled in snake_case. The API takes both spellings, and clients mix
  them; decoders work on camelCase.
- `single`: lists that were written as their only item, which the API takes as well.
- `absent`: fields that our encoder writes and this object did not have, with what we write.
- `instead`: fields that we would write otherwise (`40`, not `40.0`): our value, and the wire's.
- `lists`: as `instead`, for lists: a digest of ours, which would be too much to keep.

The last three hold only as long as our encoder still writes that value: whoever changes the
canonical field sees the change on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeGuard

from dragoman.errors import WireError
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Origin
from dragoman.wire.overlay import difference, overlay, reshaped
from dragoman.wire.tolerance import shaped_extras

NAME = "gemini"
ORIGIN = Origin(dialect=NAME)
"""Of parts that carry opaque state in a request: which model made them is not known there."""

SIGNATURE = "thoughtSignature"
"""May stand on any part, and belongs to the very part it came on (W83)."""

SENTINEL = "skip_thought_signature_validator"
"""Stands for a signature where there is none that would pass (W84)."""
_STAND_INS = frozenset({
    SENTINEL,
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",  # by clients whose signatures are bytes
    "context_engineering_is_the_way_to_go",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
})  # fmt: skip

_NOTES = "$wire"
_PAIR = 2
_SCALARS = frozenset({str, int, float, bool})


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value off the wire is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a value off the wire is a JSON array."""
    return isinstance(value, list)


def want_object(value: object, path: str) -> dict[str, Any]:
    """A value that has to be a JSON object; the error names the place, not the value."""
    if is_object(value):
        return value
    msg = f"expected an object at {path}, found {type(value).__name__}"
    raise WireError(msg, dialect=NAME, path=path)


def want_array(value: object, path: str) -> list[Any]:
    """As `want_object`, for an array."""
    if is_array(value):
        return value
    msg = f"expected an array at {path}, found {type(value).__name__}"
    raise WireError(msg, dialect=NAME, path=path)


def snake_names(*names: str) -> dict[str, str]:
    """The snake_case spellings of these names, and the names: `{"file_uri": "fileUri"}`."""
    spelled = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): name for name in names}
    return {snake: name for snake, name in spelled.items() if snake != name}


def spelled(bearings: Mapping[str, Any]) -> dict[str, Any]:
    """Bearings for both spellings of each name: who finds a field twice reads the API's own."""
    both = {
        key: place if isinstance(place, str) else spelled(place) for key, place in bearings.items()
    }
    return both | {snake: both[name] for snake, name in snake_names(*both).items()}


def camel_case(snake: str) -> str:
    """A name in the spelling that the API itself uses."""
    first, *others = snake.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


class Trace:
    """Collects what a decoder leaves over of one wire object."""

    __slots__ = ("_notes", "_shapes", "fields")

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        """The fields that ride along, in camelCase where that is known."""
        self._notes: dict[str, Any] = {}
        self._shapes: list[Any] = []

    def camel(
        self, wire: dict[str, Any], names: Mapping[str, str], inside: str = ""
    ) -> dict[str, Any]:
        """The object with the known names in camelCase; itself where it has no others."""
        if names.keys().isdisjoint(wire):
            return wire
        renamed: dict[str, Any] = {}
        for key, value in wire.items():
            name = names.get(key)
            if name is None or name in wire:
                renamed[key] = value
            else:
                renamed[name] = value
                self._notes.setdefault("snake", []).append(inside + key)
        return renamed

    def leave(self, fields: dict[str, Any], *taken: str) -> str | None:
        """Keep all but the taken fields of a part; returns its signature.

        What stands for a signature is none: it goes back as it came, and nowhere else.
        """
        signature = fields.get(SIGNATURE)
        if type(signature) is not str or signature in _STAND_INS:
            signature = None
        for key, value in fields.items():
            if key not in taken and (key != SIGNATURE or signature is None):
                self.fields[key] = value
        return signature

    def single(self, path: str) -> None:
        """Note a list that was written as its only item."""
        self._notes.setdefault("single", []).append(path)

    def absent(self, path: str, ours: Any) -> None:
        """Note a field that we write and the wire did not have."""
        self._notes.setdefault("absent", {})[path] = ours

    def instead(self, path: str, ours: Any, theirs: Any) -> None:
        """Note a field that the wire had otherwise than we write it."""
        self._notes.setdefault("instead", {})[path] = [ours, theirs]

    def shape(self, path: list[Any], ours: Any, theirs: Any) -> None:
        """Note something that the wire had in a shape that the model can't hold."""
        self._shapes.append([path, ours, theirs])

    def note(self, kind: str, value: Any) -> None:
        """Note something that an encoder asks for itself, by `noted`."""
        self._notes[kind] = value

    def compare(self, wire: Mapping[str, Any], rebuilt: Mapping[str, Any], key: str = "") -> None:
        """Keep what the wire has and our encoder, left to itself, would not write, or otherwise.

        `key` is the field that the compared object stands in.
        """
        left = self._compared(wire, rebuilt, f"{key}." if key else "")
        if not key:
            self.fields.update(left)
        elif left or not rebuilt:
            self.fields[key] = left

    def _compared(
        self, wire: Mapping[str, Any], rebuilt: Mapping[str, Any], inside: str
    ) -> dict[str, Any]:
        left: dict[str, Any] = {}
        for key, value in wire.items():
            ours = rebuilt.get(key)
            if key not in rebuilt:
                left[key] = value
            elif is_object(value) and is_object(ours):
                if inner := self._compared(value, ours, f"{inside}{key}."):
                    left[key] = inner
            elif not _are_same(value, ours):
                if is_array(value) and is_array(ours):  # both would be too much to keep
                    names = [*inside.split(".")[:-1], key]
                    self._notes.setdefault("lists", []).append([names, _digest(ours), value])
                else:
                    self.instead(inside + key, ours, value)
        for key, ours in rebuilt.items():
            if key not in wire:
                self.absent(inside + key, ours)
        return left

    def extras(self) -> FrozenDict:
        """Everything that was left over, as `extras`."""
        if self._notes:
            self.fields[_NOTES] = self._notes
        if not self.fields and not self._shapes:
            return EMPTY
        extras = {NAME: freeze_mapping(self.fields, "the wire")} if self.fields else {}
        return shaped_extras(FrozenDict(extras), NAME, self._shapes)


def _are_same(value: Any, ours: Any) -> bool:
    """Whether we write a field as it came: most are texts and numbers, and most lists are equal.

    Python takes `True` for `1`, so that equality alone is not enough.
    """
    if type(value) in _SCALARS:
        return type(ours) is type(value) and bool(ours == value)
    if value == ours and dumps(value) == dumps(ours):
        return True
    return not difference({"": value}, {"": ours}, NAME)


def noted(extras: Mapping[str, Any], kind: str) -> Any:
    """A note of that kind, or None."""
    if not extras:
        return None
    notes = overlay(extras, NAME).get(_NOTES)
    return notes.get(kind) if isinstance(notes, Mapping) else None


def as_it_came(body: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """An object that an encoder wrote, with what was left over when it was read put back."""
    over = overlay(extras, NAME)
    notes = over.get(_NOTES)
    _lay_over(body, over)
    if is_object(notes):
        del body[_NOTES]
        _restore_values(body, notes)
        _restore_lists(body, notes)
        for path in _listed(notes.get("single")):
            parent, leaf = _reach(body, path)
            if is_array(items := parent.get(leaf)) and len(items) == 1:
                parent[leaf] = items[0]
    shaped = reshaped(body, extras, NAME)
    if is_object(notes) and is_object(shaped):
        for path in reversed(_listed(notes.get("snake"))):  # outer names were noted first
            parent, leaf = _reach(shaped, path)
            if (name := camel_case(leaf)) in parent:
                parent[leaf] = parent.pop(name)
    return shaped


def _lay_over(body: dict[str, Any], over: Mapping[str, Any]) -> None:
    # Not `overlay.laid_over`: a field that we write now and left over then has been changed
    # since (an explicit null, say, where there is a system prompt by now), and the change counts.
    for key, value in over.items():
        ours = body.get(key)
        if key not in body:
            body[key] = value
        elif is_object(ours) and is_object(value):
            body[key] = merged = dict(ours)
            _lay_over(merged, value)


def _restore_values(body: dict[str, Any], notes: Mapping[str, Any]) -> None:
    absent, instead = notes.get("absent"), notes.get("instead")
    for path, ours in absent.items() if is_object(absent) else ():
        parent, leaf = _reach(body, path)
        if leaf in parent and parent[leaf] == ours:
            del parent[leaf]
    for path, values in instead.items() if is_object(instead) else ():
        parent, leaf = _reach(body, path)
        if is_array(values) and len(values) == _PAIR and parent.get(leaf) == values[0]:
            parent[leaf] = values[1]


def _restore_lists(body: dict[str, Any], notes: Mapping[str, Any]) -> None:
    for note in notes.get("lists", ()):
        names, digest, theirs = note
        *way, leaf = names
        inner: Any = body
        for name in way:
            found = inner.get(name)
            if not is_object(found):
                break
            inner[name] = inner = dict(found)
        else:
            if is_array(ours := inner.get(leaf)) and _digest(ours) == digest:
                inner[leaf] = theirs


def _digest(items: list[Any]) -> str:
    return sha256(dumps(items)).hexdigest()[:16]


def _listed(notes: Any) -> list[str]:
    listed: Iterable[Any] = notes if is_array(notes) else ()
    return [path for path in listed if isinstance(path, str)]


def _reach(body: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The object that holds the last name of a path, made changeable on the way, and that name."""
    *outer, leaf = path.split(".")
    for name in outer:
        inner = body.get(name)
        if not is_object(inner):
            return {}, leaf  # somebody changed the object since; nothing to restore
        body[name] = body = dict(inner)
    return body, leaf
