"""Converts any Python value to JSON: frozen, bounded, and valid for every provider.

JSON has no NaN, and many parsers no integers beyond 4096 bits: both become text. Sets are sorted,
so that equal results give equal text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum
from math import isfinite, isnan
from typing import Any, cast

import msgspec
from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, MAX_DEPTH, MAX_INTEGER_BITS, FrozenDict, FrozenList
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video, sniff
from dragoman.model.tools import ResultPart

MAX_ITEMS = 1_000_000
"""Maximum number of values in one result. A few nested lists can be endless."""

_SNIFF_BYTES = 32
_MEDIA: dict[str, type[Image | Audio | Video | File]] = {
    "image": Image,
    "audio": Audio,
    "video": Video,
    "application/pdf": File,
}
_SCALARS = frozenset({str, int, float, bool, type(None)})
_SEQUENCES = (Sequence, AbstractSet, ValuesView)


def whole_characters(text: str) -> str:
    """The text without lone surrogates, which most servers reject."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def of_bytes(value: bytes | bytearray | memoryview) -> str | Image | Audio | Video | File:
    """Media if the first bytes identify it, or text if it is text.

    Everything else is rejected: a file that no provider accepts would stay in the conversation and
    make every later request fail.
    """
    content = bytes(value)
    mime = sniff(content[:_SNIFF_BYTES]) or ""
    kind = _MEDIA.get(mime) or _MEDIA.get(mime.partition("/")[0])
    if kind is not None:
        return kind.from_bytes(content, mime)
    text = content.decode("utf-8", "replace")
    if mime or "\0" in text or text.encode("utf-8") != content:
        msg = (
            f"{len(content):,} bytes that are neither text nor a known media type;"
            " return an Image, Audio, Video or File with its type instead"
        )
        raise InvalidInputError(msg)
    return text


class Walk:
    """Converts one value to JSON, collecting the media in it."""

    def __init__(self) -> None:
        self.media: list[ResultPart] = []
        self._left = MAX_ITEMS

    def json(self, value: Any, depth: int = 0) -> Any:
        """The value as frozen JSON; raises if that is impossible, without quoting it."""
        kind = type(value)
        if kind in _SCALARS:
            return _scalar(value)
        if depth > MAX_DEPTH:
            msg = f"it nests deeper than {MAX_DEPTH} levels, or contains itself"
            raise InvalidInputError(msg)
        if kind is dict:
            return self._object(value.items(), depth)
        if kind is list:
            return self._array(value, depth)
        return self._other(value, depth)

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int) -> FrozenDict:
        made: dict[str, Any] = {}
        for key, item in items:
            self._spend()
            name = key if type(key) is str and key.isascii() else self._key(key, depth)
            made[name] = self.json(item, depth + 1)
        return FrozenDict(made) if made else EMPTY

    def _key(self, key: Any, depth: int) -> str:
        """A key as text: the value's own text, or its JSON if it is not a string."""
        made = self.json(key, depth + 1)
        return made if isinstance(made, str) else dumps(made).decode("utf-8")

    def _array(self, items: Iterable[Any], depth: int) -> FrozenList:
        made: list[Any] = []
        for item in items:
            self._spend()
            made.append(self.json(item, depth + 1))
        return FrozenList(made)

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            msg = f"it has more than {MAX_ITEMS:,} values, or contains itself"
            raise InvalidInputError(msg)

    def _other(self, value: Any, depth: int) -> Any:
        """Types that JSON doesn't have."""
        if isinstance(value, Enum):
            return self.json(value.value, depth + 1)
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = of_bytes(value)
        if isinstance(value, Media):
            return self._shown_behind(value)
        if isinstance(value, (str, int, float)):
            return _scalar(value)
        if isinstance(value, dt.timedelta):
            return msgspec.to_builtins(dt.timedelta(value.days, value.seconds, value.microseconds))
        return self._collection(value, depth)

    def _collection(self, value: Any, depth: int) -> Any:
        fields = _fields_of(value)
        if fields is not None:
            return self._object(fields, depth)
        if isinstance(value, (set, frozenset)):
            return FrozenList(sorted(self._array(value, depth), key=dumps))
        if isinstance(value, _SEQUENCES):
            return self._array(value, depth)
        return self._replaced(value, depth)

    def _shown_behind(self, value: Media) -> str:
        value.check()
        self.media.append(cast("ResultPart", value))
        return f"({type(value).__name__.lower()} {len(self.media)}, attached below)"

    def _replaced(self, value: Any, depth: int) -> Any:
        """The value's own representation (pydantic models, dates, numpy arrays), or its text."""
        for name, options in _PLAIN_METHODS:
            say = None if isinstance(value, type) else getattr(value, name, None)
            if callable(say):
                return self.json(say(**options), depth + 1)
        if vars(object)["__str__"] is not type(value).__str__:
            return whole_characters(str.__str__(str(value)))
        msg = f"{type(value).__name__} can't be serialised as JSON"
        raise InvalidInputError(msg)


# Methods that return a plain representation of a value, and their arguments.
_PLAIN_METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("model_dump", {"mode": "json"}),
    ("isoformat", {}),
    ("tolist", {}),
)


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(str.__str__(value))
    if isinstance(value, float):
        return float(value) if isfinite(value) else _no_number(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    # Python limits decimal conversion to 4300 digits, but not hexadecimal.
    return int(value) if value.bit_length() <= MAX_INTEGER_BITS else hex(value)


def _no_number(value: float) -> str:
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _fields_of(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """The items of a value that is a JSON object; None for other values."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, msgspec.Struct):
        return _struct_fields(value)
    if isinstance(value, type):
        return None  # a class, not an instance
    names = _field_names(value)
    if names is not None:
        return [(name, getattr(value, name)) for name in names]
    as_dict: Callable[[], Mapping[str, Any]] | None = getattr(value, "_asdict", None)
    return as_dict().items() if callable(as_dict) else None


def _field_names(value: Any) -> list[str] | None:
    """The field names of a dataclass or attrs class."""
    fields = getattr(value, "__dataclass_fields__", None)
    if isinstance(fields, dict):
        return [field.name for field in dataclasses.fields(value)]
    fields = getattr(value, "__attrs_attrs__", None)
    return [field.name for field in fields] if isinstance(fields, tuple) else None


def _struct_fields(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """The fields by their encoded names, with the type tag."""
    config = value.__struct_config__
    tag = [] if config.tag is None else [(str(config.tag_field), config.tag)]
    pairs = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    found = [(name, getattr(value, field)) for name, field in pairs]
    return tag + [(name, item) for name, item in found if item is not UNSET]
