"""How each keyword is compiled, target by target."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.wire.schemas import PROFILES, Projection, projected

STRICT, CLAUDE = "openai-strict", "anthropic-strict"
OPENAPI, GEMINI = "gemini-parameters", "gemini-json-schema"

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"next": {"$ref": "#/$defs/T", "description": "Below."}},
    "$defs": {
        "T": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/T"}},
            "required": ["name"],
        }
    },
}


def _of(inner: Any, profile: str, *, is_required: bool = True, **beside: Any) -> Projection:
    schema = {"type": "object", "properties": {"p": inner}, **beside}
    if is_required:
        schema["required"] = ["p"]
    return projected(schema, PROFILES[profile])


# The compiled property. The last column: whether there is a loss.
_ROWS: list[tuple[str, Any, Any, bool]] = [
    (
        STRICT,
        {"type": "string", "minLength": 2},
        {"type": "string", "description": "At least 2 characters."},
        True,
    ),
    (STRICT, {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^a"}, False),
    (
        STRICT,
        {"type": "string", "pattern": "a(?=b)", "description": "A."},
        {"type": "string", "description": "A.\nMust match the regular expression a(?=b)."},
        True,
    ),
    (
        STRICT,
        {"type": "string", "default": "x"},
        {"type": "string", "default": "x"},
        False,
    ),
    (
        STRICT,
        {"type": "string", "format": "uri"},
        {"type": "string", "description": "Format: uri."},
        True,
    ),
    (STRICT, {"const": 3}, {"type": "integer", "const": 3}, False),
    (
        STRICT,
        {"type": "array"},
        {
            "type": "array",
            "items": {
                "type": ["string", "number", "boolean", "null"],
                "description": "Any JSON value.",
            },
        },
        True,
    ),
    (STRICT, {"type": "string", "nullable": True}, {"type": ["string", "null"]}, False),
    (
        STRICT,
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        False,
    ),
    (
        STRICT,
        {"oneOf": [{"type": "number"}, {"type": "integer"}]},
        {"anyOf": [{"type": "number"}, {"type": "integer"}], "description": "Only one may fit."},
        True,
    ),
    (
        STRICT,
        {"allOf": [{"type": "integer", "minimum": 1}, {"type": "number", "minimum": 3}]},
        {"type": "integer", "minimum": 3},
        False,
    ),
    (
        STRICT,
        {"type": "string", "not": {"const": "x"}},
        {"type": "string", "description": 'Must not fit this JSON Schema: {"const":"x"}.'},
        True,
    ),
    (STRICT, {"enum": [{"a": 1}, "b"]}, {"type": "string", "enum": ['{"a":1}', "b"]}, False),
    (
        CLAUDE,
        {"type": "integer", "minimum": 1},
        {"type": "integer", "description": "At least 1."},
        True,
    ),
    (
        CLAUDE,
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        False,
    ),
    (
        CLAUDE,
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {"type": "array", "items": {"type": "string"}, "description": "At least 2 items."},
        True,
    ),
    (OPENAPI, {"type": ["string", "null"]}, {"type": "string", "nullable": True}, False),
    (
        OPENAPI,
        {"anyOf": [{"type": "string"}, {"type": "null", "title": "None"}]},
        {"type": "string", "nullable": True},
        False,
    ),
    (
        OPENAPI,
        {"type": ["string", "integer"], "minimum": 2},
        {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 2}]},
        False,
    ),
    (
        OPENAPI,
        {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "D."},
        {"anyOf": [{"description": "D.", "type": "string"}, {"type": "integer"}]},
        False,
    ),
    (OPENAPI, {"enum": ["", "a"]}, {"type": "string", "enum": ['""', "a"]}, False),
    (
        OPENAPI,
        {"enum": [1, "1", None]},
        {"type": "string", "enum": ["1", '"1"'], "nullable": True},
        False,
    ),
    (OPENAPI, {"const": "a"}, {"type": "string", "enum": ["a"]}, False),
    (OPENAPI, {"enum": [True, False]}, {"type": "boolean"}, False),
    (OPENAPI, {"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}, False),
    (
        OPENAPI,
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "description": "More than 0."},
        True,
    ),
    (
        OPENAPI,
        {"type": "string", "format": "email"},
        {"type": "string", "description": "Format: email."},
        True,
    ),
    (GEMINI, {"type": ["string", "null"]}, {"type": ["string", "null"]}, False),
    (
        GEMINI,
        {"type": "array", "uniqueItems": True},
        {"type": "array", "description": "All items must differ."},
        True,
    ),
    (GEMINI, {"const": 2}, {"enum": [2]}, False),
    ("openai", {"type": "array"}, {"type": "array", "items": {}}, False),
    (
        "openai",
        {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        False,
    ),
    ("openai", {"not": {"$ref": "https://example.com/x"}}, {"not": {}}, True),
    (STRICT, {"type": "str"}, {"type": "string"}, False),
    (
        STRICT,
        {"properties": {}},
        {"properties": {}, "type": "object", "additionalProperties": False, "required": []},
        False,
    ),
]


@pytest.mark.parametrize(("profile", "inner", "expected", "is_loss"), _ROWS)
def test_a_property(profile: str, inner: Any, expected: Any, is_loss: bool) -> None:
    """Each keyword is compiled to what the target accepts, or to a description."""
    made = _of(inner, profile, additionalProperties=False)
    assert made.schema["properties"]["p"] == expected
    inside = [loss for loss in made.losses if loss.path.startswith("properties[0]")]
    assert bool(inside) is is_loss


def test_optional_properties_become_nullable() -> None:
    """Strict mode forces nulls, which mean absence if the original has none (W14)."""
    made = _of({"type": "string"}, STRICT, is_required=False)
    assert made.schema["properties"]["p"] == {"type": ["string", "null"]}
    assert made.schema["required"] == ["p"]
    assert made.is_exact
    assert made.undo({"p": None}) == {}
    assert made.undo({"p": "x"}) == {"p": "x"}


@pytest.mark.parametrize(
    "inner",
    [
        {"type": ["string", "null"]},
        {"type": "string", "nullable": True},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"enum": ["a", None]},
        {"$ref": "#/$defs/N"},
    ],
)
def test_allowed_nulls_are_kept(inner: Any) -> None:
    """A null that the original allows is not removed."""
    made = _of(inner, STRICT, is_required=False, **{"$defs": {"N": {"type": ["string", "null"]}}})
    assert made.undo({"p": None}) == {"p": None}


def test_nulls_are_removed_in_alternatives_items_and_definitions() -> None:
    """Forced nulls are removed from objects at any depth."""
    pair = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    other = {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]}
    schema = {
        "type": "object",
        "properties": {
            "one": {"anyOf": [{**pair, "required": ["a"]}, other]},
            "many": {"type": "array", "items": {"$ref": "#/$defs/P"}},
        },
        "required": ["one", "many"],
        "$defs": {"P": {**pair, "required": ["a"]}},
    }
    made = projected(schema, PROFILES[STRICT])
    assert made.is_exact
    answer = {"one": {"a": "x", "b": None}, "many": [{"a": "y", "b": None}, {"a": "z", "b": 1}]}
    assert made.undo(answer) == {"one": {"a": "x"}, "many": [{"a": "y"}, {"a": "z", "b": 1}]}


def test_literals_are_restored() -> None:
    """Literals that were compiled to texts get their original values."""
    made = _of({"enum": [1, "1", "", {"a": [2]}]}, OPENAPI)
    texts = made.schema["properties"]["p"]["enum"]
    assert [made.undo({"p": text})["p"] for text in texts] == [1, "1", "", {"a": [2]}]


@pytest.mark.parametrize("profile", [STRICT, CLAUDE, OPENAPI, GEMINI, "openai", "anthropic"])
@pytest.mark.parametrize(
    "root", [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]
)
def test_other_roots_are_wrapped(profile: str, root: Any) -> None:
    """A root that is no object is wrapped in one, and values are unwrapped."""
    made = projected(root, PROFILES[profile])
    assert made.schema["properties"] == {"value": root}
    assert made.undo({"value": "x"}) == "x"


def test_alternatives_at_the_root() -> None:
    """They are wrapped if that keeps them strict, and otherwise merged into one object (W62)."""
    forms = [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
    ]
    strict = projected({"anyOf": forms}, PROFILES[STRICT])
    assert strict.is_exact
    assert strict.undo({"value": {"a": "x"}}) == {"a": "x"}
    merged = projected({"type": "object", "anyOf": forms}, PROFILES["anthropic"])
    assert list(merged.schema["properties"]) == ["a", "b"]
    assert "required" not in merged.schema
    assert [loss.path for loss in merged.losses_at("tools[0].parameters")] == [
        "tools[0].parameters"
    ]


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object"},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        {},
    ],
)
def test_unsupported_in_strict_schemas(inner: Any) -> None:
    """Only free property names, tuples and untyped values make a strict schema unfaithful."""
    assert not _of(inner, STRICT).is_faithful
    assert not _of(inner, CLAUDE).is_faithful
    assert _of(inner, "openai").is_faithful
    assert _of({"type": "string", "minLength": 1}, STRICT).is_faithful


def test_recursive_references_are_kept_or_cut() -> None:
    """Recursion is kept if the target supports it, and cut otherwise."""
    kept = projected(TREE, PROFILES[STRICT])
    assert kept.schema["properties"]["next"]["anyOf"][0] == {"$ref": "#/$defs/T"}
    assert kept.is_faithful
    for profile in (CLAUDE, OPENAPI):
        flat = projected(TREE, PROFILES[profile])
        second = flat.schema["properties"]["next"]["properties"]["next"]
        assert list(second["properties"]) == ["name"]
        assert not flat.is_faithful
    assert "$ref" in str(projected(TREE, PROFILES[GEMINI]).schema["$defs"])


def test_references_with_siblings() -> None:
    """Keywords beside a reference are merged into the referenced schema."""
    definition = {"type": "string", "enum": ["a", "b"], "description": "Inner."}
    definitions: Any = {"$defs": {"C": definition}}
    inner = {"$ref": "#/$defs/C", "description": "Outer."}
    made = _of(inner, STRICT, **definitions)
    expected = {"description": "Outer.\nInner.", "type": "string", "enum": ["a", "b"]}
    assert made.schema["properties"]["p"] == expected
    assert "$defs" not in made.schema


def test_alternatives_differ_in_their_first_property() -> None:
    """OpenAI requires alternatives to start with different properties, or a tag (W15)."""

    def form(name: str, tag: str) -> dict[str, Any]:
        own: dict[str, Any] = {"id": {"type": "string"}, "kind": {"const": tag}}
        return {"type": "object", "properties": {**own, name: {"type": "string"}}}

    made = _of({"anyOf": [form("a", "x"), form("b", "y")]}, STRICT)
    firsts = [next(iter(each["properties"])) for each in made.schema["properties"]["p"]["anyOf"]]
    assert firsts == ["a", "b"]


def test_required_properties_are_defined() -> None:
    """Some targets require a definition of every required property."""
    made = projected({"type": "object", "required": ["x"]}, PROFILES[OPENAPI])
    assert list(made.schema["properties"]) == ["x"]


def test_acceptable_schemas_are_unchanged() -> None:
    """A schema that a target accepts is unchanged, including its order."""
    fine = {
        "required": ["a"],
        "additionalProperties": False,
        "properties": {"a": {"type": "string", "description": "An a."}},
        "type": "object",
    }
    for name in ("plain", "openai", STRICT, "anthropic", CLAUDE, GEMINI):
        made = projected(fine, PROFILES[name])
        assert list(made.schema.items()) == list(fine.items())
        assert made.is_exact
        assert not made.changes_values
        assert "losses" in repr(made)
        assert "An a" not in repr(made)


_PLACES = {
    "items": {"type": "array"},
    "contains": {"type": "array"},
    "additionalProperties": {"type": "object"},
    "propertyNames": {"type": "object"},
}
_TEXT = {"type": "string", "maxLength": 3}


@pytest.mark.parametrize("profile", [STRICT, OPENAPI])  # those that have no `allOf`
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("key", "around"), _PLACES.items())
@pytest.mark.parametrize(
    ("flag", "other", "both"),
    [(True, _TEXT, _TEXT), (False, _TEXT, False), (True, False, False), (True, True, True)],
)
def test_intersections_with_boolean_schemas(
    profile: str, is_first: bool, key: str, around: dict[str, Any], flag: bool, other: Any,
    both: Any,
) -> None:  # fmt: skip
    """In any order and position, `true` is neutral and `false` wins."""
    pair = [flag, other] if is_first else [other, flag]
    made = _of({"allOf": [{**around, key: each} for each in pair]}, profile)
    assert made.schema == _of({**around, key: both}, profile).schema


@pytest.mark.parametrize(
    ("python", "name"),
    [
        ("int", "integer"),
        ("str", "string"),
        ("float", "number"),
        ("bool", "boolean"),
        ("BOOL", "boolean"),
    ],
)
@pytest.mark.parametrize("profile", [STRICT, CLAUDE, GEMINI])
def test_python_type_names_are_converted(python: str, name: str, profile: str) -> None:
    """Some clients send Python's names of types."""
    assert _of({"type": python}, profile).schema["properties"]["p"]["type"] == name


def test_keywords_of_another_type_make_no_object() -> None:
    """A text beside `properties` stays a text: it was merged with the objects, or crashed."""
    stray = {"type": "string", "properties": {"a": {"type": "integer"}, "c": {}}, "items": {}}
    real = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    made = _of({"anyOf": [stray, real]}, STRICT)
    assert made.schema["properties"]["p"]["anyOf"] == [
        {"type": "string"},
        {**real, "additionalProperties": False},
    ]
    assert made.is_exact
    beside = _of({"anyOf": [{"type": "string"}, {"type": "null"}], "properties": {"a": {}}}, STRICT)
    assert beside.schema["properties"]["p"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
