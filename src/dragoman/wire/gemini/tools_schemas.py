"""Gemini's JSON Schema and OpenAPI schema dialects."""

from __future__ import annotations

from msgspec.structs import replace

from dragoman.wire.schemas.profiles import BOUNDS, CORE, REFERENCES, Profile

GEMINI_PARAMETERS = Profile(
    name="gemini-parameters",
    keywords=CORE
    | BOUNDS
    | {"nullable", "maxItems", "minLength", "maxLength", "pattern", "format", "default", "example"}
    | {"minProperties", "maxProperties", "propertyOrdering", "property_ordering"},
    # "only 'enum' and 'date-time' are supported for STRING type"
    formats=frozenset({"enum", "date-time", "float", "double", "int32", "int64"}),
    literals=frozenset({"string"}),
    any_types=("string", "number", "boolean", "object"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    cycles="cut",
    union_siblings=frozenset(),  # W92
    needs_type=True,
    needs_items=True,
    has_single_types=True,
    defines_required=True,
    refuses_empty_literal=True,
)
"""The OpenAPI subset (`parameters`, `responseSchema`): W90 to W94. Types are in lower case."""

GEMINI_JSON_SCHEMA = Profile(
    name="gemini-json-schema",
    keywords=CORE
    | REFERENCES
    | BOUNDS
    | {"$id", "$anchor", "$schema", "format", "prefixItems", "maxItems"}
    | {"additionalProperties", "propertyOrdering", "default"},
    literals=frozenset({"string", "number", "integer"}),
    refused_at_root=frozenset({"anyOf", "oneOf", "enum", "const"}),
    cycles="optional",
    reference_siblings=frozenset({"$id", "$anchor", "$defs", "$schema"}),
)
"""`parametersJsonSchema` and `responseJsonSchema`: other keywords are ignored, and
`oneOf` is treated as `anyOf`."""

GEMINI_OUTPUT = replace(
    GEMINI_JSON_SCHEMA,
    name="gemini-output",
    has_object_root=False,
    refused_at_root=frozenset(),
)
"""`responseJsonSchema`, which may be of any type."""
