"""The API's two ways to write a schema: OpenAPI's (`parameters`) and JSON Schema itself.

The model holds JSON Schema. OpenAPI's differs in the case of types (`STRING`) and in `nullable`
(W91); where a schema can't be converted there and back, it is kept as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.wire.gemini.trace import is_array, is_object

Form = Literal["upper", "lower", "verbatim"]
"""How an OpenAPI schema was written: which case its types were in, or neither."""

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_UPPER = {name.upper(): name for name in _TYPES}
_OF_SCHEMAS = frozenset({"properties", "$defs", "defs"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_PAIR = 2


def decode_schema(wire: Mapping[str, Any]) -> tuple[FrozenDict, Form]:
    """The JSON Schema that an OpenAPI schema stands for, and how to write that schema again."""
    frozen = freeze_mapping(wire, "a schema")  # which also bounds its depth
    schema = freeze_mapping(_to_json_schema(frozen), "a schema")
    if _to_openapi(schema, upper=True) == frozen:
        return schema, "upper"
    if _to_openapi(schema, upper=False) == frozen:
        return schema, "lower"
    return frozen, "verbatim"


def encode_schema(schema: Mapping[str, Any], form: str) -> Mapping[str, Any]:
    """The OpenAPI schema, written in that form."""
    return schema if form == "verbatim" else _to_openapi(schema, upper=form == "upper")


def _to_json_schema(wire: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: _within(key, value, _to_json_schema) for key, value in wire.items()}
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = kind = _UPPER.get(kind, kind)
        if schema.get("nullable") is True and kind in _TYPES:
            del schema["nullable"]
            schema["type"] = [kind, "null"]
    return schema


def _to_openapi(schema: Mapping[str, Any], *, upper: bool) -> dict[str, Any]:
    def convert(inner: Mapping[str, Any]) -> dict[str, Any]:
        return _to_openapi(inner, upper=upper)

    wire = {key: _within(key, value, convert) for key, value in schema.items()}
    kind = wire.get("type")
    if is_array(kind) and len(kind) == _PAIR and kind[1] == "null" and isinstance(kind[0], str):
        kind = kind[0]
        wire["nullable"] = True
    if isinstance(kind, str):
        wire["type"] = kind.upper() if upper and kind in _TYPES else kind
    return wire


def _within(key: str, value: Any, convert: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """A keyword's value with the schemas in it converted."""
    if key in _SCHEMAS and is_object(value):
        return convert(value)
    if key in _LISTS_OF_SCHEMAS and is_array(value):
        return [convert(item) if is_object(item) else item for item in value]
    if key in _OF_SCHEMAS and is_object(value):
        return {name: convert(item) if is_object(item) else item for name, item in value.items()}
    return value
