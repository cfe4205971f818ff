"""Schemas of tools as the server's types take them: others fail the whole request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def accepted(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The parameters of a tool from elsewhere, and whether they had to be changed."""
    found = _property(schema)
    if found.get("type") != "object":
        found = {**found, "type": "object"}
    return found, any(found.get(key) != value for key, value in schema.items())


def _property(schema: Any) -> Mapping[str, Any]:
    """A schema whose fields are of the server's types; what is not is left out."""
    if not isinstance(schema, Mapping):
        return {}  # true: anything
    changes: dict[str, Any] = {}
    for key, value in schema.items():
        kept = value
        if key == "properties":
            kept = _properties(value)
        elif key == "anyOf":
            kept = [_property(item) for item in value] if _is_list(value) else None
        elif not is_of_type(key, value):
            kept = None
        if kept is not value and kept != value:
            changes[key] = kept
    if not changes:
        return schema
    merged = {**schema, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def _properties(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {name: _property(item) for name, item in value.items()}


def is_of_type(key: str, value: object) -> bool:
    """Whether a keyword has a value that the server can read."""
    if value is None:
        return True
    if key == "type":
        return isinstance(value, str) or _are_texts(value)
    if key == "required":
        return _are_texts(value)
    if key == "description":
        return isinstance(value, str)
    return key != "enum" or _is_list(value)


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _are_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
