"""Random schemas: valid, unusual, and malformed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_NAMES = st.sampled_from(["a", "b", "c", "kind", "a/b", "c~d"])
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from(["", "a", "b", "1", "null"])
)
_VALUES = st.one_of(_SCALARS, st.just({"a": 1}), st.just([1, "a"]), st.just(0.5))

_LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(2, 6),
            "pattern": st.sampled_from(["^a", "b$", "a(?=b)"]),
            "format": st.sampled_from(["date", "date-time", "uri", "made-up"]),
            "description": st.just("A text."),
            "nullable": st.booleans(),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number", ["integer", "null"], ["number", "string"]])},
        optional={
            "minimum": st.integers(-1, 3),
            "exclusiveMaximum": st.integers(4, 9),
            "exclusiveMinimum": st.integers(-1, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "default": st.just(3),
        },
    ),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "null", "title": "None"}, {}]),
    st.booleans(),
    st.builds(lambda values: {"enum": values}, st.lists(_VALUES, min_size=1, max_size=4)),
    st.builds(lambda value: {"const": value}, _VALUES),
    st.builds(
        lambda values: {"type": "string", "enum": values},
        st.lists(_SCALARS, min_size=1, max_size=3),
    ),
    st.sampled_from(
        [
            {"$ref": "#/$defs/A"},
            {"$ref": "#/$defs/B", "description": "See there."},
            {"$ref": "#/$defs/c~1d"},
            {"$ref": "#"},
            {"$ref": "https://example.com/schema.json"},
        ]
    ),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "object", ["object", "null"]])},
        optional={
            "properties": st.dictionaries(_NAMES, inner, max_size=3),
            "required": st.lists(_NAMES, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "description": st.just("An object."),
            "minProperties": st.integers(0, 1),
            "patternProperties": st.builds(lambda each: {"^x": each}, inner),
            "dependentRequired": st.just({"a": ["b"]}),
        },
    )


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": st.one_of(inner, st.booleans()),
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(2, 4),
            "uniqueItems": st.booleans(),
        },
    )


def _strays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Keywords beside a type that they don't apply to, or beside none, as generators write them."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "null", "array", ["integer", "null"], "object"]),
            "properties": st.dictionaries(_NAMES, inner, min_size=1, max_size=2),
            "required": st.lists(_NAMES, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
        },
    )


def _unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"anyOf": several}, optional={"description": st.just("Some.")}),
        st.fixed_dictionaries({"oneOf": several}, optional={"title": st.just("One")}),
        st.fixed_dictionaries({"allOf": several}, optional={"type": st.just("object")}),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda a, b: {"not": a, **(b if isinstance(b, dict) else {})}, inner, inner),
        st.builds(
            lambda a, b: {**(a if isinstance(a, dict) else {}), "anyOf": [b, {"type": "null"}]},
            inner,
            inner,
        ),
    )


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(_objects(inner), _arrays(inner), _strays(inner), _unions(inner)),
    max_leaves=8,
)
"""Any schema, without the definitions that it may refer to."""


@st.composite
def roots(draw: st.DrawFn) -> dict[str, Any]:
    """A schema for tools, with definitions that may refer to each other."""
    root = draw(st.one_of(_objects(SCHEMAS), SCHEMAS.filter(lambda each: isinstance(each, dict))))
    definitions = {name: draw(SCHEMAS) for name in ("A", "B", "c/d")}
    return {**root, "$defs": definitions}


JSON: st.SearchStrategy[Any] = st.recursive(
    _VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)
    ),
    max_leaves=10,
)
"""Any JSON value."""
