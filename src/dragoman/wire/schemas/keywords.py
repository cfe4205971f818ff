"""The keywords of JSON Schema: which hold subschemas, and which apply to which type."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.jsontext import dumps
from dragoman.model.validation.words import kind_of

Node = dict[str, Any]
"""An object schema, as opposed to true or false."""

ONE_SCHEMA = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains"),
        *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"),
    }
)
"""Keywords that hold a schema."""
SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
"""Keywords that hold a list of schemas."""
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas by name."""
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
"""The type that a keyword applies to; absent for keywords that apply to any."""

IGNORED = frozenset(
    {
        *("$schema", "$id", "$comment", "$anchor", "$vocabulary", "$dynamicAnchor", "id"),
        *("title", "discriminator", "xml", "externalDocs", "propertyOrdering"),
        *("property_ordering", "deprecated", "readOnly", "writeOnly", "nullable"),
    }
)
"""Keywords that don't affect validation and that a model doesn't need."""

LABELS = IGNORED - {"nullable"}
"""Those of them that were written for people and programs: dropping them is reported."""

DESCRIBED = frozenset({"default", "examples", "example"})
"""Keywords that don't affect validation but are useful to a model."""


def as_list(value: Any) -> list[Any]:
    """The list in a keyword; empty if it holds something else."""
    return value if isinstance(value, list) else []


def as_map(value: Any) -> Node:
    """The object in a keyword; empty if it holds something else."""
    return value if isinstance(value, dict) else {}


def texts_in(value: Any) -> list[str]:
    """The strings in a keyword's list."""
    return [each for each in as_list(value) if isinstance(each, str)]


def without(node: Node, keys: Container[str]) -> Node:
    """The node without these keywords."""
    return {key: value for key, value in node.items() if key not in keys}


def only(node: Node, keys: Iterable[str]) -> Node:
    """The node with only these keywords."""
    return {key: node[key] for key in keys if key in node}


def one_or_list(types: list[str]) -> str | list[str]:
    """Types in the form of `type`: a single one is not a list."""
    return types[0] if len(types) == 1 else types


def children(node: Mapping[str, Any]) -> Iterator[Any]:
    """The direct subschemas of a schema, definitions included."""
    for key, value in node.items():
        if key in SCHEMA_LISTS or (key == "items" and isinstance(value, list)):
            yield from as_list(value)
        elif key in ONE_SCHEMA:
            yield value
        elif key in SCHEMA_MAPS or key in DEFINITIONS:
            yield from as_map(value).values()


def walk(schema: Any) -> Iterator[Node]:
    """A schema and all its subschemas."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(children(node))


def labels_of(schema: Any) -> Iterator[tuple[str, bytes]]:
    """The labels in a schema that were written for people and programs."""
    for node in walk(schema):
        for key, value in node.items():
            if key in LABELS or key.startswith("x-"):
                yield key, dumps(value)


def type_of(value: Any) -> str:
    """The JSON type of a value; a number without a fraction is an integer."""
    kind = kind_of(value)
    return "integer" if kind == "number" and value == int(value) else kind


def declared(node: Node) -> list[str]:
    """The types that a schema declares, in lower case (Gemini's are not); empty if none."""
    types = node.get("type")
    if types is None:
        return []
    if isinstance(types, str):
        return [types.lower()]
    return [each.lower() for each in texts_in(types)]


def applies(keyword: str, types: list[str]) -> bool:
    """Whether a keyword applies to values of these types (empty: of any type)."""
    kind = TYPE_OF.get(keyword)
    if kind is None or not types:
        return True
    return kind in types or (kind == "number" and "integer" in types)


# --- what targets limit, per schema or per request


class Weight(NamedTuple):
    """Counts that targets limit for a schema as a whole."""

    properties: int
    optional: int
    unions: int


def weight_of(schema: Mapping[str, Any]) -> Weight:
    """The counts of a schema."""
    nodes = list(walk(schema))
    return Weight(
        sum(len(as_map(node.get("properties"))) for node in nodes),
        sum(map(_optional, nodes)),
        sum("anyOf" in node or len(declared(node)) > 1 for node in nodes),
    )


def _optional(node: Node) -> int:
    required = {*texts_in(node.get("required"))}
    return sum(name not in required for name in as_map(node.get("properties")))
