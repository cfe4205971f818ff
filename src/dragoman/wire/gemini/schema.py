"""The API's two ways to write a schema: OpenAPI's (`parameters`) and JSON Schema itself.

The model holds JSON Schema. OpenAPI's differs in the case of types (`STRING`) and in `nullable`
(W91); where a schema can't be converted there and back, it is kept as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.model.requests import Output
from dragoman.model.tools import ToolDefinition
from dragoman.wire.gemini.trace import NAME, Trace, is_array, is_object, noted
from dragoman.wire.schemas import (
    GEMINI_JSON_SCHEMA,
    GEMINI_OUTPUT,
    GEMINI_PARAMETERS,
    Profiles,
)
from dragoman.wire.target import Target

Form = Literal["upper", "lower", "number", "verbatim"]
"""How an OpenAPI schema was written: which case its types were in, by their numbers, or neither."""

_IN_ORDER = ("string", "number", "integer", "boolean", "array", "object", "null")
"""The types in the order of the API's own numbers for them, which begin with 1."""
_TYPES = frozenset(_IN_ORDER)
_UPPER = {name.upper(): name for name in _TYPES}
_NUMBERS = {name: number for number, name in enumerate(_IN_ORDER, 1)}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_FORMS: tuple[Form, ...] = ("upper", "lower", "number")
_JSON_SCHEMA = Profiles(GEMINI_JSON_SCHEMA, GEMINI_JSON_SCHEMA)
_OUTPUT = Profiles(GEMINI_OUTPUT, GEMINI_OUTPUT)
_OPENAPI = Profiles(GEMINI_PARAMETERS, GEMINI_PARAMETERS)
_OF_SCHEMAS = frozenset({"properties", "$defs", "defs"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_PAIR = 2


def is_own(holder: ToolDefinition | Output) -> bool:
    """Whether a schema is spelled as this dialect does."""
    origin = holder.origin
    is_ours = origin is not None and origin.dialect == NAME
    return is_ours or noted(holder.extras, "openapi") is not None


def profiles_of(target: Target, *, is_output: bool = False) -> Profiles:
    """What is taken of a schema from elsewhere."""
    if not target.takes_json_schema:
        return _OPENAPI
    return _OUTPUT if is_output else _JSON_SCHEMA


def _noted(form: Form) -> FrozenDict:
    trace = Trace()
    trace.note("openapi", form)
    return trace.extras()


OPENAPI = _noted("upper")
"""The extras of a schema that is to be written in OpenAPI's form."""


def decode_schema(wire: Mapping[str, Any]) -> tuple[FrozenDict, Form]:
    """The JSON Schema that an OpenAPI schema stands for, and how to write that schema again."""
    frozen = freeze_mapping(wire, "a schema")  # which also bounds its depth
    schema = freeze_mapping(_to_json_schema(frozen), "a schema")
    for form in _FORMS:
        if _to_openapi(schema, form) == frozen:
            return schema, form
    return frozen, "verbatim"


def encode_schema(schema: Mapping[str, Any], form: str) -> Mapping[str, Any]:
    """The OpenAPI schema, written in that form."""
    return schema if form == "verbatim" else _to_openapi(schema, form)


def _to_json_schema(wire: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: _within(key, value, _to_json_schema) for key, value in wire.items()}
    kind = schema.get("type")
    if type(kind) is int:
        kind = _NAMES.get(kind)
    if isinstance(kind, str):
        schema["type"] = kind = _UPPER.get(kind, kind)
        if schema.get("nullable") is True and kind in _TYPES:
            del schema["nullable"]
            schema["type"] = [kind, "null"]
    return schema


def _to_openapi(schema: Mapping[str, Any], form: str) -> dict[str, Any]:
    def convert(inner: Mapping[str, Any]) -> dict[str, Any]:
        return _to_openapi(inner, form)

    wire = {key: _within(key, value, convert) for key, value in schema.items()}
    kind = wire.get("type")
    if is_array(kind) and len(kind) == _PAIR and kind[1] == "null" and isinstance(kind[0], str):
        kind = kind[0]
        wire["nullable"] = True
    if isinstance(kind, str):
        wire["type"] = _written(kind, form)
    return wire


def _written(kind: str, form: str) -> str | int:
    if form == "lower" or kind not in _TYPES:
        return kind
    return kind.upper() if form == "upper" else _NUMBERS[kind]


def _within(key: str, value: Any, convert: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """A keyword's value with the schemas in it converted."""
    if key in _SCHEMAS and is_object(value):
        return convert(value)
    if key in _LISTS_OF_SCHEMAS and is_array(value):
        return [convert(item) if is_object(item) else item for item in value]
    if key in _OF_SCHEMAS and is_object(value):
        return {name: convert(item) if is_object(item) else item for name, item in value.items()}
    return value
