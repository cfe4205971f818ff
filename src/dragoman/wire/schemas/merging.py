"""Schemas that must hold together made one (`allOf`), and alternatives made one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.validation.words import is_number
from dragoman.wire.schemas.keywords import Node, as_list, as_map, declared
from dragoman.wire.schemas.notes import text_of

Lose = Callable[[str, Any], None]
"""Is told of a keyword, and its value, that could not be merged."""

_MAX_PRODUCT = 16
_LEAST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_MOST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_FIRST = frozenset({"title", "default", "example", "examples", "$schema", "$id", "$comment"})
_INNER = frozenset({"items", "additionalProperties", "contains", "propertyNames"})


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; unlike in Python, true is not 1."""
    return bool(one == other) and text_of(one) == text_of(other)


def intersected(one: Node, other: Node, lose: Lose) -> Node:
    """What fits both; what can't be said of both at once is lost."""
    merged = dict(one)
    _note_closed(one, other, lose)
    for key, value in other.items():
        if key not in merged:
            merged[key] = value
        elif not same(merged[key], value):
            merged[key] = _both(key, merged[key], value, lose)
    return merged


def _note_closed(one: Node, other: Node, lose: Lose) -> None:
    """Properties beside a closed schema are forbidden by it, which nobody means."""
    for closed, adding in ((one, other), (other, one)):
        rest = closed.get("additionalProperties", True)
        known = as_map(closed.get("properties"))
        new = [name for name in as_map(adding.get("properties")) if name not in known]
        if rest is not True and rest != {} and new:
            lose("additionalProperties", None)


def _both(key: str, one: Any, other: Any, lose: Lose) -> Any:
    if key in (_LEAST | _MOST) and is_number(one) and is_number(other):
        return max(one, other) if key in _LEAST else min(one, other)
    if key in _MERGERS:
        merged = _MERGERS[key](one, other)
        if merged is not None:
            return merged
    elif key in _INNER:
        if isinstance(one, bool) or isinstance(other, bool):
            return _with_boolean(one, other)
        return {"allOf": [one, other]}
    elif key in _FIRST:
        return one
    lose(key, other)
    return one


def _with_boolean(one: Any, other: Any) -> Any:
    if one is False or other is False:
        return False
    return other if one is True else one


def _types(one: Any, other: Any) -> Any:
    first, second = declared({"type": one}), declared({"type": other})
    both = [kind for kind in first if kind in second]
    if "integer" not in both and "integer" in (*first, *second):
        both += ["integer"] if {"number", "integer"} <= {*first, *second} else []
    if not both:
        return None
    return both[0] if len(both) == 1 else both


def _descriptions(one: Any, other: Any) -> Any:
    texts = [text for text in (one, other) if isinstance(text, str) and text]
    return "\n".join(dict.fromkeys(texts))


def _properties(one: Any, other: Any) -> Any:
    merged = dict(as_map(one))
    for name, schema in as_map(other).items():
        if name not in merged or same(merged[name], schema):
            merged[name] = schema
        elif isinstance(schema, bool) or isinstance(merged[name], bool):
            merged[name] = _with_boolean(merged[name], schema)
        else:
            merged[name] = {"allOf": [merged[name], schema]}
    return merged


def _required(one: Any, other: Any) -> Any:
    names = [name for name in (*as_list(one), *as_list(other)) if isinstance(name, str)]
    return list(dict.fromkeys(names))


def _values(one: Any, other: Any) -> Any:
    both = [value for value in as_list(one) if any(same(value, each) for each in as_list(other))]
    return both or None


def _alternatives(one: Any, other: Any) -> Any:
    """Each of the one with each of the other, where they are few."""
    first, second = as_list(one), as_list(other)
    if not first or not second or len(first) * len(second) > _MAX_PRODUCT:
        return None
    return [{"allOf": [left, right]} for left in first for right in second]


def _excluded(one: Any, other: Any) -> Any:
    return {"anyOf": [one, other]}


_MERGERS: dict[str, Callable[[Any, Any], Any]] = {
    "type": _types,
    "description": _descriptions,
    "properties": _properties,
    "required": _required,
    "enum": _values,
    "anyOf": _alternatives,
    "not": _excluded,
    "allOf": lambda one, other: [*as_list(one), *as_list(other)],
    "$defs": lambda one, other: {**as_map(other), **as_map(one)},
    "definitions": lambda one, other: {**as_map(other), **as_map(one)},
}


def united(branches: list[Node]) -> Node:
    """One object that takes what any of these objects takes, and more (W62)."""
    properties: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in as_map(branch.get("properties")).items():
            known = properties.setdefault(name, [])
            if not any(same(schema, each) for each in known):
                known.append(schema)
    required = [
        name
        for name in as_list(branches[0].get("required"))
        if all(name in as_list(branch.get("required")) for branch in branches)
    ]
    merged: Node = {
        "type": "object",
        "properties": {
            name: schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            for name, schemas in properties.items()
        },
    }
    if required:
        merged["required"] = required
    if all(branch.get("additionalProperties") is False for branch in branches):
        merged["additionalProperties"] = False
    return merged
