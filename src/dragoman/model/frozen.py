"""Immutable JSON values, used for `metadata`, `extras`, arguments and payloads.

They are a `dict` and a `list` that reject modification, so they compare, print, unpack and
serialise like the built-in types. `freeze` makes a deep copy and raises for anything that is not
JSON, so everything in a message can be stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Never

from dragoman.errors import InvalidInputError

MAX_DEPTH = 100
"""Maximum nesting of JSON values: far above what providers send, far below Python's stack limit."""

MAX_INTEGER_BITS = 4096
"""Maximum size of an integer: far above any real use, far below Python's limit for conversion."""

_PLAIN = frozenset({str, bool, type(None)})
_INT_LIMIT = 2**63  # smaller integers need no further check


def _reject_change(self: object, *_args: object, **_kwargs: object) -> Never:
    msg = f"{type(self).__name__} is immutable; create a modified copy instead"
    raise TypeError(msg)


class FrozenDict(dict[str, Any]):
    """An immutable, hashable `dict`, whose values are immutable too."""

    __slots__ = ("height",)
    height: int

    __setitem__ = __delitem__ = __ior__ = _reject_change
    clear = pop = popitem = setdefault = update = _reject_change

    def with_item(self, key: str, value: Any) -> FrozenDict:
        """Returns a copy with an entry set."""
        return freeze_mapping({**self, key: value})

    def without(self, key: str) -> FrozenDict:
        """Returns a copy without an entry; itself if there is no such entry."""
        if key not in self:
            return self
        return freeze_mapping({name: value for name, value in self.items() if name != key})

    def __hash__(self) -> int:  # type: ignore[override]  # dict says None: not hashable
        # The keys are enough for a hash, and cheap; equality compares the values.
        return hash(frozenset(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),)) if self else (_empty, ())

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> FrozenDict:
        return self


class FrozenList(list[Any]):
    """An immutable, hashable `list`, whose items are immutable too."""

    __slots__ = ("height",)
    height: int

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _reject_change
    append = clear = extend = insert = pop = remove = reverse = sort = _reject_change

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
"""The empty mapping: the default of mapping fields, and omitted when written."""


def _empty() -> FrozenDict:
    return EMPTY


if TYPE_CHECKING:
    JsonObject = Mapping[str, Any]
else:
    JsonObject = FrozenDict
"""The type of fields that hold a JSON object. Decoders freeze it (`frozen_hook`); type checkers
see any mapping."""


def frozen_hook(kind: type, value: Any) -> Any:
    """The `dec_hook` for msgspec: freezes `JsonObject` fields."""
    if kind is FrozenDict:
        return freeze_mapping(value)
    raise NotImplementedError  # tells msgspec that the type is not supported here


def freeze(value: Any, what: str = "value", depth: int = 0) -> Any:
    """A deep, immutable copy of a JSON value; raises `InvalidInputError` if it is not JSON.

    `what` names the value in the error message. The value itself is never quoted.
    """
    kind = type(value)
    if kind in _PLAIN or (kind is int and depth <= MAX_DEPTH and -_INT_LIMIT < value < _INT_LIMIT):
        return value
    if kind is FrozenDict or kind is FrozenList:
        # A frozen value may be nested deeper here than where it was frozen.
        if depth and depth + _height_of(value) > MAX_DEPTH + 1:
            raise InvalidInputError(_too_deep(what))
        return value
    if depth > MAX_DEPTH:
        raise InvalidInputError(_too_deep(what))
    if kind is dict:
        return _freeze_mapping(value, what, depth)
    if isinstance(value, (list, tuple)):
        return _freeze_list(value, what, depth)
    if kind is not float and isinstance(value, Mapping):  # six times as slow as an `is` check
        return _freeze_mapping(value, what, depth)
    return _freeze_scalar(value, what)


def _too_deep(what: str) -> str:
    return f"{what} is nested deeper than {MAX_DEPTH} levels"


def _height_of(value: FrozenDict | FrozenList) -> int:
    """The number of container levels in a frozen value; computed once and cached on it."""
    try:
        return value.height
    except AttributeError:
        items = value.values() if isinstance(value, FrozenDict) else value
        inner = [_height_of(item) for item in items if type(item) in _FROZEN]
        value.height = 1 + max(inner, default=0)
        return value.height


def freeze_mapping(value: Any, what: str = "value") -> FrozenDict:
    """Like `freeze`, for values that must be mappings; `None` gives an empty one."""
    if value is None:
        return EMPTY
    kind = type(value)
    if kind is FrozenDict:
        return value  # type: ignore[no-any-return]  # its type was just checked
    if kind is dict or isinstance(value, Mapping):
        return _freeze_mapping(value, what, 0)
    msg = f"{what} must be a mapping, not {type(value).__name__}"
    raise InvalidInputError(msg)


def _freeze_list(value: Iterable[Any], what: str, depth: int) -> FrozenList:
    frozen = FrozenList(value)
    for index, item in enumerate(frozen):
        if type(item) not in _PLAIN:
            list.__setitem__(frozen, index, freeze(item, what, depth + 1))
    return frozen


def _freeze_mapping(value: Mapping[Any, Any], what: str, depth: int) -> FrozenDict:
    frozen: dict[Any, Any] | None = None
    for key, item in value.items():
        kind = type(item)
        if type(key) is not str:
            return _freeze_mapping(_with_plain_keys(value, what), what, depth)
        if kind in _PLAIN:
            continue
        # As in `freeze`, without the call: the most frequent cases.
        if kind is int and depth < MAX_DEPTH and -_INT_LIMIT < item < _INT_LIMIT:
            continue
        if frozen is None:
            frozen = dict(value)
        if kind is dict and depth < MAX_DEPTH:
            frozen[key] = _freeze_mapping(item, what, depth + 1)
        else:
            frozen[key] = freeze(item, what, depth + 1)
    return FrozenDict(value if frozen is None else frozen) or EMPTY


def _with_plain_keys(value: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """A copy in which keys of a subclass of `str` are plain ones."""
    return {_freeze_key(key, what): item for key, item in value.items()}


def _freeze_key(key: Any, what: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    msg = f"{what} has a key of type {type(key).__name__}; JSON keys are strings"
    raise InvalidInputError(msg)


def _freeze_scalar(value: Any, what: str) -> Any:
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        msg = f"{what} contains NaN or infinity, which JSON does not support"
        raise InvalidInputError(msg)
    if isinstance(value, str):  # an enum or another subclass
        return str.__str__(value)
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            msg = f"{what} contains an integer of more than {MAX_INTEGER_BITS} bits"
            raise InvalidInputError(msg)
        return int(value)
    msg = f"{what} contains a {type(value).__name__}; only JSON values are supported"
    raise InvalidInputError(msg)


def thaw(value: Any) -> Any:
    """A mutable copy of a frozen value; tuples become lists."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value
