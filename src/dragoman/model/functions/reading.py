"""Validates JSON and converts it to a Python type; error messages quote no values."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.functions.schema import schema_for, shape_for
from dragoman.model.functions.shapes import MisfitError
from dragoman.model.validation.problems import in_sentences, problems


def read_as(kind: Any, value: Any, what: str) -> Any:
    """Converts a value to a type; `what` names the value in error messages."""
    schema, shape = _prepared(kind)
    found = problems(schema, value)
    if found:
        msg = f"{what} don't match the schema: {in_sentences(found)}"
        raise InvalidInputError(msg)
    try:
        return shape.read(value)
    except MisfitError as misfit:
        msg = f"{what} don't match the schema: ${misfit.path}: expected {misfit.expected}"
    raise InvalidInputError(msg)


def _prepared(kind: Any) -> tuple[dict[str, Any], Any]:
    if not isinstance(kind, Hashable):
        msg = f"arguments can't be read as a {type(kind).__name__}; pass a type"
        raise InvalidInputError(msg)
    # Unions are equal in any order, but the first matching arm is read: hence the repr in the key.
    return _remembered(kind, repr(kind))


@lru_cache(maxsize=256)
def _remembered(kind: Any, _text: str) -> tuple[dict[str, Any], Any]:
    return schema_for(kind), shape_for(kind)
