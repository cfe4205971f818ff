"""Converts objects of other libraries to plain data: dicts, lists, strings and numbers.

Such objects are untrusted: an attribute may have the wrong type, a method may raise, and a value
may contain itself. Errors name only the object's type.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, NoReturn
from uuid import UUID

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.frozen import MAX_DEPTH

_TEXTUAL = (UUID, Decimal, PurePath)
_TIMES = (datetime, date, time)
_MISSING = object()


def refuse(value: object, problem: str) -> NoReturn:
    """Raise for an object that can't be read, naming its type."""
    msg = f"a {type(value).__name__} {problem}"
    raise InvalidInputError(msg)


def dump_model(value: Any, **options: Any) -> Any:
    """The result of a pydantic model's `model_dump`; raises `InvalidInputError` if it fails."""
    return guarded(value, lambda: value.model_dump(mode="python", warnings=False, **options))


def guarded(value: object, read: Callable[[], Any]) -> Any:
    """Call `read`; anything that the object's own code raises becomes `InvalidInputError`."""
    try:
        return read()
    except DragomanError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything, and quote content
        problem = f"can't be read ({type(error).__name__})"
    # Outside the handler: the library's error may quote content and must not become the context.
    refuse(value, problem)


class Plain:
    """Converts values to JSON values, and records the paths of those that JSON can't represent.

    `read_nested` converts an object inside the value to data; returns None if it can't.
    """

    def __init__(self, owner: object, read_nested: Callable[[object], Any] | None = None) -> None:
        self._owner = owner
        self._read_nested = read_nested
        self.unreadable: list[str] = []
        """Paths of values that JSON can't represent; None is in their place."""

    def fallback(self, _value: object) -> None:
        """Record a value that a serializer can't write; for pydantic's `fallback`."""
        self.unreadable.append("")

    def read(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """The value as JSON."""
        if value is None or type(value) in (str, bool, int):
            return value
        if depth > MAX_DEPTH:
            refuse(self._owner, "nests too deeply or contains itself")
        if isinstance(value, Mapping):
            return self._mapping(value, path, depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.read(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
        return self._scalar(value, path, depth)

    def _mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in guarded(self._owner, lambda: list(value.items())):
            if not isinstance(key, str):
                self.unreadable.append(path)  # JSON keys must be strings
                continue
            name = str.__str__(key)
            found[name] = self.read(item, f"{path}.{name}" if path else name, depth + 1)
        return found

    def _scalar(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, Enum):
            return self.read(value.value, path, depth + 1)
        found = _as_json(value)
        if found is not _MISSING:
            return found
        if self._read_nested is not None:
            nested = self._read_nested(value)
            if nested is not None:
                return self.read(nested, path, depth + 1)
        if callable(getattr(type(value), "model_dump", None)):
            return self.read(dump_model(value), path, depth + 1)
        if isinstance(value, Iterable) and not hasattr(value, "__next__"):
            return self.read(guarded(self._owner, lambda: list(value)), path, depth + 1)
        self.unreadable.append(path)
        return None


def _as_json(value: Any) -> Any:
    """A scalar as a JSON value; `_MISSING` if JSON can't represent it."""
    if isinstance(value, (str, int)):  # or a subclass
        return str.__str__(value) if isinstance(value, str) else int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _MISSING
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode("ascii")
    if isinstance(value, _TIMES):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value) if isinstance(value, _TEXTUAL) else _MISSING


def plain(value: object, data: Any, read_nested: Callable[[object], Any] | None = None) -> Any:
    """The data of an object as JSON; raises if JSON can't represent something in it."""
    reading = Plain(value, read_nested)
    found = guarded(value, lambda: reading.read(data))
    if reading.unreadable:
        refuse(value, "contains something that is neither text, number nor media")
    return found
