"""Random values of any type of the model, made from the types' own fields.

A new field or a new type is covered as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from msgspec import UNSET, inspect

import dragoman
from dragoman.errors import InvalidInputError
from dragoman.model.frozen import MAX_INTEGER_BITS
from dragoman.model.value import Value, unchecked


def value_types() -> list[type[Value]]:
    """All types of the model that can be made, public or not."""
    for module in (dragoman, dragoman.model, dragoman.events, dragoman.tools):
        _ = [getattr(module, name) for name in module.__all__]  # load them all
    found = {kind for kind in _below(Value) if kind.__struct_fields__ and _is_ours(kind)}
    return sorted(found - {dragoman.Image.__base__, dragoman.Text.__base__}, key=_name)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def _is_ours(kind: type[Value]) -> bool:
    # Providers are configuration: they hold nothing that was said, and nobody stores them.
    layer = kind.__module__.split(".")[:2]
    return layer in (["dragoman", "model"], ["dragoman", "wire"]) and kind.__name__[0] != "_"


def _name(kind: type[Value]) -> str:
    return kind.__name__


def texts(min_size: int = 0) -> st.SearchStrategy[str]:
    """Texts of all characters: NUL, astral ones and lone surrogates too."""
    return st.text(st.characters(exclude_categories=()), min_size=min_size, max_size=20).map(_whole)


def _whole(text: str) -> str:
    # Two halves side by side are one character in JSON; here they are one from the beginning.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_integers = st.integers() | st.integers(-(2**MAX_INTEGER_BITS) + 1, 2**MAX_INTEGER_BITS - 1)
_floats = st.floats(allow_nan=False, allow_infinity=False)


def json_values() -> st.SearchStrategy[Any]:
    """All that JSON can carry."""
    return st.recursive(
        st.none() | st.booleans() | _integers | _floats | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=6,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects."""
    return st.dictionaries(texts(), json_values(), max_size=3)


@st.composite
def values(draw: st.DrawFn, kind: type[Any]) -> Any:
    """Values of one type, all of its fields filled at random."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for _ in range(5):
        fields = {
            field.name: draw(_of(field.type))
            for field in info.fields
            if field.required or draw(st.booleans())
        }
        try:
            return unchecked(kind)(**fields)
        except InvalidInputError:
            continue  # not everything that the types allow is allowed
    assume(False)
    raise AssertionError


def any_values() -> st.SearchStrategy[Any]:
    """Values of all types."""
    return st.sampled_from(value_types()).flatmap(values)


_OF_TYPE: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.StrType: texts(),
    inspect.IntType: st.integers(),
    inspect.FloatType: _floats,
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.AnyType: json_values(),
    inspect.DictType: json_objects(),
    inspect.CustomType: json_objects(),  # a frozen mapping
}


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one for each kind of type
    if isinstance(info, inspect.Metadata):
        return _of(info.type)
    if isinstance(info, inspect.UnionType):
        return st.one_of([_of(member) for member in info.types])
    if isinstance(info, inspect.LiteralType):
        return st.sampled_from(info.values)
    if isinstance(info, inspect.EnumType):
        return st.sampled_from(list(info.cls))
    if isinstance(info, inspect.StructType):
        return values(info.cls)
    if isinstance(info, inspect.VarTupleType):
        return st.lists(_of(info.item_type), max_size=3).map(tuple)
    if type(info).__name__ == "UnsetType":
        return st.just(UNSET)
    return _OF_TYPE[type(info)]
