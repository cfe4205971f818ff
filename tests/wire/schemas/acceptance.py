"""An independent definition of the JSON Schemas that each target accepts.

Nothing here is shared with the compiler: the lists come from the vendors' documentation, SDKs and
error texts (wire rules W14, W15, W62, W90 to W94).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_INNER = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "$defs", "definitions")

_OPENAI_STRICT = {
    "type",
    "title",
    "description",
    "enum",
    "const",
    "default",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
}
_ANTHROPIC_STRICT = {
    "type",
    "title",
    "description",
    "enum",
    "const",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "$ref",
    "$defs",
    "definitions",
    "format",
    "minItems",
}
_GEMINI_PARAMETERS = {
    "type",
    "title",
    "description",
    "enum",
    "anyOf",
    "properties",
    "required",
    "items",
    "nullable",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "default",
    "example",
    "minProperties",
    "maxProperties",
    "propertyOrdering",
    "property_ordering",
}
_GEMINI_JSON_SCHEMA = {
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "$schema",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
    "default",
}
_OLLAMA = {"type", "description", "enum", "anyOf", "properties", "required", "items"}
"""The fields of the server's `ToolProperty`."""
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


def refusals(schema: Any, profile: str) -> list[str]:
    """Why the target would refuse the schema; empty if it accepts it."""
    return list(_RULES[profile](schema))


