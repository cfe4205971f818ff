"""The rules for OpenAI's strict schemas, wherever they stand in a body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from dragoman.wire.violations import Found, Object, field, subschemas, texts_in


class HasStrictSchemas(Protocol):
    """A view of a body that knows its strict schemas."""

    @property
    def strict_schemas(self) -> list[tuple[str, Any]]:
        """The schemas that are to be followed strictly, with their paths."""
        ...


_FORBIDDEN = ("oneOf", "allOf", "patternProperties", "default")


def w14_strict_objects_are_closed(view: HasStrictSchemas) -> Found:
    """Every object is closed, and lists all its properties as required."""
    for path, schema in view.strict_schemas:
        if any(node.get("additionalProperties") is not False for node in _objects(schema)):
            yield path, "every object in a strict schema needs additionalProperties: false"
        if any(not _requires_all(node) for node in _objects(schema)):
            yield path, "every object in a strict schema must list all its properties as required"


def w15_strict_schemas_keep_to_the_subset(view: HasStrictSchemas) -> Found:
    """The root is a plain object, and some keywords are not known."""
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
    """One schema, as a view of it."""

    def __init__(self, schema: Any) -> None:
        self.strict_schemas = [("", schema)]


def is_strict(schema: Any) -> bool:
    """Whether OpenAI takes a schema as a strict one."""
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
