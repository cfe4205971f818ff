"""Hostile schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import InvalidInputError
from dragoman.model.validation.budget import Budget
from dragoman.wire.schemas import PROFILES, projected
from dragoman.wire.schemas.keywords import walk
from dragoman.wire.schemas.references import References
from tests.wire.schemas.acceptance import refusals

pytestmark = pytest.mark.whole

_NAMES = sorted(PROFILES)


def _laughs(count: int) -> dict[str, Any]:
    """Each definition refers to the next one ten times."""
    definitions: dict[str, Any] = {
        f"d{at}": {
            "type": "object",
            "properties": {f"p{each}": {"$ref": f"#/$defs/d{at + 1}"} for each in range(10)},
        }
        for at in range(count)
    }
    definitions[f"d{count}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def test_exponential_growth_is_refused() -> None:
    """References that multiply raise an error if they have to be inlined."""
    with pytest.raises(InvalidInputError, match="is too complex"):
        projected(_laughs(12), PROFILES["gemini-parameters"])
    assert projected(_laughs(12), PROFILES["openai"]).schema == _laughs(12)


@pytest.mark.parametrize("name", _NAMES)
def test_deep_schemas(name: str) -> None:
    """Schemas are accepted up to the maximum depth of JSON, and no deeper."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(48):
        schema = {"type": "object", "properties": {"a": schema}}
    made = projected(schema, PROFILES[name])
    assert refusals(made.schema, name) == []
    for _ in range(10):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(InvalidInputError, match="nested deeper"):
        projected(schema, PROFILES[name])


@pytest.mark.parametrize(
    ("name", "levels", "objects"),
    [("anthropic", 45, 46), ("gemini-parameters", 45, 46), ("openai-strict", 10, 10)],
)
def test_levels_beyond_the_limit_are_described(name: str, levels: int, objects: int) -> None:
    """Exactly those: one level less is kept as it is."""
    schema: dict[str, Any] = {"type": "string"}
    for level in range(1, levels + 3):
        schema = {"type": "object", "properties": {"a": schema}}
        text = json.dumps(projected(schema, PROFILES[name]).schema)
        assert text.count('"object"') == min(level, objects)
        assert ('"string"' in text) is (level <= levels)


@pytest.mark.parametrize("name", _NAMES)
def test_long_chains_of_definitions(name: str) -> None:
    """A thousand nested definitions are followed up to the maximum depth."""
    definitions: dict[str, Any] = {
        f"d{at}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/d{at + 1}"}}}
        for at in range(1000)
    }
    definitions["d1000"] = {"type": "string"}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    made = projected(schema, PROFILES[name])
    made.undo({"a": {"n": None}})
    assert made.schema["type"] == "object"


_ODD: list[Any] = [
    {"$ref": "#"},
    {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
    {"$ref": "https://example.com/schema.json"},
    {"$ref": "file:///etc/passwd"},
    {"$ref": 5},
    {"$ref": "#/properties/0", "properties": []},
    {"$ref": "#/%zz/~2"},
    {"type": 5},
    {"type": []},
    {"type": ["object", 7, None]},
    {"type": "made-up"},
    {"properties": 5, "required": 5, "additionalProperties": 5},
    {"properties": {"a": 5, "b": None, "c": "string", "d": [], "e": True, "f": False}},
    {"required": [1, None, "a", "a"], "properties": {"a": {"enum": []}}},
    {"properties": {"a": {"enum": 5}, "b": {"anyOf": []}, "c": {"anyOf": 5}, "d": {"oneOf": {}}}},
    {"properties": {"a": {"items": 5, "type": "array"}, "b": {"prefixItems": 5}}},
    {"properties": {"a": {"items": [], "type": "array"}, "b": {"allOf": 5}, "c": {"allOf": [5]}}},
    {"properties": {"a": {"minimum": "x", "pattern": 5, "format": 5, "type": "string"}}},
    {"properties": {"a": {"description": 5, "minLength": 2, "type": "string"}}},
    {"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}},
    {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"oneOf": [{"type": "object"}, {"$ref": "#"}], "type": "object"},
    {"allOf": [{"$ref": "#"}]},
    {"not": {}},
    {"$defs": 5, "definitions": []},
    {},
]


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("schema", _ODD)
def test_odd_schemas(schema: Any, name: str) -> None:
    """Any malformed schema is compiled to an acceptable one."""
    made = projected(schema, PROFILES[name])
    assert isinstance(made.schema, dict)
    if name not in ("openai", "anthropic", "plain"):  # which accept almost anything
        assert refusals(made.schema, name) == []
    made.undo({"value": None, "a": [None]})


@pytest.mark.parametrize("schema", [5, "x", [], {5: 1}, {"enum": [float("nan")]}, {"a": {1}}])
def test_other_values_are_refused(schema: Any) -> None:
    """A schema that is no JSON object is refused with our own error."""
    with pytest.raises(InvalidInputError):
        projected(schema, PROFILES["openai"])


def test_deep_values_are_restored() -> None:
    """A value deeper than any stack is restored as far as possible."""
    tree = {"type": "object", "properties": {"n": {"$ref": "#"}, "v": {"type": "string"}}}
    value: dict[str, Any] = {"v": None}
    for _ in range(5000):
        value = {"n": value, "v": None}
    assert "v" not in projected(tree, PROFILES["openai-strict"]).undo(value)


def test_losses_quote_nothing() -> None:
    """Paths are positions, and reasons name keywords only."""
    inner = {"type": "string", "pattern": "secret", "minLength": 3}
    schema = {
        "type": "object",
        "properties": {"secret": {"$ref": "#/$defs/secret"}},
        "$defs": {"secret": inner},
    }
    for profile in PROFILES.values():
        assert "secret" not in repr(projected(schema, profile).losses)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("last", [{"type": "string"}, {"$ref": "#/components/schemas/A"}])
def test_openapi_definitions(name: str, last: dict[str, Any]) -> None:
    """Definitions in `components/schemas`, in a chain of references."""
    held: dict[str, Any] = {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}},
        "B": {"type": "object", "properties": {"c": {"$ref": "#/components/schemas/C"}}},
        "C": {"type": "object", "properties": {"d": last}},
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/components/schemas/A"}},
        "components": {"schemas": held},
    }
    made = projected(schema, PROFILES[name])
    assert refusals(made.schema, name) == []
    for node in walk(made.schema):
        if "$ref" in node:
            assert References(made.schema, Budget()).find(node["$ref"]) is not None
    value: Any = {"a": {"b": {"c": {}}}}
    assert made.undo(value) == value
