"""The JSON Schema of Python types, for the arguments of tools.

| Python | JSON Schema |
|---|---|
| `str` `int` `float` `bool` `None` `Any` | their types; `{}` for `Any` |
| `list` `Sequence` `set` `tuple` | an array; a set has `uniqueItems`, a fixed tuple its items |
| `dict` `Mapping` | an object with `additionalProperties` |
| dataclass, TypedDict, NamedTuple, msgspec Struct, pydantic v2 model | an object with properties |
| `Literal`, Enum | `enum` |
| unions, `X | None` | `anyOf`, or a list of types where that is enough |
| `Annotated[X, …]` | X with the metadata as keywords; a plain string is the description |
| `datetime` `date` `time` `timedelta` `UUID` | a string with a `format` |
| `Decimal` `bytes` `Path` | a string: with a `pattern`, in base64, plain |
"""

from __future__ import annotations

import collections
import enum
import types
from collections import abc
from collections.abc import Callable, Hashable
from typing import (
    Any,
    Final,
    Literal,
    NewType,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from msgspec import UnsetType

from dragoman.errors import InvalidInputError
from dragoman.model.functions import definitions
from dragoman.model.functions.definitions import Definitions
from dragoman.model.functions.fields import (
    Layout,
    Make,
    documentation,
    filled,
    hints_of,
    layout_of,
    maker_of,
    names_around,
)
from dragoman.model.functions.records import Model, Named, Record
from dragoman.model.functions.scalars import INTEGER_KEY, SCALARS, scalar_of
from dragoman.model.functions.shapes import (
    AnyOf,
    Anything,
    Array,
    Choice,
    FixedArray,
    Noted,
    Shape,
    Table,
)


def schema_for(kind: Any, *, closed: bool = False) -> dict[str, Any]:
    """The JSON Schema of a type.

    >>> schema_for(list[int])
    {'type': 'array', 'items': {'type': 'integer'}}

    `closed` forbids additional properties. Raises if JSON Schema can't describe the type.
    """
    return schema_of_shape(shape_for(kind), closed=closed)


def schema_of_shape(shape: Shape, *, closed: bool = False) -> dict[str, Any]:
    """The complete JSON Schema of a shape, including `$defs`."""
    named = Definitions()
    document = named.document(shape.schema(named))
    return definitions.closed(document) if closed else document


def shape_for(kind: Any, where: str = "") -> Shape:
    """The shape of a type; `where` names it in error messages."""
    return _Finder().find(kind, where or f"`{_name(kind)}`")


def shape_of_layout(layout: Layout, make: Make, name: str) -> Record:
    """The shape of fields that belong to no class, such as a function's parameters."""
    return _Finder().record(layout, make, name, "")


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", None) or kind)


_ARRAYS: dict[Any, tuple[Callable[[list[Any]], Any], bool]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence), (list, False)),
    **dict.fromkeys((abc.Iterable, abc.Collection), (list, False)),
    **dict.fromkeys((set, abc.Set, abc.MutableSet), (set, True)),
    frozenset: (frozenset, True),
    tuple: (tuple, False),
    collections.deque: (collections.deque, False),
}
_TABLES: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), dict),
    collections.OrderedDict: collections.OrderedDict,
}
_WRAPPERS = (Required, NotRequired, Final)


