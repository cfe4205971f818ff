"""Schemas written to be expensive, each with a size `n`: see `FAMILIES`.

They are short for their cost, which is measured by comparing `n` with `2 * n`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


# --- references


def laughs(n: int) -> Schema:
    """Each definition holds the next one ten times."""
    definitions: Schema = {
        f"d{at}": _object({f"p{each}": _ref(f"d{at + 1}") for each in range(10)}) for at in range(n)
    }
    return _object({"a": _ref("d0")}, **{"$defs": {**definitions, f"d{n}": _TEXT}})


def _doubling(n: int, keyword: str) -> Schema:
    definitions: Schema = {
        f"d{at}": {keyword: [_ref(f"d{at + 1}"), {"allOf": [_ref(f"d{at + 1}")]}]}
        for at in range(n)
    }
    return _object({"a": _ref("d0")}, **{"$defs": {**definitions, f"d{n}": _TEXT}})


def doubling_unions(n: int) -> Schema:
    """Each definition is an `anyOf` of two references to the next one."""
    return _doubling(n, "anyOf")


def doubling_choices(n: int) -> Schema:
    """The same with `oneOf`."""
    return _doubling(n, "oneOf")


def doubling_intersections(n: int) -> Schema:
    """The same with `allOf`."""
    return _doubling(n, "allOf")


def doubling_objects(n: int) -> Schema:
    """Each definition is one of two objects with the next one, directly and in a list."""
    definitions: Schema = {
        f"d{at}": {
            "anyOf": [
                _object({"x": _ref(f"d{at + 1}"), "y": {"type": "integer"}}),
                _object({"x": {"type": "array", "items": _ref(f"d{at + 1}")}, "z": _TEXT}),
                {"type": "null"},
            ]
        }
        for at in range(n)
    }
    return _object({"a": _ref("d0")}, **{"$defs": {**definitions, f"d{n}": _TEXT}})


def chain(n: int) -> Schema:
    """A chain of references, each of which is also referenced from outside."""
    definitions: Schema = {f"d{at}": _ref(f"d{at + 1}") for at in range(n)}
    properties: Schema = {f"p{at}": _ref(f"d{at}") for at in range(n)}
    return _object(properties, **{"$defs": {**definitions, f"d{n}": _TEXT}})


def crowd(n: int) -> Schema:
    """`n` definitions, each with a reference."""
    return _object(
        {f"p{at}": _ref(f"d{at}") for at in range(n)},
        **{"$defs": {f"d{at}": _object({"x": {"minLength": at, **_TEXT}}) for at in range(n)}},
    )


def clique(n: int) -> Schema:
    """Definitions that all refer to all others; `n` references in total."""
    names = [f"d{at}" for at in range(isqrt(8 * n))]
    definitions: Schema = {name: _object({each: _ref(each) for each in names}) for name in names}
    return _object({"a": _ref("d0")}, **{"$defs": definitions})


def anchors(n: int) -> Schema:
    """`n` anchors, each with a reference."""
    return _object(
        {f"p{at}": {"$ref": f"#a{at}"} for at in range(n)},
        **{"$defs": {f"d{at}": {"$anchor": f"a{at}", **_TEXT} for at in range(n)}},
    )


def pointers(n: int) -> Schema:
    """References into other properties, which get definitions of their own."""
    properties: Schema = {f"p{at}": _object({"x": _TEXT}) for at in range(n)}
    others: Schema = {f"q{at}": {"$ref": f"#/properties/p{at}"} for at in range(n)}
    return _object({**properties, **others})


def namesakes(n: int) -> Schema:
    """Definitions of the same names under both keywords."""
    names = [f"d{'_' * at}" for at in range(n)]
    return _object(
        {f"p{at}": {"$ref": f"#/definitions/{name}"} for at, name in enumerate(names)},
        **{
            "$defs": dict.fromkeys(names, _TEXT),
            "definitions": {name: {"type": "integer"} for name in names},
        },
    )


# --- many of one kind


def branches(n: int) -> Schema:
    """`n` different alternatives."""
    return _object({"a": {"anyOf": [{"minLength": at, **_TEXT} for at in range(n)]}})


def choices(n: int) -> Schema:
    """`n` alternatives, of which exactly one may match."""
    forms = [_object({f"p{at}": _TEXT}, required=[f"p{at}"]) for at in range(n)]
    return _object({"a": {"oneOf": forms}})


def alike(n: int) -> Schema:
    """Objects that start alike, share many properties and have no discriminator."""
    names = [f"p{at}" for at in range(20)]
    forms = [
        _object({name: {"maxLength": at, **_TEXT} for name in names}, required=names)
        for at in range(n)
    ]
    return _object({"a": {"anyOf": forms}})


def forms(n: int) -> Schema:
    """Alternatives at the root, each with properties of its own."""
    return {
        "type": "object",
        "anyOf": [_object({f"p{at}": _TEXT, "x": {"const": at}}) for at in range(n)],
    }


def properties(n: int) -> Schema:
    """`n` optional properties."""
    return _object({f"p{at}": _TEXT for at in range(n)})


def required(n: int) -> Schema:
    """`n` required properties, listed in reverse."""
    return _object(
        {f"p{at}": _TEXT for at in range(n)}, required=[f"p{at}" for at in range(n)][::-1]
    )


def missing(n: int) -> Schema:
    """`n` required names that are undefined or not allowed."""
    names = [f"p{at}" for at in range(n)]
    return _object(
        {"a": {"type": "object", "required": names}, "b": _object({}, required=names)},
        required=["b"], additionalProperties=False,
    )  # fmt: skip


def literals(n: int) -> Schema:
    """A long enum of mixed values, and of objects."""
    values = [at if at % 2 else str(at) for at in range(n)]
    objects = [{"x": at} for at in range(n)]
    return _object({"a": {"enum": values, "default": n}, "b": {"enum": objects}})


def literal_sets(n: int) -> Schema:
    """Enums that must all match."""
    sets = [{"enum": list(range(at, n + at))} for at in range(4)]
    return _object({"a": {"allOf": sets}})


def places(n: int) -> Schema:
    """A tuple of `n` items."""
    return _object({"a": {"type": "array", "prefixItems": [{"minLength": at} for at in range(n)]}})


def patterns(n: int) -> Schema:
    """`n` patterns for property names."""
    return _object(
        {"a": {"type": "object", "patternProperties": {f"^{at}": _TEXT for at in range(n)}}}
    )


def remarks(n: int) -> Schema:
    """A long description, and `n` constraints that have to be added to it."""
    words = [{"not": {"const": at}} for at in range(n)]
    return _object({"a": {"type": "string", "description": "x" * n, "allOf": words}})


# --- products


def intersections(n: int) -> Schema:
    """`n` schemas in `allOf`, each about the same property."""
    return _object({"a": {"allOf": [_object({"x": {"minLength": at}}) for at in range(n)]}})


def wide_intersections(n: int) -> Schema:
    """`n` schemas in `allOf`, each with a property of its own."""
    return _object({"a": {"allOf": [_object({f"x{at}": {"minLength": at}}) for at in range(n)]}})


def square(n: int) -> Schema:
    """`anyOf` beside `oneOf`: the product of both."""
    return _object(
        {
            "a": {
                "anyOf": [{"minLength": at} for at in range(n)],
                "oneOf": [{"maxLength": at} for at in range(n)],
            }
        }
    )


def shared(n: int) -> Schema:
    """Alternatives beside `n` properties, which have to be added to each."""
    branches = [{"required": [f"p{at}"]} for at in range(n)]
    return _object({"a": _object({f"p{at}": _TEXT for at in range(n)}, anyOf=branches)})


def powers(n: int) -> Schema:
    """Unions in `allOf`: the product of all of them."""
    unions = [{"anyOf": [{"minLength": at}, {"maxLength": at}]} for at in range(n)]
    return _object({"a": {"allOf": unions}})


# --- depth


def deep(n: int) -> Schema:
    """Nested lists, each with a constraint for its description."""
    schema: Schema = {"type": "string", "minLength": 3}
    for _ in range(min(n, 45)):
        schema = {"type": "array", "items": schema, "not": {"maxItems": 2}, "description": "x" * n}
    return _object({"a": schema})


def deep_words(n: int) -> Schema:
    """Nested conditions, which have to be described in words."""
    schema: Schema = {"type": "string", "description": "x" * n}
    for _ in range(min(n, 45)):
        schema = {"not": schema}
    return _object({"a": schema, "b": {"if": schema, "then": schema}})


FAMILIES: dict[str, Callable[[int], Schema]] = {
    made.__name__: made
    for made in (
        *(laughs, doubling_unions, doubling_choices, doubling_intersections, doubling_objects),
        *(chain, crowd, clique, anchors, pointers, namesakes),
        *(branches, choices, alike, forms, properties, required, missing, literals, literal_sets),
        *(places, patterns, remarks, intersections, wide_intersections, square, shared, powers),
        *(deep, deep_words),
    )
}
