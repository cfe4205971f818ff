"""`Value`: the base class of all model types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import force_setattr

from dragoman._reveal import is_revealed
from dragoman.errors import InvalidInputError
from dragoman.model import document
from dragoman.model.frozen import EMPTY, FrozenDict, freeze, freeze_mapping
from dragoman.model.jsontext import JsonText

P = ParamSpec("P")
T = TypeVar("T")

_MAX_REPR_CHARS = 2000
_is_shown = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII).fullmatch
_construct: Any = msgspec.StructMeta.__call__
_STRUCT: Any = msgspec.Struct  # it has more methods than its stub declares
shallow_copy: Callable[[Any], Any] = _STRUCT.__copy__
"""Copies a value without any checks, for use with `force_setattr`."""


def unchecked(kind: Callable[P, T]) -> Callable[P, T]:
    """The constructor of a `Checked` class without validation: for decoders, stores and fitting.

    It keeps whatever a provider sent, even if it would be invalid by hand. The result is a C
    function, so decoding pays nothing for the validation of hand-made values.
    """
    return _construct.__get__(kind)  # type: ignore[no-any-return]  # the class's own constructor


class Checked(msgspec.StructMeta):
    """The metaclass of values that validate the arguments of their constructor.

    msgspec also runs `__post_init__` for decoded values, so the rules for hand-made values can't go
    there. They are in `check_made`, which runs only when the class is called.
    """

    unchecked: Callable[..., Any]
    """The constructor without validation; see the function of this name."""

    if not TYPE_CHECKING:  # type checkers must see the class's own signature

        def __init__(self, *args: Any, **options: Any) -> None:
            """Keeps the bound constructor: binding it for each value takes as long as a check."""
            super().__init__(*args, **options)
            self.unchecked = _construct.__get__(self)

        def __call__(self, *args: Any, **fields: Any) -> Any:
            """Creates a value and validates it."""
            made = self.unchecked(*args, **fields) if fields else self.unchecked(*args)
            made.check_made()
            return made


class CheckedName(Checked):
    """The metaclass of values whose constructor checks a tool's name, portable or not."""

    if not TYPE_CHECKING:

        def __call__(self, *args: Any, portable: bool = True, **fields: Any) -> Any:
            """Creates a value and validates it."""
            made = self.unchecked(*args, **fields) if fields else self.unchecked(*args)
            made.check_made(portable)
            return made


class Value(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    eq=False,
    gc=False,
):
    """An immutable value whose `repr` shows its shape, never its content.

    `==` compares the fields of `_compared_fields`; `identical` compares every field.

    `gc=False`: values form trees, never cycles, so the garbage collector need not track them. This
    avoids collection pauses with conversations of 100,000 messages.
    """

    schema_excludes: ClassVar[frozenset[str]] = frozenset({"extras"})
    """The fields that `schema_of` omits, because people don't write them."""

    def _compared_fields(self) -> tuple[Any, ...]:
        """The fields compared by `==`; all of them by default."""
        return msgspec.structs.astuple(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Value) or type(self) is not type(other):
            return NotImplemented
        return bool(self._compared_fields() == other._compared_fields())

    def __ne__(self, other: object) -> bool:
        # Struct's own implementation compares addresses when `eq=False`.
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(self._compared_fields())

    def identical(self, other: object) -> bool:
        """Whether every field is equal, including ids, times, origins and extras."""
        return isinstance(other, Value) and _same(self, other)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        document.register(cls.__name__, cls)

    def to_json(self) -> bytes:
        """Serialises the value to versioned JSON, which `from_json` reads."""
        self.settle()
        return document.write_checked(type(self).__name__, self)

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """Reads the output of `to_json`; raises if it is malformed, of another kind or version.

        Tools, calls and results are also read from a plain object, as people write it.
        """
        try:
            value = document.read(raw, cls.__name__)
        except InvalidInputError:
            plain = cls._from_plain(raw)
            if plain is None:
                raise
            return plain
        expect(value, cls, "the value of the document")
        return value  # type: ignore[no-any-return]  # checked by expect

    @classmethod
    def _from_plain(cls, raw: JsonText) -> Self | None:  # noqa: ARG003 - for those that have a plain form
        """Reads a plain object, without a version; None if it is none of this kind."""
        return None

    def settle(self) -> None:
        """Assigns lazy fields (a message's id) before the value is serialised."""

    def __reduce__(self) -> tuple[Any, ...]:
        self.settle()
        return _restored, (type(self), msgspec.structs.asdict(self))

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with these fields changed."""
        if any(name not in self.__struct_fields__ for name in changes):
            fields = ", ".join(self.__struct_fields__)
            msg = f"{type(self).__name__} has no such field; its fields are {fields}"
            raise InvalidInputError(msg)
        return msgspec.structs.replace(self, **changes)

    def map_text(self, function: Callable[[str], str]) -> Self:
        """Returns a copy with every string that a provider would see as the function returns it.

        These are texts, thinking, arguments and results of tools, documents, descriptions, schemas,
        file names, opaque content and extras, each on its own. Names (ids, models, tools, keys of
        JSON) are left alone while they are plain. Returns the value itself if nothing changes.
        Signatures and sealed copies of a text that changes are dropped.
        """
        from dragoman.model.text_mapping import map_text

        return map_text(self, function)

    def replace_unchecked(self, **changes: Any) -> Self:
        """Like `replace`, without the validation of hand-made values: for decoders and stores."""
        return msgspec.structs.replace(self, **changes)

    def replace_trusted(self, **changes: Any) -> Self:
        """Like `replace_unchecked`, but the new values are not even converted.

        For a request of 20 messages, this takes 0.5 µs instead of 17.
        """
        made = shallow_copy(self)
        for name, value in changes.items():
            force_setattr(made, name, value)
        return made  # type: ignore[no-any-return]  # a copy has the same class

    def _sizes(self) -> Iterator[str]:
        """What `repr` shows in its parentheses: kinds and sizes only."""
        return iter(())

    def _shown(self) -> list[str]:
        if is_revealed():
            return [f"{name}={clipped(value)}" for name, value in self._non_default_fields()]
        try:
            return list(map(str, self._sizes()))
        except Exception:  # noqa: BLE001 - a field of the wrong type must not break logging
            return ["malformed"]

    def _non_default_fields(self) -> Iterator[tuple[str, Any]]:
        """The names and values of fields that differ from their default."""
        fields, usual = self.__struct_fields__, self.__struct_defaults__
        without = len(fields) - len(usual)
        for place, name in enumerate(fields):
            value = getattr(self, name)
            default = usual[place - without] if place >= without else NODEFAULT
            if value is not default and not (value is None or value == default):
                yield name, value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def __rich_repr__(self) -> Iterator[Any]:  # type: ignore[override]  # rich accepts any iterable
        # msgspec's own prints every field, and rich uses it for tracebacks with locals.
        return iter(self._shown())


def clipped(value: Any) -> str:
    """A field's value under `reveal`; long values (images, sealed data) are truncated."""
    text = repr(value)
    is_long = isinstance(value, (str, bytes)) and len(text) > _MAX_REPR_CHARS
    return f"{text[:_MAX_REPR_CHARS]}… {len(value)} in all" if is_long else text


