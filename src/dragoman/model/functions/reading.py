"""JSON as a Python type, checked first: the errors tell what does not fit, and quote nothing."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.functions.schema import schema_for, shape_for
from dragoman.model.functions.shapes import MisfitError
from dragoman.model.validation.problems import in_sentences, problems


def read_as(kind: Any, value: Any, what: str) -> Any:
    """The value as that type; `what` names it in the error."""
    schema, shape = _prepared(kind)
    found = problems(schema, value)
    if found:
        msg = f"{what} does not fit: {in_sentences(found)}"
        raise InvalidInputError(msg)
    try:
        return shape.read(value)
    except MisfitError as misfit:
        msg = f"{what} does not fit: ${misfit.path}: expected {misfit.expected}"
    raise InvalidInputError(msg)


def _prepared(kind: Any) -> tuple[dict[str, Any], Any]:
    if not isinstance(kind, Hashable):
        msg = f"a {type(kind).__name__} is not a type to read arguments as"
        raise InvalidInputError(msg)
    # Unions are equal whatever their order, but the first arm that fits is read: hence the text.
    return _remembered(kind, repr(kind))


@lru_cache(maxsize=256)
def _remembered(kind: Any, _text: str) -> tuple[dict[str, Any], Any]:
    return schema_for(kind), shape_for(kind)
