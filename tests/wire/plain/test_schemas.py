"""A schema that the types of a profile take is one that the compiler leaves as it is."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

import pytest

import dragoman
from dragoman.model.frozen import FrozenDict
from dragoman.model.requests import Request
from dragoman.model.tools import schema_text
from dragoman.wire.dialect import schema_profiles
from dragoman.wire.plain.schemas import is_common, is_plain, is_plain_text, takes_common
from dragoman.wire.schemas import projected

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What it takes.",
    "properties": {
        "city": {"type": "string", "description": "A city."},
        "days": {"type": "integer", "title": "Days"},
        "unit": {"type": "string", "enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "boolean"}},
            "required": ["x"],
            "additionalProperties": False,
        },
    },
    "required": ["city"],
}
_DAMAGE: tuple[tuple[str, Any], ...] = (
    ("type", ["string", "null"]), ("type", "null"), ("minimum", 1), ("format", "uri"),
    ("format", "ipv9"), ("enum", []), ("enum", ["a", "a"]), ("enum", ["a", 1]), ("enum", [""]),
    ("additionalProperties", True), ("additionalProperties", {}), ("required", ["zz"]),
    ("required", ["a", "a"]), ("anyOf", [{"type": "string"}]), ("$ref", "#"), ("nullable", True),
    ("items", True), ("default", None), ("default", "x"), ("description", 5), ("title", "T"),
    ("properties", {}), ("minItems", 1), ("pattern", "(?=x)"), ("type", "object"),
    ("type", "array"), ("const", "x"), ("x-foo", 1), ("required", []), ("minLength", 1),
    ("maximum", 2.5), ("$defs", {}),
)  # fmt: skip


def _nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    found = [node]
    inner = node.get("properties")
    for each in inner.values() if isinstance(inner, dict) else ():
        found += _nodes(each)
    if isinstance(node.get("items"), dict):
        found += _nodes(node["items"])
    return found


def _damaged(rng: random.Random) -> dict[str, Any]:
    schema = deepcopy(_SCHEMA)
    for _ in range(rng.choice((0, 1, 1, 2))):
        node = rng.choice(_nodes(schema))
        if rng.random() < 0.2:
            node.pop(rng.choice(sorted(node)), None)
        else:
            key, value = rng.choice(_DAMAGE)
            node[key] = deepcopy(value)
    return schema


@pytest.mark.parametrize("name", sorted(schema_profiles()))
def test_plain_schemas_need_no_compiler(name: str) -> None:
    """With random damage, in every profile, as values and as text."""
    profile = schema_profiles()[name]
    taken = 0
    for number in range(600):
        schema = _damaged(random.Random(number))
        text = json.dumps(schema).encode()
        plain = is_plain(schema, profile)
        assert plain == is_plain_text(text, profile), schema
        if plain or (takes_common(profile) and is_common(text)):
            made = projected(schema, profile)
            taken += 1
            assert made.schema == schema, number
            assert not made.losses, number
            assert not made.changes_values, number
            assert not made.drops_labels, number
            assert made.is_faithful
    assert taken or profile.is_closed or profile.requires_all or not takes_common(profile)


def _at(document: Any, key: str) -> Any:
    """The first value of that name in a document."""
    if isinstance(document, dict) and key in document:
        return document[key]
    inner = document.values() if isinstance(document, dict) else document
    found = [_at(each, key) for each in inner if isinstance(each, (dict, list))]
    return next((each for each in found if each is not None), None)


def test_a_schema_stays_text_until_somebody_looks() -> None:
    """Then it is frozen: the same value as one that was parsed at once, however it is used."""
    tool = {"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
    chat = dragoman.dialect("openai-chat")

    def decoded() -> Request:
        return chat.decode_request(json.dumps(body).encode())

    (lazy,) = decoded().functions
    assert schema_text(lazy) is not None
    (parsed,) = chat.decode_request(body).functions
    assert schema_text(parsed) is None
    assert lazy == parsed
    assert type(lazy.parameters) is FrozenDict
    assert schema_text(lazy) is None
    read = [json.loads(each.to_json()) for each in (decoded(), chat.decode_request(body))]
    whole, other = (_at(each, "parameters") for each in read)
    assert whole == other == _SCHEMA
    (again,) = decoded().functions
    assert again.to_json() == parsed.to_json()
    (copied,) = decoded().functions
    assert copied.replace_unchecked(description="D").parameters == parsed.parameters
