"""What each target takes of JSON Schema."""

from __future__ import annotations

from typing import Literal

import msgspec

_CORE = frozenset(
    {
        *("type", "title", "description", "enum", "anyOf"),
        *("properties", "required", "items", "minItems"),
    }
)
_REFERENCES = frozenset({"$ref", "$defs"})
_BOUNDS = frozenset({"minimum", "maximum"})
_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email"),
        *("hostname", "ipv4", "ipv6", "uuid"),
    }
)
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_ANNOTATIONS = frozenset({"title", "description"})


class Profile(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a target takes. The defaults take everything."""

    name: str
    keywords: frozenset[str] | None = None
    """Those it takes; None for all."""
    formats: frozenset[str] | None = None
    literals: frozenset[str] | None = None
    """The types of values that an `enum` may hold."""
    any_types: tuple[str, ...] = ()
    """What stands for "anything" where every schema needs a type."""

    has_object_root: bool = True
    """Whether the root must be an object, plainly said."""
    refused_at_root: frozenset[str] = frozenset()
    wraps_root: bool = False
    """Whether alternatives at the root are better put into a property than merged."""

    cycles: Literal["kept", "optional", "cut"] = "kept"
    """What becomes of references in a circle: kept, kept inside optional properties, or cut."""
    reference_siblings: frozenset[str] | None = None
    union_siblings: frozenset[str] | None = None
    unrolled: int = 2
    """How many times a definition may stand inside itself where circles are cut."""

    needs_type: bool = False
    needs_items: bool = False
    has_single_types: bool = False
    """Whether a schema has one type, and `nullable` beside it (W91)."""
    is_closed: bool = False
    """Whether every object must say `additionalProperties: false` (W14)."""
    requires_all: bool = False
    """Whether optional properties must be required ones that may be null (W14)."""
    defines_required: bool = False
    """Whether what is required has to be among the properties."""
    has_distinct_first_keys: bool = False
    """Whether alternatives must be told apart by their first property (W15)."""
    refuses_lookaround: bool = False
    refuses_empty_literal: bool = False
    most_min_items: int | None = None
    most_levels: int | None = None
    """How many objects may stand inside each other, the root included."""
    most_properties: int | None = None
    most_literals: int | None = None
    most_optional: int | None = None
    most_unions: int | None = None

    def takes(self, keyword: str) -> bool:
        """Whether it knows a keyword."""
        return self.keywords is None or keyword in self.keywords

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"


PLAIN = Profile(name="plain", has_object_root=False)
"""Everything as it is: for servers that make a grammar of it (llama.cpp) or look at nothing."""

OPENAI = Profile(
    name="openai",
    # "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
    # level", "array schema missing items", "[…] is not of type 'object', 'boolean'".
    refused_at_root=frozenset({"oneOf", "anyOf", "allOf", "enum", "not"}),
    needs_items=True,
)
"""Functions that are not strict."""

OPENAI_STRICT = Profile(
    name="openai-strict",
    keywords=_CORE
    | _REFERENCES
    | _BOUNDS
    | {"definitions", "$schema", "const", "additionalProperties", "maxItems", "pattern", "format"}
    | {"multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
    formats=_FORMATS,
    literals=_SCALARS,
    any_types=("string", "number", "boolean", "null"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    wraps_root=True,
    reference_siblings=frozenset(),
    union_siblings=_ANNOTATIONS,
    needs_type=True,
    needs_items=True,
    is_closed=True,
    requires_all=True,
    defines_required=True,
    has_distinct_first_keys=True,
    refuses_lookaround=True,
    most_levels=10,
    most_properties=5000,
    most_literals=1000,
)
"""Strict functions and strict `json_schema` formats (W14, W15)."""

ANTHROPIC = Profile(name="anthropic", refused_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
"""Tools that are not strict (W62)."""

ANTHROPIC_STRICT = Profile(
    name="anthropic-strict",
    keywords=_CORE | _REFERENCES | {"definitions", "const", "additionalProperties", "format"},
    formats=_FORMATS | {"uri"},
    literals=_SCALARS,
    any_types=("string", "number", "boolean", "null"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    wraps_root=True,
    cycles="cut",  # "Circular reference detected in schema definitions"
    reference_siblings=frozenset(),
    union_siblings=_ANNOTATIONS,
    needs_type=True,
    needs_items=True,
    is_closed=True,
    defines_required=True,
    most_min_items=1,
    most_optional=24,  # of all strict tools of a request together, as are the unions
    most_unions=16,
)
"""Strict tools and output formats: what the vendor's SDK makes of a schema before it sends it."""

GEMINI_PARAMETERS = Profile(
    name="gemini-parameters",
    keywords=_CORE
    | _BOUNDS
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
"""OpenAPI's subset (`parameters`, `responseSchema`): W90 to W94. Types are in lower case."""

GEMINI_JSON_SCHEMA = Profile(
    name="gemini-json-schema",
    keywords=_CORE
    | _REFERENCES
    | _BOUNDS
    | {"$id", "$anchor", "$schema", "format", "prefixItems", "maxItems"}
    | {"additionalProperties", "propertyOrdering", "default"},
    literals=frozenset({"string", "number", "integer"}),
    refused_at_root=frozenset({"anyOf", "oneOf", "enum", "const"}),
    cycles="optional",
    reference_siblings=frozenset({"$id", "$anchor", "$defs", "$schema"}),
)
"""`parametersJsonSchema` and `responseJsonSchema`: what is beyond this list is not looked at, and
`oneOf` is taken for `anyOf`."""

GEMINI_OUTPUT = msgspec.structs.replace(
    GEMINI_JSON_SCHEMA,
    name="gemini-output",
    has_object_root=False,
    refused_at_root=frozenset(),
)
"""`responseJsonSchema`, which may be of any type."""

OLLAMA = Profile(
    name="ollama",
    keywords=frozenset({"type", "description", "enum", "anyOf", "properties", "required", "items"}),
    refused_at_root=frozenset({"anyOf", "enum"}),
    cycles="cut",
)
"""Tools for Ollama: its server reads them into types, and what those lack never reaches a model."""

PROFILES = {
    profile.name: profile
    for profile in (
        *(PLAIN, OPENAI, OPENAI_STRICT, ANTHROPIC, ANTHROPIC_STRICT),
        *(GEMINI_PARAMETERS, GEMINI_JSON_SCHEMA, GEMINI_OUTPUT, OLLAMA),
    )
}
"""All of them, by name."""
