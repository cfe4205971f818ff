"""The JSON Schema subset that OpenAI supports, and the rules for its strict schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from dragoman.model.tools import ToolDefinition
from dragoman.wire.schemas import PLAIN, Profiles
from dragoman.wire.schemas.profiles import (
    ANNOTATIONS,
    BOUNDS,
    CORE,
    FORMATS,
    REFERENCES,
    SCALARS,
    Profile,
)
from dragoman.wire.target import Target
from dragoman.wire.violations import Found, Object, field, subschemas, texts_in

# --- what its hosts support

OPENAI = Profile(
    name="openai",
    # "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
    # level", "array schema missing items", "[…] is not of type 'object', 'boolean'".
    refused_at_root=frozenset({"oneOf", "anyOf", "allOf", "enum", "not"}),
    needs_items=True,
)
"""For non-strict functions."""

OPENAI_STRICT = Profile(
    name="openai-strict",
    keywords=CORE
    | REFERENCES
    | BOUNDS
    | {"definitions", "$schema", "const", "additionalProperties", "maxItems", "pattern", "format"}
    | {"default", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
    formats=FORMATS,
    literals=SCALARS,
    any_types=("string", "number", "boolean", "null"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    wraps_root=True,
    reference_siblings=frozenset(),
    union_siblings=ANNOTATIONS,
    needs_type=True,
    needs_items=True,
    is_closed=True,
    requires_all=True,
    defines_required=True,
    has_distinct_first_keys=True,
    refuses_lookaround=True,
    max_levels=10,
    max_properties=5000,
    max_literals=1000,
)
"""For strict functions and strict `json_schema` formats (W14, W15)."""

_OPENAIS = Profiles(OPENAI_STRICT, OPENAI)
_ANYONES = Profiles(PLAIN, PLAIN)


def openai_profiles(target: Target) -> Profiles:
    """The schema profiles of a host that speaks one of OpenAI's dialects."""
    return _OPENAIS if target.schemas.checks_strict else _ANYONES


def is_refused_strict(tool: ToolDefinition, target: Target, vendor: Target) -> bool:
    """Whether a strict schema that came in this dialect would be refused by the target.

    Without an explicit target, what came in the dialect is sent back unchanged.
    """
    is_named = target is not vendor and not target.keeps_own_messages
    is_checked = is_named and tool.strict is True and target.schemas.checks_strict
    return is_checked and not is_strict(tool.parameters)


# --- rules for strict schemas, wherever they occur in a body


class HasStrictSchemas(Protocol):
    """A view of a body that lists its strict schemas."""

    @property
    def strict_schemas(self) -> list[tuple[str, Any]]:
        """The strict schemas, with their paths."""
        ...


# `default` was refused when strict schemas were new; recordings of later years show it accepted.
_FORBIDDEN = ("oneOf", "allOf", "patternProperties")


def w14_strict_objects_are_closed(view: HasStrictSchemas) -> Found:
    """Every object must be closed and list all its properties as required."""
    for path, schema in view.strict_schemas:
        if any(node.get("additionalProperties") is not False for node in _objects(schema)):
            yield path, "every object in a strict schema needs additionalProperties: false"
        if any(not _requires_all(node) for node in _objects(schema)):
            yield path, "every object in a strict schema must list all its properties as required"


def w15_strict_schemas_keep_to_the_subset(view: HasStrictSchemas) -> Found:
    """The root must be a plain object, and some keywords are unsupported."""
    for path, schema in view.strict_schemas:
        root = schema if isinstance(schema, Mapping) else {}
        if root.get("type") != "object" and "$ref" not in root:
            yield path, "the root of a strict schema must be an object"
        if "anyOf" in root:
            yield path, "the root of a strict schema must not be an anyOf"
        nodes = list(subschemas(schema))
        for keyword in _FORBIDDEN:
            if any(keyword in node for node in nodes):
                yield path, f"a strict schema must not use {keyword}"


class _Alone:
    """A view of a single schema."""

    def __init__(self, schema: Any) -> None:
        self.strict_schemas = [("", schema)]


def is_strict(schema: Any) -> bool:
    """Whether OpenAI accepts a schema as strict."""
    view = _Alone(schema)
    rules = (w14_strict_objects_are_closed, w15_strict_schemas_keep_to_the_subset)
    return not any(finding for rule in rules for finding in rule(view))


def _objects(schema: object) -> Iterator[Object]:
    return (
        node for node in subschemas(schema) if node.get("type") == "object" or "properties" in node
    )


def _requires_all(node: Object) -> bool:
    named = texts_in(node.get("required"))
    return all(key in named for key in field(node, "properties"))
