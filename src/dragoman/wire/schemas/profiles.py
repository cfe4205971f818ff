"""Profiles: the JSON Schema subset that a target supports. Each dialect defines its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

CORE = frozenset(
    {
        *("type", "title", "description", "enum", "anyOf"),
        *("properties", "required", "items", "minItems"),
    }
)
REFERENCES = frozenset({"$ref", "$defs"})
BOUNDS = frozenset({"minimum", "maximum"})
FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email"),
        *("hostname", "ipv4", "ipv6", "uuid"),
    }
)
SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
ANNOTATIONS = frozenset({"title", "description"})
_PLAIN = ANNOTATIONS | {"type"}
_PLAIN_TYPES = SCALARS - {"null"}


class Profile(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The JSON Schema subset of a target. By default everything is supported."""

    name: str
    keywords: frozenset[str] | None = None
    """Supported keywords; None for all."""
    formats: frozenset[str] | None = None
    literals: frozenset[str] | None = None
    """The types of values that an `enum` may hold."""
    any_types: tuple[str, ...] = ()
    """The types to use for "anything" if every schema needs a type."""

    has_object_root: bool = True
    """Whether the root must be a plain object."""
    refused_at_root: frozenset[str] = frozenset()
    wraps_root: bool = False
    """Whether alternatives at the root are wrapped in a property instead of merged."""

    cycles: Literal["kept", "optional", "cut"] = "kept"
    """How circular references are handled: kept, kept in optional properties, or cut."""
    reference_siblings: frozenset[str] | None = None
    union_siblings: frozenset[str] | None = None
    unrolled: int = 2
    """How many times a definition may be nested in itself where circles are cut."""

    needs_type: bool = False
    needs_items: bool = False
    has_single_types: bool = False
    """Whether a schema has a single type, with `nullable` beside it (W91)."""
    is_closed: bool = False
    """Whether every object must have `additionalProperties: false` (W14)."""
    requires_all: bool = False
    """Whether optional properties must become required nullable ones (W14)."""
    defines_required: bool = False
    """Whether required properties must be declared."""
    has_distinct_first_keys: bool = False
    """Whether alternatives must differ in their first property (W15)."""
    refuses_lookaround: bool = False
    refuses_empty_literal: bool = False
    max_min_items: int | None = None
    max_levels: int | None = None
    """Maximum nesting of objects, the root included."""
    max_properties: int | None = None
    max_literals: int | None = None
    max_optional: int | None = None
    max_unions: int | None = None

    def takes(self, keyword: str) -> bool:
        """Whether it supports a keyword."""
        return self.keywords is None or keyword in self.keywords

    def takes_as_it_is(self, schema: Mapping[str, Any]) -> bool:
        """Whether a schema has just a type, and labels, that it supports. Most schemas do."""
        types = schema.get("type")
        for key, value in schema.items():
            if key not in _PLAIN or not self.takes(key):
                return False
            if value is not types and not isinstance(value, str):
                return False
        if isinstance(types, str):
            return types in _PLAIN_TYPES
        return (
            isinstance(types, list)
            and not self.has_single_types
            and 0 < len(types) <= len(SCALARS)
            and all(isinstance(each, str) and each in SCALARS for each in types)
            and len({*types}) == len(types)
        )

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"


PLAIN = Profile(name="plain", has_object_root=False)
"""No changes: for servers that compile any schema (llama.cpp) or ignore it."""
