"""Kinds of typed output: one type or several, a function, or a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple, Union

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import FrozenDict, freeze_mapping, thaw
from dragoman.model.functions.schema import schema_of_shape, shape_for
from dragoman.model.functions.shapes import Shape
from dragoman.model.functions.signatures import signature_of
from dragoman.model.functions.tool import Tool, tool

_NAME_LENGTH = 64
_DEFAULT_NAME = "result"
_OF_TYPES = frozenset({"types", "typing", "typing_extensions"})  # where unions and aliases are from


class Kind(NamedTuple):
    """The schema of the value, and how to make the Python value from plain JSON."""

    schema: FrozenDict
    read: Callable[[Any], Any]
    """Converts a value that matches the schema; raises `MisfitError` if the type requires more."""
    name: str = _DEFAULT_NAME
    description: str | None = None
    function: Tool[..., Any, Any] | None = None
    """Called with the converted value to make the output; None: the value is the output."""


def kind_of(asked: Any) -> Kind:
    """The kind of an `output` argument; raises if JSON can't describe it."""
    if isinstance(asked, Mapping):
        return _of_schema(asked)
    if is_function(asked):
        return _of_function(asked)
    return _of_type(asked)


def is_function(asked: object) -> bool:
    """Whether the output is the return value of a function called with the model's arguments."""
    return isinstance(asked, (FunctionType, MethodType, partial, Tool))


def union_of(asked: list[Any] | tuple[Any, ...]) -> Any:
    """Any one of several types: `[Place, Refusal]` is `Place | Refusal`."""
    if not asked:
        msg = "the list of output types is empty"
        raise InvalidInputError(msg)
    for each in asked:
        _expect_type(each)
    try:
        return Union[tuple(asked)]  # noqa: UP007 - of as many as there are
    except TypeError:  # unhashable annotations, or something that only looks like a type
        msg = "the output types can't be combined: write them as a union, `Place | None`"
    raise InvalidInputError(msg)


def _of_function(asked: Any) -> Kind:
    made = asked if isinstance(asked, Tool) else _tool(asked)
    definition = made.definition
    if made.requires_approval is not False or definition.parameters is None:
        msg = f"`{made.name}` can't be the output: it requires approval, or takes free text"
        raise InvalidInputError(msg)
    schema = freeze_mapping(definition.parameters, "the schema of the output")
    said = signature_of(made.function).description or None
    return Kind(schema, made.validate, _name(made.name), said, made)


def _tool(function: Any) -> Tool[..., Any, Any]:
    """A tool without a required docstring or a valid name, since models see neither."""
    name = _name(getattr(function, "__name__", None))
    return tool(name=name, description="Gives the output.")(function)


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
    msg = f"the output type can't be described in JSON Schema ({problem})"
    raise InvalidInputError(msg)


def _expect_type(asked: Any) -> None:
    """Raise for a value, `Place("Mostar")` instead of `Place`, without quoting it."""
    if asked is None or isinstance(asked, type) or type(asked).__module__ in _OF_TYPES:
        return
    given = type(asked).__name__
    msg = f"output must be a type, such as `output=list[str]`, not a value of type {given}"
    raise InvalidInputError(msg)


def _name(name: object) -> str:
    """A name that every provider accepts."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name) if isinstance(name, str) else ""
    return plain.strip("_")[:_NAME_LENGTH] or _DEFAULT_NAME