def nodes_of(schema: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """All schemas in a schema, and how many objects each is nested in."""
    if not isinstance(schema, dict):
        return
    yield schema, depth
    inner = depth + ("properties" in schema)
    for key in _INNER:
        yield from nodes_of(schema.get(key), inner)
    for key in _LISTS:
        for each in schema.get(key, []):
            yield from nodes_of(each, inner)
    for key in _MAPS:
        for each in schema.get(key, {}).values():
            yield from nodes_of(each, depth if key in ("$defs", "definitions") else inner)


def _common(schema: Any, keywords: set[str]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "the root is no object"
    for node, _ in nodes_of(schema):
        yield from (f"{key} is unknown" for key in node if key not in keywords)
        for key in ("properties", "items", "anyOf"):
            inner = node.get(key, {})
            each = inner.values() if key == "properties" else inner if key == "anyOf" else [inner]
            if any(not isinstance(one, dict) for one in each):
                yield f"{key} holds what is no object"


def _typed(schema: Any) -> Iterator[str]:
    for node, _ in nodes_of(schema):
        if not any(key in node for key in ("type", "anyOf", "$ref")):
            yield "a schema has no type"
        if "array" in _types(node) and "items" not in node:
            yield "an array has no items"


def _types(node: dict[str, Any]) -> list[Any]:
    kind = node.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def _known_types(schema: Any) -> Iterator[str]:
    if any(kind not in _TYPES for node, _ in nodes_of(schema) for kind in _types(node)):
        yield "a type is unknown"


def _closed(schema: Any) -> Iterator[str]:
    for node, _ in nodes_of(schema):
        if "object" in _types(node):
            if node.get("additionalProperties") is not False:
                yield "an object is open"
            if not set(node.get("required", [])) <= set(node.get("properties", {})):
                yield "something is required that is not defined"


def _scalar_literals(schema: Any) -> Iterator[str]:
    for node, _ in nodes_of(schema):
        values = [*node.get("enum", []), *([node["const"]] if "const" in node else [])]
        if any(isinstance(value, (dict, list)) for value in values):
            yield "a literal is no scalar"
        if "enum" in node and not node["enum"]:
            yield "an enum is empty"


def _references(schema: Any, *, siblings: Callable[[str], bool], circles: bool) -> Iterator[str]:
    edges: dict[str, set[str]] = {"#": {n["$ref"] for n, _ in nodes_of(schema) if "$ref" in n}}
    for key in ("$defs", "definitions"):
        for name, each in schema.get(key, {}).items():
            plain = name.replace("~", "~0").replace("/", "~1")
            edges[f"#/{key}/{plain}"] = {n["$ref"] for n, _ in nodes_of(each) if "$ref" in n}
    for node, _ in nodes_of(schema):
        if "$ref" in node:
            if node["$ref"].replace("%25", "%") not in edges:
                yield "a reference leads nowhere"
            if any(key != "$ref" and not siblings(key) for key in node):
                yield "something stands beside a reference"
    if not circles and any(_comes_back(start, edges) for start in edges if start != "#"):
        yield "a definition refers to itself"


def _comes_back(start: str, edges: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    pending = list(edges[start])
    while pending:
        here = pending.pop()
        if here == start:
            return True
        if here not in seen:
            seen.add(here)
            pending += edges.get(here, ())
    return False


def _openai_strict(schema: Any) -> Iterator[str]:
    yield from _common(schema, _OPENAI_STRICT)
    yield from _typed(schema)
    yield from _known_types(schema)
    yield from _closed(schema)
    yield from _scalar_literals(schema)
    yield from _references(schema, siblings=lambda _: False, circles=True)
    if {"anyOf", "enum", "const"} & set(schema):
        yield "the root has alternatives"
    literals = 0
    for node, depth in nodes_of(schema):
        literals += len(node.get("enum", []))
        if depth > 10:
            yield "objects nest too deeply"
        if "object" in _types(node) and set(node["required"]) != set(node["properties"]):
            yield "a property is optional"
        if node.get("format", "date") not in _FORMATS:
            yield "a format is unknown"
        if "(?" in str(node.get("pattern", "")).replace("(?:", ""):
            yield "a pattern looks around"
        yield from _first_keys(node.get("anyOf", []))
    if literals > 1000:
        yield "there are too many literals"


def _first_keys(branches: list[dict[str, Any]]) -> Iterator[str]:
    seen: dict[str, list[dict[str, Any]]] = {}
    for branch in branches:
        for key, inner in list(branch.get("properties", {}).items())[:1]:
            seen.setdefault(key, []).append(inner)
    for firsts in seen.values():
        values = [each.get("enum", [each["const"]] if "const" in each else None) for each in firsts]
        flat = [str(value) for group in values for value in group or [None]]
        if len(firsts) > 1 and (None in values or len(set(flat)) < len(flat)):
            yield "alternatives begin alike"


def _anthropic(schema: Any) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "the root is no object"
    if {"oneOf", "allOf", "anyOf"} & set(schema):
        yield "the root has combinators"


def _anthropic_strict(schema: Any) -> Iterator[str]:
    yield from _common(schema, _ANTHROPIC_STRICT)
    yield from _typed(schema)
    yield from _known_types(schema)
    yield from _closed(schema)
    yield from _scalar_literals(schema)
    yield from _references(schema, siblings=lambda _: False, circles=False)
    for node, _ in nodes_of(schema):
        if node.get("format", "date") not in {*_FORMATS, "uri"}:
            yield "a format is unknown"
        if node.get("minItems", 0) > 1:
            yield "minItems is more than 1"


def _openai(schema: Any) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "the root is no object"
    if {"oneOf", "allOf", "anyOf", "enum", "not"} & set(schema):
        yield "the root has combinators"
    for node, _ in nodes_of(schema):
        if "array" in _types(node) and not {"items", "prefixItems"} & set(node):
            yield "an array has no items"
        if isinstance(node.get("items"), list):
            yield "items is a list"


def _gemini_parameters(schema: Any) -> Iterator[str]:
    yield from _common(schema, _GEMINI_PARAMETERS)
    yield from _typed(schema)
    yield from _known_types(schema)
    for node, _ in nodes_of(schema):
        if isinstance(node.get("type"), list):
            yield "a schema has several types"
        if "anyOf" in node and len(node) > 1:
            yield "something stands beside anyOf"
        if any(not isinstance(value, str) or not value for value in node.get("enum", [])):
            yield "a literal is no text, or empty"
        if not set(node.get("required", [])) <= set(node.get("properties", {})):
            yield "something is required that is not defined"
        if node.get("format", "enum") not in {
            "enum",
            "date-time",
            "float",
            "double",
            "int32",
            "int64",
        }:
            yield "a format is unknown"


def _gemini_json_schema(schema: Any) -> Iterator[str]:
    yield from _common(schema, _GEMINI_JSON_SCHEMA)
    yield from _references(schema, siblings=lambda key: key.startswith("$"), circles=True)
    for node, _ in nodes_of(schema):
        kinds = {type(value) for value in node.get("enum", [])}
        if not kinds <= {str, int, float}:
            yield "a literal is neither text nor number"


def _gemini_output(schema: Any) -> Iterator[str]:
    refused = _gemini_json_schema(schema)
    return (reason for reason in refused if reason != "the root is no object")


def _ollama(schema: Any) -> Iterator[str]:
    yield from _common(schema, _OLLAMA)
    yield from _known_types(schema)
    if {"anyOf", "enum"} & set(schema):
        yield "the root has what the server's type of parameters has not"
    for node, _ in nodes_of(schema):
        if not isinstance(node.get("description", ""), str):
            yield "a description is no text"
        if not all(isinstance(name, str) for name in node.get("required", [])):
            yield "a name is no text"


_RULES: dict[str, Callable[[Any], Iterator[str]]] = {
    "plain": lambda _: iter(()),
    "openai": _openai,
    "openai-strict": _openai_strict,
    "anthropic": _anthropic,
    "anthropic-strict": _anthropic_strict,
    "gemini-parameters": _gemini_parameters,
    "gemini-json-schema": _gemini_json_schema,
    "gemini-output": _gemini_output,
    "ollama": _ollama,
}
