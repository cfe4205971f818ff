"""Overlays: what a wire object held beyond what the model understands.

A decoder takes the fields it knows and keeps the rest in `extras`, under its dialect's name,
explicit nulls included. An encoder of the same dialect lays them over what it writes. So nothing
is lost on the way through, and nothing strange reaches another dialect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.jsontext import JsonText, loads
from dragoman.wire.agreement import notes_of

T = TypeVar("T")


def rest(wire: Mapping[str, Any], known: Collection[str], dialect: str) -> FrozenDict:
    """As `extras`: the fields that are not known.

    >>> rest({"type": "text", "text": "hi", "odd": None}, {"type", "text"}, "openai-chat")
    {'openai-chat': {'odd': None}}
    """
    unknown = {key: value for key, value in wire.items() if key not in known}
    return freeze_mapping({dialect: unknown}, "the wire") if unknown else EMPTY


def difference(wire: Mapping[str, Any], rebuilt: Mapping[str, Any], dialect: str) -> FrozenDict:
    """As `extras`: the fields that an encoder, left to itself, would leave out or get wrong.

    For objects that are few (usage, tools, settings): rebuild them and keep what differs. Where
    both sides have an object, its own difference is kept.
    """
    corrections: list[Any] = []
    missing = _missing(wire, rebuilt, (), corrections)
    extras: dict[str, Any] = {dialect: missing} if missing else {}
    if corrections:
        extras[_corrections_of(dialect)] = corrections
    return freeze_mapping(extras, "the wire")


def instead(path: tuple[str, ...], ours: Any, theirs: Any, dialect: str) -> FrozenDict:
    """As `extras`: one field that the wire had otherwise than an encoder writes it."""
    return freeze_mapping({_corrections_of(dialect): [[list(path), ours, theirs]]}, "the wire")


INSTEAD = " instead"
"""What the name of the field ends in that keeps a dialect's own spellings."""


@cache
def _corrections_of(dialect: str) -> str:
    """Where it is kept what the wire said instead of what we would write: path, ours, theirs."""
    return dialect + INSTEAD


