"""The fields of dataclasses, TypedDicts, NamedTuples and msgspec Structs, in one common form."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    NotRequired,
    Required,
    TypeVar,
    get_args,
    get_origin,
)

import msgspec
from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze, thaw
from dragoman.model.functions.docstrings import Docstring, parse

_EMPTY_FACTORIES = (list, dict, set, frozenset, tuple)


class Field(NamedTuple):
    """One field: its name in Python and in JSON, its type, default and description."""

    name: str
    key: str
    kind: Any
    is_required: bool = True
    default: Any = UNSET
    """The default as JSON; unset if there is none or it is not JSON."""
    description: str | None = None


class Layout(NamedTuple):
    """The fields of a class, and the structure of its JSON form."""

    fields: tuple[Field, ...]
    tag: tuple[str, str | int] | None = None
    is_closed: bool = False
    is_array: bool = False

    def filled(self, variables: Mapping[Any, Any]) -> Layout:
        """The layout of a generic class with its type variables replaced."""
        fields = (field._replace(kind=filled(field.kind, variables)) for field in self.fields)
        return self._replace(fields=tuple(fields))


def layout_of(kind: type) -> Layout | None:
    """The layout of a class that has fields, or `None` for other classes."""
    if issubclass(kind, msgspec.Struct):
        return _struct(kind)
    if dataclasses.is_dataclass(kind):
        return Layout(tuple(_dataclass(kind)))
    if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        return Layout(tuple(_typed_dict(kind)))
    if issubclass(kind, tuple) and hasattr(kind, "_field_defaults"):
        return Layout(tuple(_named_tuple(kind)))
    return None


def documentation(kind: type) -> Docstring:
    """The class's own docstring; ignores those that Python generates."""
    text = vars(kind).get("__doc__")
    is_made_up = isinstance(text, str) and text.startswith(f"{kind.__name__}(")
    return Docstring() if is_made_up or not isinstance(text, str) else parse(text)


def hints_of(
    annotations: Callable[[], Mapping[str, Any]],
    names: Mapping[str, Any],
    known: Mapping[str, Any],
    what: str,
) -> dict[str, Any]:
    """Resolves annotations to types; raises a clear error for an unknown name."""
    try:
        # In a class, because it allows `ClassVar`. From 3.14 on, reading annotations may raise.
        holder = type("Annotated", (), {"__annotations__": dict(annotations())})
        return typing.get_type_hints(holder, dict(names), dict(known), include_extras=True)
    except NameError as error:
        problem = f"refers to the type `{error.name}`, which is not defined there"
    except (SyntaxError, TypeError, AttributeError) as error:
        problem = f"has an annotation that is not a type ({type(error).__name__})"
    msg = f"{what} {problem}"
    raise InvalidInputError(msg)


def json_default(value: object) -> Any:
    """A default as JSON, or unset if that is not possible."""
    if value is UNSET or value is dataclasses.MISSING or value is msgspec.NODEFAULT:
        return UNSET
    try:
        return thaw(freeze(msgspec.to_builtins(value)))
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return UNSET


def _json_factory(factory: Any) -> Any:
    """The value of a default factory; only factories that return the same value are called."""
    return json_default(factory()) if factory in _EMPTY_FACTORIES else UNSET


def _class_hints(kind: type) -> dict[str, Any]:
    what = f"`{kind.__name__}`"
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):  # each with the globals of its own module
        known = {kind.__name__: kind, base.__name__: base}
        own = functools.partial(inspect.get_annotations, base)
        hints |= hints_of(own, names_around(base), known, what)
    settled = _settled(kind)
    return {name: filled(hint, settled) for name, hint in hints.items()} if settled else hints


def names_around(kind: Any) -> dict[str, Any]:
    """The globals of the module that defines a class or function."""
    return vars(sys.modules.get(kind.__module__, typing))