class _Finder:
    """Finds the shapes of types; caches named ones, so that a type may contain itself."""

    def __init__(self) -> None:
        self._named: dict[Hashable, Named] = {}

    def find(self, kind: Any, where: str) -> Shape:
        if hasattr(kind, "__metadata__"):
            return Noted(self.find(kind.__origin__, where), kind.__metadata__)
        if kind is Any or kind is object:
            return Anything()
        if kind is None:
            return SCALARS[type(None)]
        if isinstance(kind, type) and kind in SCALARS:
            return SCALARS[kind]
        unwrapped = _unwrapped(kind)
        if unwrapped is not None:
            return self.find(unwrapped, where)
        return self._find_generic(kind, get_origin(kind) or kind, get_args(kind), where)

    def _find_generic(self, kind: Any, origin: Any, args: tuple[Any, ...], where: str) -> Shape:
        if origin is Literal:
            return Choice(tuple((_plain(value, where), value) for value in args))
        if origin in {Union, types.UnionType}:
            arms = [arm for arm in args if arm is not UnsetType]  # msgspec's "absent"
            return AnyOf(tuple(self.find(arm, where) for arm in arms))
        if origin is tuple or origin in _ARRAYS or origin in _TABLES:
            return self._find_container(origin, args, where)
        if hasattr(origin, "__value__"):
            return self._find_alias(kind, origin, args, where)
        if isinstance(origin, type):
            return self._find_class(kind, origin, args, where)
        raise _undescribable(kind, where)

    def _find_container(self, origin: Any, args: tuple[Any, ...], where: str) -> Shape:
        if origin in _TABLES:
            key = self._find_key(args[0] if args else str, where)
            item = self.find(args[1] if args else Any, _step(where, ".*"))
            return Table(key, item, _TABLES[origin])
        if origin is tuple and args and args[-1] is not Ellipsis:
            steps = (self.find(arg, _step(where, f"[{at}]")) for at, arg in enumerate(args))
            return FixedArray(tuple(steps))
        make, is_unique = _ARRAYS[origin]
        return Array(self.find(args[0] if args else Any, _step(where, "[]")), make, is_unique)

    def _find_key(self, kind: Any, where: str) -> Shape:
        if kind is int:
            return INTEGER_KEY
        if kind is Any:
            return SCALARS[str]
        shape, named = self.find(kind, where), Definitions()
        if named.types(shape.schema(named)) == {"string"}:
            return shape
        msg = f"{where}: keys of a JSON object must be strings, not {_name(kind)}"
        raise InvalidInputError(msg)

    def _find_alias(self, kind: Any, origin: Any, args: tuple[Any, ...], where: str) -> Shape:
        def build() -> Shape:
            value = origin.__value__
            if isinstance(value, str):
                around = names_around(origin)
                value = hints_of(lambda: {"value": origin.__value__}, around, {}, where)["value"]
            return self.find(filled(value, _bound(origin, args)), where)

        return self._remember(kind, _label(origin, args), "", build)

    def _find_class(self, kind: Any, origin: type, args: tuple[Any, ...], where: str) -> Shape:
        if hasattr(origin, "model_json_schema") and hasattr(origin, "model_validate"):
            return Model(kind)
        if issubclass(origin, enum.Enum):
            return self._find_enum(origin, where)
        if (layout := layout_of(origin)) is not None:
            said = documentation(origin).description
            given = layout.filled(_bound(origin, args))

            def build() -> Shape:
                return self.record(given, maker_of(origin), origin.__name__, where)

            return self._remember(kind, _label(origin, args), said, build)
        if (shape := scalar_of(origin)) is not None:
            return shape
        raise _undescribable(kind, where)

    def _find_enum(self, kind: type[enum.Enum], where: str) -> Shape:
        if issubclass(kind, enum.Flag):
            raise _undescribable(kind, where)
        members = tuple((_plain(member.value, where), member) for member in kind)
        said = documentation(kind).description
        return self._remember(kind, kind.__name__, said, lambda: Choice(members))

    def record(self, layout: Layout, make: Make, name: str, where: str) -> Record:
        steps = (
            _step(where, f".{field.name}") if where else f"parameter `{field.name}`"
            for field in layout.fields
        )
        kinds = (field.kind for field in layout.fields)
        return Record(layout, tuple(map(self.find, kinds, steps)), make, name)

    def _remember(self, kind: Any, name: str, said: str, build: Callable[[], Shape]) -> Shape:
        key = kind if _is_hashable(kind) else repr(kind)
        if key not in self._named:
            self._named[key] = named = Named(key, name, said)
            named.inner = build()
        return self._named[key]


def _is_hashable(kind: Any) -> bool:
    try:
        hash(kind)
    except TypeError:  # a type argument with unhashable metadata
        return False
    return True


def _unwrapped(kind: Any) -> Any:
    """The type inside a wrapper that does not affect the JSON form; `None` if there is none."""
    if isinstance(kind, NewType):
        return kind.__supertype__
    if isinstance(kind, TypeVar):
        if kind.__constraints__:
            return Union[kind.__constraints__]  # noqa: UP007 - they are a tuple
        return Any if kind.__bound__ is None else kind.__bound__
    origin = get_origin(kind)
    if origin in _WRAPPERS or getattr(origin, "_name", "") == "ReadOnly":
        return get_args(kind)[0]
    return None


def _plain(value: Any, where: str) -> Any:
    """The JSON value of a Literal or Enum member, as a plain str, int or float."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    msg = f"{where}: a value of type {type(value).__name__} can't be represented in JSON"
    raise InvalidInputError(msg)


def _bound(origin: Any, args: tuple[Any, ...]) -> dict[Any, Any]:
    names = getattr(origin, "__type_params__", ()) or getattr(origin, "__parameters__", ())
    return dict(zip(names, args, strict=False))


def _label(origin: Any, args: tuple[Any, ...]) -> str:
    return "_".join([_name(origin), *map(_name, args)])


def _step(where: str, step: str) -> str:
    return f"{where.removesuffix('`')}{step}`"


def _undescribable(kind: Any, where: str) -> InvalidInputError:
    advice = "use a dataclass, TypedDict, list, dict, Enum, str, …"
    return InvalidInputError(f"{where}: the type {_name(kind)} has no JSON Schema; {advice}")