def _missing(
    wire: Mapping[str, Any],
    rebuilt: Mapping[str, Any],
    path: tuple[str, ...],
    corrections: list[Any],
) -> dict[str, Any]:
    missing: dict[str, Any] = {}
    for key, value in wire.items():
        if key not in rebuilt:
            missing[key] = value
            continue
        mine = rebuilt[key]
        if type(value) is str and type(mine) is str:  # most are
            if value != mine:
                corrections.append([[*path, key], mine, value])
        elif isinstance(value, Mapping) and isinstance(mine, Mapping):
            if inner := _missing(value, mine, (*path, key), corrections):
                missing[key] = inner
        elif not _same(value, mine):
            corrections.append([[*path, key], mine, value])
    return missing


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _same(one: Any, other: Any) -> bool:
    # True == 1 and 1 == 1.0 in Python, but not on the wire, at whatever depth.
    if type(one) in _SCALARS:
        return type(one) is type(other) and bool(one == other)
    if isinstance(one, Mapping):
        return (
            isinstance(other, Mapping)
            and one.keys() == other.keys()
            and all(_same(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, (list, tuple)):
        return (
            isinstance(other, (list, tuple))
            and len(one) == len(other)
            and all(map(_same, one, other))
        )
    return type(one) is type(other) and bool(one == other)


def own_extras(extras: Mapping[str, Any], dialect: str) -> FrozenDict:
    """Those of the extras that are this dialect's."""
    if extras is EMPTY:
        return EMPTY
    names = (dialect, _corrections_of(dialect), notes_of(dialect))
    own = {key: extras[key] for key in names if key in extras}
    return freeze_mapping(own, "the extras")


def are_sound(extras: Mapping[str, Any], dialect: str) -> bool:
    """Whether extras are this dialect's and of the shape that `rest` and `difference` make."""
    corrections, notes = _corrections_of(dialect), notes_of(dialect)
    if not extras.keys() <= {dialect, corrections, notes}:
        return False
    kept = extras.get(corrections, [])
    are_objects = all(isinstance(extras.get(key, EMPTY), Mapping) for key in (dialect, notes))
    is_list = isinstance(kept, list) and len(_corrections(extras, dialect)) == len(kept)
    return are_objects and is_list


def _corrections(extras: Mapping[str, Any], dialect: str) -> list[list[Any]]:
    """The corrections: path, ours, theirs."""
    return [
        entry
        for entry in entries(extras, _corrections_of(dialect), 3)
        if isinstance(path := entry[0], list)
        and path
        and all(isinstance(step, str) for step in path)
    ]


def has_overlay(extras: Mapping[str, Any], dialect: str) -> bool:
    """Whether there is anything of this dialect in extras."""
    return (
        dialect in extras or _corrections_of(dialect) in extras or shapes_field(dialect) in extras
    )


def overlay(extras: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """The fields that belong to this dialect.

    Extras may come from stored documents and from clients: this and `entries` are how they are
    read, and what is not of the shape that a decoder makes is as good as absent.
    """
    found = extras.get(dialect)
    return found if isinstance(found, Mapping) else EMPTY


def entries(extras: Mapping[str, Any], name: str, size: int) -> list[list[Any]]:
    """The lists of that many values that are listed there."""
    found = extras.get(name)
    if not isinstance(found, list):
        return []
    return [entry for entry in found if isinstance(entry, list) and len(entry) == size]


def laid_over(body: dict[str, Any], extras: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """`body` with the dialect's own extras put back where the model says nothing.

    What the model says now is not overruled: a temperature that was set after the request came
    with an explicit null counts. A value that the wire spelled otherwise is put back only while
    it is the same value that we would have written then.
    """
    return reshaped(with_fields(body, extras, dialect), extras, dialect)


def with_fields(body: dict[str, Any], extras: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """As `laid_over`, before things are given the shape in which they came."""
    if dialect in extras:
        _fill(body, overlay(extras, dialect))
    return corrected(body, extras, dialect)


def corrected(body: dict[str, Any], extras: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """`body` with the values as the wire spelled them, where they are still the same."""
    if _corrections_of(dialect) not in extras:
        return body
    for (*way, key), ours, theirs in _corrections(extras, dialect):
        inner: Any = body
        for step in way:
            inner = inner.get(step) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and key in inner and _same(inner[key], ours):
            inner[key] = theirs
    return body


SHAPE = " shape"
"""What the name of the field ends in that keeps the shapes of a dialect, see `tolerance`."""


@cache
def shapes_field(dialect: str) -> str:
    """Where the extras keep what the wire had in a shape that the model can't hold."""
    return dialect + SHAPE


def reshaped(body: T, extras: Mapping[str, Any], dialect: str) -> T:
    """What an encoder wrote, in the shape in which it came: a text that was a number, say.

    Each shape is `[path, ours, theirs]`, without `theirs` where the wire had nothing. It is put
    back only where the encoder still writes what it wrote for the unedited value. Of the type
    that is promised here it is not, where a whole message came as something else.
    """
    shapes = extras.get(shapes_field(dialect))
    for shape in shapes if isinstance(shapes, list) else ():
        if isinstance(shape, list) and len(shape) in (2, 3) and isinstance(shape[0], list):
            body = cast("T", _reshaped(body, shape[0], shape[1], shape[2:]))
    return body


def _reshaped(value: Any, path: list[Any], ours: Any, theirs: list[Any]) -> Any:
    if not path:
        return theirs[0] if theirs and _same(value, ours) else value
    step, *rest = path
    if not _holds(value, step):
        return value
    if not rest and not theirs:
        is_ours = isinstance(value, dict) and _same(value[step], ours)
        return {key: value[key] for key in value if key != step} if is_ours else value
    inner = _reshaped(value[step], rest, ours, theirs)
    if inner is value[step]:
        return value
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    changed[step] = inner
    return changed


def _holds(value: Any, step: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(step, str) and step in value
    return isinstance(value, list) and type(step) is int and 0 <= step < len(value)


def _fill(body: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if key not in body:
            body[key] = value
        elif isinstance(value, Mapping) and isinstance(body[key], Mapping):
            body[key] = inner = dict(body[key])
            _fill(inner, value)


_TEXTS = (str, bytes, bytearray, memoryview)


def parsed(body: JsonText | Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """A body as a dict, from JSON text or as it is; raises `WireError` where it is no object."""
    problem = "the body is not a JSON object"
    if not isinstance(body, _TEXTS) and isinstance(body, Mapping):
        return body
    try:
        value = loads(body)
        if isinstance(value, dict):
            return value
    except InvalidInputError as error:
        problem = str(error)
    raise WireError(problem, dialect=dialect, path="$")


def want(
    wire: Mapping[str, Any], key: str, kind: type | tuple[type, ...], dialect: str, path: str
) -> Any:
    """A field that has to be there and of that type; raises `WireError` naming it."""
    value = wire.get(key)
    if isinstance(value, kind):
        return value
    expected = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
    found = "nothing" if key not in wire else type(value).__name__
    msg = f"expected {expected} at {path}.{key}, found {found}"
    raise WireError(msg, dialect=dialect, path=f"{path}.{key}")
