"""The JSON shapes of the SDKs' types: TypedDicts and pydantic models."""

from __future__ import annotations

import datetime as dt
import enum
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import typing_extensions
from pydantic import BaseModel

_LISTS = frozenset({list, tuple, set, frozenset, Iterable, Sequence})
_MAPS = frozenset({dict, Mapping})
_WRAPPERS = frozenset({typing.Annotated, typing.Required, typing.NotRequired,
                       typing_extensions.ReadOnly})  # fmt: skip
_LEAVES: dict[Any, str] = {
    str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes", dt.datetime: "time",
    dt.date: "date", object: "any", dict: "any", Any: "any",
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """The JSON shape of a type."""


@dataclass(frozen=True)
class Leaf(Shape):
    """A string, a number, a boolean, or any value."""

    kind: str


@dataclass(frozen=True)
class Constants(Shape):
    """One of these constants."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Union(Shape):
    """One of these shapes; None means null."""

    members: tuple[Shape | None, ...]


@dataclass(frozen=True)
class Items(Shape):
    """A list."""

    inner: Shape


@dataclass(frozen=True)
class Entries(Shape):
    """An object with arbitrary keys."""

    inner: Shape


@dataclass(frozen=True)
class Object(Shape):
    """An object with fields, which are resolved on access, because types can be recursive."""

    name: str
    kind: type

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its fields."""
        return _fields_of(self.kind)


@dataclass(frozen=True)
class Field:
    """A field of an object, under its name on the wire."""

    name: str
    shape: Shape
    is_required: bool


@cache
def shape_of(kind: Any) -> Shape | None:
    """The shape of a type; None if it has no JSON (a file, a callable, a class)."""
    kind = _plain(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_of(arguments)
    if origin is Literal:
        return Constants(arguments)
    if origin in _LISTS or origin in _MAPS:
        inner = shape_of(arguments[-1] if origin in _MAPS else arguments[0])
        several = Entries if origin in _MAPS else Items
        return None if inner is None else several(inner)
    if isinstance(kind, type):
        return _class_shape(kind)
    return Leaf("any") if isinstance(kind, typing.TypeVar) else None


def _plain(kind: Any) -> Any:
    """A type without wrappers, with aliases resolved."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in _WRAPPERS or hasattr(kind, "__metadata__"):
        return _plain(arguments[0])
    if isinstance(kind, typing_extensions.TypeAliasType):
        return _plain(kind.__value__)
    if isinstance(origin, typing_extensions.TypeAliasType):
        return _plain(origin.__value__[arguments])
    return _plain(kind.__supertype__) if hasattr(kind, "__supertype__") else kind


def _class_shape(kind: type) -> Shape | None:
    if kind in (BaseModel, enum.Enum) or kind.__name__ == "Unset":
        return None  # the caller's own; Mistral's marker for an absent field
    if typing_extensions.is_typeddict(kind) or issubclass(kind, BaseModel):
        return Object(f"{kind.__module__}.{kind.__qualname__}", kind)
    if issubclass(kind, enum.Enum):
        return Constants(tuple(member.value for member in kind))
    return Leaf(_LEAVES[kind]) if kind in _LEAVES else None


def _union_of(arguments: Iterable[Any]) -> Shape | None:
    members: list[Shape | None] = []
    for argument in arguments:
        found = None if argument is type(None) else shape_of(argument)
        if found is not None or argument is type(None):
            members += found.members if isinstance(found, Union) else (found,)
    members = list(dict.fromkeys(members))
    return members[0] if len(members) == 1 else Union(tuple(members)) if members else None


@cache
def _fields_of(kind: type) -> tuple[Field, ...]:
    return tuple(_model_fields(kind) if issubclass(kind, BaseModel) else _dict_fields(kind))


def _model_fields(kind: type[BaseModel]) -> Iterator[Field]:
    kind.model_rebuild()
    for name, info in kind.model_fields.items():
        annotation: Any = info.annotation
        shape = shape_of(annotation)
        if shape is not None:
            alias = info.serialization_alias or info.alias or name
            fixed = _fixed(shape) if info.default is not None else None
            yield Field(alias, fixed or shape, info.is_required() or fixed is not None)


def _fixed(shape: Shape) -> Constants | None:
    """The only possible value of a field, if there is just one."""
    members = [each for each in (shape.members if isinstance(shape, Union) else (shape,)) if each]
    found = members[0] if len(members) == 1 else None
    return found if isinstance(found, Constants) and len(found.values) == 1 else None


def _dict_fields(kind: Any) -> Iterator[Field]:
    known = vars(sys.modules[kind.__module__])
    for name, hint in typing_extensions.get_type_hints(kind, known, include_extras=True).items():
        shape = shape_of(hint)
        if shape is not None:
            yield Field(_alias(hint) or name, shape, _is_required(kind, name, hint))


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """Whether a field is required; the class itself can't resolve hints given as strings."""
    origin = typing.get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in kind.__required_keys__


def _alias(hint: Any) -> str | None:
    """The name on the wire, if it differs because of a Python keyword."""
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        hint = typing.get_args(hint)[0]
    notes = getattr(hint, "__metadata__", ())
    return next((note.alias for note in notes if getattr(note, "alias", None)), None)