def _settled(kind: type) -> dict[Any, Any]:
    """The type variables that a class's bases bind, as in `class Numbers(Box[int])`."""
    found: dict[Any, Any] = {}
    for base in kind.__mro__:
        for made in vars(base).get("__orig_bases__", ()):
            parameters = getattr(get_origin(made), "__parameters__", ())
            found |= dict(zip(parameters, get_args(made), strict=False))
    return {variable: found[variable] for variable in found if not _is_open(kind, variable)}


def _is_open(kind: Any, variable: object) -> bool:
    return variable in getattr(kind, "__parameters__", ())


def filled(hint: Any, variables: Mapping[Any, Any]) -> Any:
    """A type with its type variables substituted."""
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    if isinstance(hint, type) or not getattr(hint, "__parameters__", ()):
        return hint  # an unsubscripted generic class has parameters too, which stay open
    return hint[tuple(variables.get(each, each) for each in hint.__parameters__)]


def _dataclass(kind: Any) -> typing.Iterator[Field]:
    hints, said = _class_hints(kind), documentation(kind).parameters
    fields: dict[str, dataclasses.Field[Any]] = kind.__dataclass_fields__
    for name, field in fields.items():
        hint = hints.get(name, Any)
        if not field.init or get_origin(hint) is ClassVar or hint is ClassVar:
            continue
        if isinstance(hint, dataclasses.InitVar):
            hint = hint.type
        described = field.metadata.get("description") or said.get(name)
        default = json_default(field.default)
        if field.default_factory is not dataclasses.MISSING:
            default = _json_factory(field.default_factory)
        absent = field.default is field.default_factory is dataclasses.MISSING
        note: Any = field.default
        if hasattr(note, "is_required"):  # pydantic's `Field(…)`, in its dataclasses
            hint, absent = Annotated[hint, note], note.is_required()
            default = json_default(note.default)
        yield Field(name, name, hint, absent, default, described)


def _typed_dict(kind: Any) -> typing.Iterator[Field]:
    said = documentation(kind).parameters
    for name, hint in _class_hints(kind).items():
        # `__required_keys__` is wrong for string annotations, so the hint is checked first.
        marked = _required_mark(hint)
        is_required = name in kind.__required_keys__ if marked is None else marked
        yield Field(name, name, hint, is_required, UNSET, said.get(name))


def _required_mark(hint: Any) -> bool | None:
    while (origin := get_origin(hint)) is not None:
        if origin in {Required, NotRequired}:
            return origin is Required
        if not hasattr(hint, "__metadata__") and getattr(origin, "_name", "") != "ReadOnly":
            return None
        hint = get_args(hint)[0]
    return None


def _named_tuple(kind: Any) -> typing.Iterator[Field]:
    hints, said = _class_hints(kind), documentation(kind).parameters
    for name in kind._fields:
        default = kind._field_defaults.get(name, UNSET)
        absent = name not in kind._field_defaults
        yield Field(name, name, hints.get(name, Any), absent, json_default(default), said.get(name))


def _struct(kind: type[msgspec.Struct]) -> Layout:
    hints, said = _class_hints(kind), documentation(kind).parameters
    names, keys = kind.__struct_fields__, kind.__struct_encode_fields__
    defaults = kind.__struct_defaults__
    required = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
    fields: list[Field] = []
    for name, key, given in zip(names, keys, required + defaults, strict=True):
        factory = getattr(given, "factory", None)  # msgspec wraps factories, and only those
        default = json_default(given) if factory is None else _json_factory(factory)
        absent = given is msgspec.NODEFAULT
        fields.append(Field(name, key, hints[name], absent, default, said.get(name)))
    config = kind.__struct_config__
    tag = None if config.tag is None else (str(config.tag_field), config.tag)
    return Layout(tuple(fields), tag, config.forbid_unknown_fields, config.array_like)


Make = Callable[[dict[str, Any]], Any]


def maker_of(kind: type) -> Make:
    """A function that creates an instance from a dict of its fields."""
    return dict if issubclass(kind, dict) else lambda fields: kind(**fields)
