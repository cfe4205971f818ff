"""The fast check of arguments never accepts what full validation would reject."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.validation.plain import plain_check
from dragoman.model.validation.problems import problems

NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean"])
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Objects of plain properties, some of them with more to say."""
    kinds = draw(st.dictionaries(NAMES, TYPES, max_size=3))
    properties: dict[str, Any] = {name: {"type": kind} for name, kind in kinds.items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(NAMES, max_size=2, unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    if bool(properties) and draw(st.booleans()):
        properties[min(properties)]["description"] = "One of them."
    return schema


@given(schemas(), st.dictionaries(NAMES, VALUES, max_size=3))
def test_yes_means_yes(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Anything that is not simple is left to full validation."""
    fits = plain_check(schema)
    assert fits is not None
    if fits(arguments):
        assert problems(schema, arguments) == []


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {}, "anyOf": []},
        {"type": "object", "properties": {}, "required": "a"},
        {"type": "object", "properties": {}, "required": [{}]},
        {"type": "array", "properties": {}},
    ],
)
def test_other_schemas_are_not_plain(schema: Any) -> None:
    """Whatever says more than a type."""
    assert plain_check(schema) is None


def test_most_calls_are_plain() -> None:
    """Or else it would be of no use."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    fits = plain_check(schema)
    assert fits is not None
    assert fits({"city": "Basel"})
    assert not fits({})
