"""What a target takes of JSON Schema: each dialect has its own profiles, made of these."""

from __future__ import annotations

from typing import Literal

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
