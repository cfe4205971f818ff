"""Translates the metadata of `Annotated` types to JSON Schema keywords.

Metadata is recognised by its attributes, not by its class: plain strings, `msgspec.Meta`, the
classes of `annotated_types`, pydantic's `Field(…)`, and anything else with the same attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze, thaw

_BOUNDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"gt": gt, "ge": ge, "lt": lt, "le": le}
_IN_WORDS = {"gt": "above", "ge": "at or above", "lt": "below", "le": "at or below"}


def keywords(notes: Iterable[object], types: Collection[str]) -> dict[str, Any]:
    """The keywords for this metadata, on a value of these JSON types.

    >>> import msgspec
    >>> keywords(["How many.", msgspec.Meta(ge=1)], {"integer"})
    {'description': 'How many.', 'minimum': 1}
    """
    found: dict[str, Any] = {}
    for note in _flat(notes):
        found |= _description(note)
        if "integer" in types or "number" in types:
            found |= _bounds(note)
        found |= _lengths(note, types)
        if "string" in types:
            found |= _pattern(note)
        found |= _examples(note)
    return found


def violated_bound(notes: Iterable[object], value: object) -> str | None:
    """The first violated bound that JSON Schema can't express (as of a date), in words."""
    if isinstance(value, (int, float)):
        return None  # covered by the schema
    for note in _flat(notes):
        for name, holds in _COMPARISONS.items():
            bound = getattr(note, name, None)
            if bound is not None and not _holds(holds, value, bound):
                return f"{_IN_WORDS[name]} {bound}"
    return None


def _holds(comparison: Callable[[Any, Any], bool], value: object, bound: object) -> bool:
    try:
        return bool(comparison(value, bound))
    except TypeError:
        return True  # not comparable, so the bound does not apply


def _flat(notes: Iterable[object]) -> Iterator[object]:
    for note in notes:
        yield note
        inner = getattr(note, "metadata", None)  # pydantic's Field has its constraints there
        if isinstance(inner, (list, tuple)):
            yield from _flat(inner)


def _description(note: object) -> dict[str, Any]:
    if isinstance(note, str):
        return {"description": note}
    for name in ("description", "documentation"):  # the latter is `typing_extensions.Doc`
        text = getattr(note, name, None)
        if isinstance(text, str) and text:
            return {"description": text}
    return {}


def _bounds(note: object) -> dict[str, Any]:
    found = {keyword: getattr(note, name, None) for name, keyword in _BOUNDS.items()}
    return {keyword: bound for keyword, bound in found.items() if _is_number(bound)}


def _is_number(bound: object) -> bool:
    return isinstance(bound, (int, float)) and not isinstance(bound, bool) and isfinite(bound)


def _lengths(note: object, types: Collection[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, suffix in _LENGTHS.items():
        if kind not in types:
            continue
        least, most = getattr(note, "min_length", None), getattr(note, "max_length", None)
        if type(least) is int and least > 0:
            found[f"min{suffix}"] = least
        if type(most) is int:
            found[f"max{suffix}"] = most
    return found


def _pattern(note: object) -> dict[str, Any]:
    pattern = None if isinstance(note, str) else getattr(note, "pattern", None)
    if isinstance(pattern, re.Pattern):
        pattern = pattern.pattern
    return {"pattern": pattern} if isinstance(pattern, str) else {}


def _examples(note: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    examples, extra = getattr(note, "examples", None), getattr(note, "extra_json_schema", None)
    if isinstance(examples, list) and examples:
        found["examples"] = examples
    if isinstance(extra, dict):
        found |= extra
    try:
        return dict(thaw(freeze(found)))
    except InvalidInputError:
        return {}  # not JSON, and not essential
