"""What Anthropic takes of JSON Schema."""

from __future__ import annotations

from dragoman.wire.schemas.profiles import ANNOTATIONS, CORE, FORMATS, REFERENCES, SCALARS, Profile
from dragoman.wire.schemas.request_schemas import Profiles
from dragoman.wire.target import Target

ANTHROPIC = Profile(name="anthropic", refused_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
"""Tools that are not strict (W62)."""

ANTHROPIC_STRICT = Profile(
    name="anthropic-strict",
    keywords=CORE | REFERENCES | {"definitions", "const", "additionalProperties", "format"},
    formats=FORMATS | {"uri"},
    literals=SCALARS,
    any_types=("string", "number", "boolean", "null"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    wraps_root=True,
    cycles="cut",  # "Circular reference detected in schema definitions"
    reference_siblings=frozenset(),
    union_siblings=ANNOTATIONS,
    needs_type=True,
    needs_items=True,
    is_closed=True,
    defines_required=True,
    most_min_items=1,
    most_optional=24,  # of all strict tools of a request together, as are the unions
    most_unions=16,
)
"""Strict tools and output formats: what the vendor's SDK makes of a schema before it sends it."""

ANTHROPICS = Profiles(ANTHROPIC_STRICT, ANTHROPIC)
_ANTHROPICS_OF_OTHERS = Profiles(ANTHROPIC, ANTHROPIC)


def anthropic_profiles(target: Target) -> Profiles:
    """Those of a host that speaks Anthropic's dialect."""
    return ANTHROPICS if target.schemas.checks_strict else _ANTHROPICS_OF_OTHERS