def name_shown(name: object) -> tuple[str, ...]:
    """A name or id for a repr; nothing if it might be a sentence, as names may come off a wire."""
    return (name,) if isinstance(name, str) and _is_shown(name) else ()


def _restored(kind: type[T], fields: dict[str, Any]) -> T:
    """Unpickles a value, without validation, because it may have been decoded from a wire."""
    return unchecked(kind)(**fields)


def _same(left: Any, right: Any) -> bool:  # noqa: PLR0911 - one return per type, for speed
    """Compares every field; unlike `==`, tells `True` from `1`."""
    if left is right:
        return True
    if type(left) is str:  # the most frequent type
        return bool(left == right)
    if isinstance(left, Value):
        if type(left) is not type(right):
            return False
        left.settle()
        right.settle()
        for name in left.__struct_fields__:
            one, other = getattr(left, name), getattr(right, name)
            if one is not other and not _same(one, other):
                return False
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def own(value: Value, name: str) -> None:
    """Converts the field `name` of a value under construction to frozen JSON."""
    given = getattr(value, name)
    if type(given) is not FrozenDict and given is not EMPTY:
        force_setattr(value, name, freeze(given, f"{type(value).__name__}.{name}"))


def own_mapping(value: Value, name: str) -> None:
    """Like `own`, for a field that must be a mapping; `None` becomes an empty one."""
    given = getattr(value, name)
    if type(given) is FrozenDict and given:  # the usual case
        return
    if not given and given is not EMPTY and isinstance(given, (Mapping, type(None))):
        force_setattr(value, name, EMPTY)  # the instance that `omit_defaults` recognises
    elif type(given) is not FrozenDict:
        force_setattr(value, name, freeze_mapping(given, f"{type(value).__name__}.{name}"))


def own_tuple(value: Value, name: str, kinds: type | tuple[type, ...]) -> None:
    """Converts the field `name` to a tuple, and checks the types of its items."""
    given = getattr(value, name)
    if type(given) is not tuple:
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            msg = f"{type(value).__name__}.{name} must be a sequence, not {type(given).__name__}"
            raise InvalidInputError(msg)
        given = tuple(given)
        force_setattr(value, name, given)
    for item in given:
        if not isinstance(item, kinds):
            msg = f"{type(value).__name__}.{name} can't hold a {type(item).__name__}"
            raise InvalidInputError(msg)


def expect(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raises unless `value` has one of these types; the message never shows the value."""
    if not isinstance(value, kinds):
        names = " or ".join(k.__name__ for k in (kinds if isinstance(kinds, tuple) else (kinds,)))
        msg = f"{what} must be {names}, not {type(value).__name__}"
        raise InvalidInputError(msg)


def expect_fields(value: Value, **kinds: type | tuple[type, ...]) -> None:
    """Like `expect`, for fields of a value; `None` is allowed."""
    for name, kind in kinds.items():
        field = getattr(value, name)
        if field is not None and not isinstance(field, kind):
            expect(field, kind, f"{type(value).__name__}.{name}")


def expect_number(value: object, what: str) -> None:
    """Raises unless `value` is `None` or a finite number."""
    if value is None:
        return
    expect(value, (int, float), what)
    try:
        if isfinite(value):  # type: ignore[arg-type]  # expect has seen to it
            return
    except OverflowError:
        pass
    msg = f"{what} must be a finite number"
    raise InvalidInputError(msg)
