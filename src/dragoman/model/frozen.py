"""JSON values that can't be changed: what `metadata`, `extras`, arguments and payloads are made of.

They are a `dict` and a `list` that refuse to be modified, so they compare, print, unpack and
serialise as the ordinary ones do. `freeze` copies a caller's value into them and, on the way,
refuses what JSON can't carry: everything in a message can be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Never

from dragoman.errors import InvalidInputError

MAX_DEPTH = 100
"""How deep JSON values may nest: far more than providers send, far less than Python's stack."""

MAX_INTEGER_BITS = 4096
"""How large an integer may be: far more than anybody means, far less than Python writes as text."""

_PLAIN = frozenset({str, bool, type(None)})
_USUAL = 2**63  # integers within need no second look


def _refuse(self: object, *_args: object, **_kwargs: object) -> Never:
    msg = f"{type(self).__name__} can't be changed; make a changed copy instead"
    raise TypeError(msg)


class FrozenDict(dict[str, Any]):
    """A `dict` that can't be changed and whose values can't either. Hashable."""

    __slots__ = ("height",)
    height: int

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def with_item(self, key: str, value: Any) -> FrozenDict:
        """With one more entry, or another value for it."""
        return freeze_mapping({**self, key: value})

    def without(self, key: str) -> FrozenDict:
        """Without that entry; itself where there is none."""
        if key not in self:
            return self
        return freeze_mapping({name: value for name, value in self.items() if name != key})

    def __hash__(self) -> int:  # type: ignore[override]  # dict says None: not hashable
        # Keys are enough for a hash, and cheap; equality looks at the values.
        return hash(frozenset(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),)) if self else (_empty, ())

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> FrozenDict:
        return self


class FrozenList(list[Any]):
    """A `list` that can't be changed and whose items can't either. Hashable."""

    __slots__ = ("height",)
    height: int

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # list says None: not hashable
        return hash((FrozenList, len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> FrozenList:
        return self


_FROZEN = frozenset({FrozenDict, FrozenList})
EMPTY = FrozenDict()
"""The one empty mapping: fields default to it, and a field that is it is not written down."""


def _empty() -> FrozenDict:
    return EMPTY


if TYPE_CHECKING:
    JsonObject = Mapping[str, Any]
else:
    JsonObject = FrozenDict
"""The type of fields that hold a JSON object. Readers freeze it (`frozen_hook`); for people and
type checkers it is any mapping."""


def frozen_hook(kind: type, value: Any) -> Any:
    """Msgspec's `dec_hook`: what a `JsonObject` field becomes when it is read."""
    if kind is FrozenDict:
        return freeze_mapping(value)
    raise NotImplementedError  # msgspec's way of being told that the type is not ours


def freeze(value: Any, what: str = "value", depth: int = 0) -> Any:
    """A deep, unchangeable copy of a JSON value; raises where JSON can't carry it.

    `what` names the value in the error. The value itself is never quoted.
    """
    kind = type(value)
    if kind in _PLAIN or (kind is int and depth <= MAX_DEPTH and -_USUAL < value < _USUAL):
        return value
    if kind is FrozenDict or kind is FrozenList:
        # What is frozen already may end up deeper than it was.
        if depth and depth + _height_of(value) > MAX_DEPTH + 1:
            raise InvalidInputError(_too_deep(what))
        return value
    if depth > MAX_DEPTH:
        raise InvalidInputError(_too_deep(what))
    if kind is dict:
        return _freeze_mapping(value, what, depth)
    if isinstance(value, (list, tuple)):
        inner = depth + 1
        return FrozenList(
            [item if type(item) in _PLAIN else freeze(item, what, inner) for item in value]
        )
    if kind is not float and isinstance(value, Mapping):  # asking costs six times as much as `is`
        return _freeze_mapping(value, what, depth)
    return _freeze_scalar(value, what)


def _too_deep(what: str) -> str:
    return f"{what} nests deeper than {MAX_DEPTH} levels"


def _height_of(value: FrozenDict | FrozenList) -> int:
    """How many levels of containers a frozen value has; looked at once, then remembered."""
    try:
        return value.height
    except AttributeError:
        items = value.values() if isinstance(value, FrozenDict) else value
        inner = [_height_of(item) for item in items if type(item) in _FROZEN]
        value.height = 1 + max(inner, default=0)
        return value.height


def freeze_mapping(value: Any, what: str = "value") -> FrozenDict:
    """`freeze` for what has to be a mapping; None is empty."""
    if value is None:
        return EMPTY
    kind = type(value)
    if kind is FrozenDict:
        return value  # type: ignore[no-any-return]  # its type was just looked at
    if kind is dict or isinstance(value, Mapping):
        return _freeze_mapping(value, what, 0)
    msg = f"{what} must be a mapping, not {type(value).__name__}"
    raise InvalidInputError(msg)


def _freeze_mapping(value: Mapping[Any, Any], what: str, depth: int) -> FrozenDict:
    frozen: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            key = _freeze_key(key, what)  # noqa: PLW2901 - a str subclass becomes a plain str
        kind = type(item)
        if kind in _PLAIN or (kind is int and depth < MAX_DEPTH and -_USUAL < item < _USUAL):
            frozen[key] = item  # as `freeze` has it, without the call: most are these
        else:
            frozen[key] = freeze(item, what, depth + 1)
    return FrozenDict(frozen) if frozen else EMPTY


def _freeze_key(key: Any, what: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    msg = f"{what} has a key of type {type(key).__name__}; JSON keys are strings"
    raise InvalidInputError(msg)


def _freeze_scalar(value: Any, what: str) -> Any:
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        msg = f"{what} holds NaN or an infinity, which JSON can't carry"
        raise InvalidInputError(msg)
    if isinstance(value, str):  # an enum or another subclass
        return str.__str__(value)
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            msg = f"{what} holds an integer of more than {MAX_INTEGER_BITS} bits"
            raise InvalidInputError(msg)
        return int(value)
    msg = f"{what} holds a {type(value).__name__}; only JSON values can be stored"
    raise InvalidInputError(msg)


def thaw(value: Any) -> Any:
    """An ordinary, changeable copy of a frozen value; tuples become lists."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value
