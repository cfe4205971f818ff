"""Reads overlays that earlier versions stored, in the current format.

They had a key for each kind of note: `"<dialect> instead"`, `"<dialect> shape"` and
`"<dialect> absent"` listed values, `"<dialect> meant"` digests of model values; and two dialects
had notes among the fields themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from dragoman.model.frozen import EMPTY

OLD_ENDINGS = (" instead", " absent", " shape", " meant", " unasked")
"""Suffixes of the keys of earlier versions, after the dialect."""
_OLD_NOTES = {"gemini": "$wire", "openai-chat": ":words"}
"""The field among a dialect's own that held notes; no wire format has such a field."""
_PAIR = 2


@lru_cache(maxsize=256)  # bounded, since extras from clients may have any number of names
def old_keys(dialect: str) -> frozenset[str]:
    """The keys in which earlier versions stored how a dialect spelled things."""
    return frozenset(dialect + ending for ending in OLD_ENDINGS)


def is_old(extras: Mapping[str, Any], dialect: str) -> bool:
    """Whether an earlier version stored this dialect's part of extras."""
    if has_old_notes(extras.get(dialect), dialect):
        return True
    return not old_keys(dialect).isdisjoint(extras)


def has_old_notes(fields: Any, dialect: str) -> bool:
    """Whether a dialect's fields in extras also hold notes."""
    if dialect not in _OLD_NOTES:
        return False
    return isinstance(fields, dict) and _OLD_NOTES[dialect] in fields


def upgraded(extras: Mapping[str, Any], dialect: str, key: str) -> Mapping[str, Any]:
    """Convert old extras, with this dialect's spelling under `key`."""
    names = [dialect + ending for ending in OLD_ENDINGS]
    changed = {name: extras[name] for name in extras if name not in names}
    fields = changed.get(dialect)
    notes: Any = EMPTY
    if isinstance(fields, dict) and _OLD_NOTES.get(dialect) in fields:
        changed[dialect] = dict(fields)
        notes = changed[dialect].pop(_OLD_NOTES[dialect])
        if not changed[dialect]:
            del changed[dialect]
    given = extras.get(key)
    spelling: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
    if isinstance(notes, list):
        spelling["words"] = notes
    elif isinstance(notes, Mapping):
        spelling |= _notes(notes)
    for kind, found in (("values", _values(extras, notes, names[1])),
                        ("guesses", _guesses(extras, notes, names[0], names[2]))):  # fmt: skip
        if listed := [*found, *_listed(spelling.get(kind))]:
            spelling[kind] = listed
    if isinstance(said := extras.get(names[3]), Mapping):
        spelling["said"] = said
    if names[4] in extras:
        spelling["unasked"] = extras[names[4]]
    return {**changed, key: spelling}


def _values(extras: Mapping[str, Any], notes: Any, name: str) -> Iterator[list[Any]]:
    """Entries of path, our value and theirs, where the model holds the whole value."""
    if isinstance(notes, Mapping):
        yield from ([path.split("."), ours] for path, ours in _items(notes.get("absent")))
        for path, values in _items(notes.get("instead")):
            if isinstance(values, list) and len(values) == _PAIR:
                yield [path.split("."), *values]
    for key, *ours in (entry for entry in _listed(extras.get(name)) if entry):
        yield [[key], *ours]
        yield [["function", key], *ours]  # for a call, it was a field of its function


def _guesses(extras: Mapping[str, Any], notes: Any, *names: str) -> Iterator[Any]:
    """Entries of path, our value and theirs, where the model may hold less."""
    instead, shape = (extras.get(name, []) for name in names)
    yield from instead if isinstance(instead, list) else [instead]
    for entry in _listed(notes.get("lists")) if isinstance(notes, Mapping) else ():
        if len(entry) > _PAIR and isinstance(entry[1], str):
            yield [entry[0], f"sha256:{entry[1]}", *entry[2:]]
    yield from _listed(shape)


def _notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The other notes: snake_case names, single items, and those that an encoder looks up."""
    found = {kind: notes[kind] for kind in notes if kind not in {"absent", "instead", "lists"}}
    if "single" in found:
        found["single"] = [path.split(".") for path in _texts(found["single"])]
    if snake := _texts(found.pop("snake", None)):
        found["names"] = [
            [[*outer, _camel_case(name)], name]
            for *outer, name in (path.split(".") for path in snake)
        ]
    return found


def _camel_case(snake: str) -> str:
    first, *others = snake.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((path, item) for path, item in value.items() if isinstance(path, str))


def _listed(value: Any) -> list[list[Any]]:
    return [entry for entry in value if isinstance(entry, list)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
