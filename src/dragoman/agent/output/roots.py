"""Output schemas for the wire, whose root must be a plain object (W15, W62)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman.model.functions.definitions import Schema, mapped

RESULT = "result"
"""The property that holds the value if the root would not be an object."""

_SHARED = ("$defs", "definitions")
_WRAPPED_ROOT = f"#/properties/{RESULT}"
_ROOT_REFERENCE = re.compile(rf"#(?:/(?!(?:{'|'.join(map(re.escape, _SHARED))})/)|$)")
"""A reference to the root, or to something in it that is not a definition."""
# Keywords that strict targets reject at the root.
_COMBINATORS = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "enum", "const", "$ref"})


def is_plain_object(schema: Mapping[str, Any]) -> bool:
    """Whether every target accepts this as a root."""
    return schema.get("type") == "object" and _COMBINATORS.isdisjoint(schema)


def wrapped(schema: Mapping[str, Any]) -> Schema:
    """An object with a property of that schema; definitions stay at the root, references valid."""
    moved = _moved({key: value for key, value in schema.items() if key not in _SHARED})
    shared = {key: _moved_all(schema[key]) for key in _SHARED if key in schema}
    return {
        "type": "object",
        "properties": {RESULT: moved},
        "required": [RESULT],
        "additionalProperties": False,
        **shared,
    }


def _moved_all(schemas: Any) -> Any:
    if not isinstance(schemas, Mapping):
        return schemas
    return {
        name: _moved(inner) if isinstance(inner, Mapping) else inner
        for name, inner in schemas.items()
    }


def _moved(schema: Mapping[str, Any]) -> Schema:
    """A copy whose references are adjusted to the new root."""
    changed = mapped(schema, _moved)
    reference = changed.get("$ref")
    if isinstance(reference, str) and _ROOT_REFERENCE.match(reference):
        changed["$ref"] = _WRAPPED_ROOT + reference[1:]
    return changed
