"""What a typed output is asked for as: a Python type, or a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import FrozenDict, freeze_mapping, thaw
from dragoman.model.functions.schema import schema_of_shape, shape_for
from dragoman.model.functions.shapes import Shape

_NAME_LENGTH = 64
_USUAL_NAME = "result"
_OF_TYPES = frozenset({"types", "typing", "typing_extensions"})  # where unions and aliases are from


class Kind(NamedTuple):
    """What the value must be like, and what makes the Python value of the plain one."""

    schema: FrozenDict
    read: Callable[[Any], Any]
    """Expects what fits the schema; raises `MisfitError` where the type wants more than it says."""
    name: str = _USUAL_NAME
    description: str | None = None


def kind_of(asked: Any) -> Kind:
    """The kind that a type or a schema stands for; raises where JSON can't describe it."""
    return _of_schema(asked) if isinstance(asked, Mapping) else _of_type(asked)


def _of_schema(asked: Mapping[str, Any]) -> Kind:
    schema = freeze_mapping(asked, "the schema of the output")
    description = schema.get("description")
    said = description if isinstance(description, str) and description else None
    return Kind(schema, thaw, _name(schema.get("title")), said)


def _of_type(asked: Any) -> Kind:
    _expect_type(asked)
    shape, schema = _described(asked)
    name = asked.__name__ if isinstance(asked, type) else None
    frozen = freeze_mapping(schema, "the schema of the output")
    return Kind(frozen, shape.read, _name(name), schema.get("description"))


def _described(asked: Any) -> tuple[Shape, dict[str, Any]]:
    try:
        shape = shape_for(asked)
        return shape, schema_of_shape(shape, closed=True)
    except InvalidInputError:
        raise
    except Exception as error:  # noqa: BLE001 - a class of the user's describes itself (pydantic)
        problem = type(error).__name__
    msg = f"JSON Schema can't describe the type of the output ({problem})"
    raise InvalidInputError(msg)


def _expect_type(asked: Any) -> None:
    """Raise for a value, `Place("Mostar")` in place of `Place`, without quoting it."""
    if asked is None or isinstance(asked, type) or type(asked).__module__ in _OF_TYPES:
        return
    given = type(asked).__name__
    msg = f"the output is a type, as in `output=list[str]`, not a value of the type {given}"
    raise InvalidInputError(msg)


def _name(name: object) -> str:
    """A name that every provider takes."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name) if isinstance(name, str) else ""
    return plain.strip("_")[:_NAME_LENGTH] or _USUAL_NAME
