"""The keywords of JSON Schema: where schemas stand in schemas, and what applies to which type."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.jsontext import dumps
from dragoman.model.validation.words import kind_of

Node = dict[str, Any]
"""A schema that is an object."""

ONE = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains"),
        *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"),
    }
)
"""Hold a schema."""
SEVERAL = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
"""Hold a list of schemas."""
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Hold schemas by name."""
DEFINITIONS = ("$defs", "definitions")

TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})

_APPLY: dict[str, tuple[str, ...]] = {
    "object": (
        *("properties", "required", "additionalProperties", "patternProperties"),
        *("propertyNames", "minProperties", "maxProperties", "dependentRequired"),
        *("dependentSchemas", "dependencies", "unevaluatedProperties"),
        *("propertyOrdering", "property_ordering"),
    ),
    "array": (
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
        *("contains", "minContains", "maxContains", "unevaluatedItems"),
    ),
    "string": ("minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
TYPE_OF: dict[str, str] = {word: kind for kind, words in _APPLY.items() for word in words}
"""The type of value that a keyword says something about; absent for those about any."""

SILENT = frozenset(
    {
        *("$schema", "$id", "$comment", "$anchor", "$vocabulary", "$dynamicAnchor", "id"),
        *("title", "discriminator", "xml", "externalDocs", "propertyOrdering"),
        *("property_ordering", "deprecated", "readOnly", "writeOnly", "nullable"),
    }
)
"""Neither allow nor forbid anything, and tell a model nothing that it needs."""

LABELS = SILENT - {"nullable"}
"""Of those, what somebody wrote for people and programs: it is told where they don't get it."""

TOLD = frozenset({"default", "examples", "example"})
"""Neither allow nor forbid anything, but are worth telling."""


def as_list(value: Any) -> list[Any]:
    """The list that a keyword holds; empty where it holds something else."""
    return value if isinstance(value, list) else []


def as_map(value: Any) -> Node:
    """The object that a keyword holds; empty where it holds something else."""
    return value if isinstance(value, dict) else {}


def texts_in(value: Any) -> list[str]:
    """The texts in the list that a keyword holds."""
    return [each for each in as_list(value) if isinstance(each, str)]


def without(node: Node, keys: Container[str]) -> Node:
    """The node without these keywords."""
    return {key: value for key, value in node.items() if key not in keys}


def only(node: Node, keys: Iterable[str]) -> Node:
    """Of the node, these keywords."""
    return {key: node[key] for key in keys if key in node}


def one_or_list(types: list[str]) -> str | list[str]:
    """Types as `type` has them: one alone is no list."""
    return types[0] if len(types) == 1 else types


def children(node: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas right inside a schema, definitions included."""
    for key, value in node.items():
        if key in SEVERAL or (key == "items" and isinstance(value, list)):
            yield from as_list(value)
        elif key in ONE:
            yield value
        elif key in NAMED or key in DEFINITIONS:
            yield from as_map(value).values()


def walk(schema: Any) -> Iterator[Node]:
    """A schema and all that are inside it."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(children(node))


def labels_of(schema: Any) -> Iterator[tuple[str, bytes]]:
    """What stands in a schema for people and programs, and not for the model."""
    for node in walk(schema):
        for key, value in node.items():
            if key in LABELS or key.startswith("x-"):
                yield key, dumps(value)


def type_of(value: Any) -> str:
    """The JSON type of a value; a whole number is an integer however it is written."""
    kind = kind_of(value)
    return "integer" if kind == "number" and value == int(value) else kind


def declared(node: Node) -> list[str]:
    """The types that a schema names, in lower case (Gemini's); empty where it names none."""
    types = node.get("type")
    if isinstance(types, str):
        return [types.lower()]
    return [each.lower() for each in texts_in(types)]


def applies(keyword: str, types: list[str]) -> bool:
    """Whether a keyword says something about values of these types (none named: of any)."""
    kind = TYPE_OF.get(keyword)
    if kind is None or not types:
        return True
    return kind in types or (kind == "number" and "integer" in types)


# --- what targets count: in a schema, or in all schemas of a request together


class Weight(NamedTuple):
    """What targets count in a schema as a whole."""

    properties: int
    optional: int
    unions: int


def weight_of(schema: Mapping[str, Any]) -> Weight:
    """How many of each there are."""
    nodes = list(walk(schema))
    return Weight(
        sum(len(as_map(node.get("properties"))) for node in nodes),
        sum(map(_optional, nodes)),
        sum("anyOf" in node or len(declared(node)) > 1 for node in nodes),
    )


def _optional(node: Node) -> int:
    required = {*texts_in(node.get("required"))}
    return sum(name not in required for name in as_map(node.get("properties")))
