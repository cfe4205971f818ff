"""Objects of other libraries as plain data: dicts, lists, texts and numbers.

Such objects are input like any other: an attribute may be of the wrong type, a method may raise,
and a value may contain itself. Errors name the object's type and nothing else.
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
    """Raise for an object that can't be read, by its type."""
    msg = f"a {type(value).__name__} {problem}"
    raise InvalidInputError(msg)


def dump_model(value: Any, **options: Any) -> Any:
    """What a pydantic model's `model_dump` gives; raises `InvalidInputError` where it fails."""
    return guarded(value, lambda: value.model_dump(mode="python", warnings=False, **options))


def guarded(value: object, read: Callable[[], Any]) -> Any:
    """What `read` returns; whatever the object's own code raises becomes `InvalidInputError`."""
    try:
        return read()
    except DragomanError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything, and quote content
        problem = f"can't be read ({type(error).__name__})"
    # Outside the handler: the library's error may quote the content and must not be its context.
    refuse(value, problem)


class Plain:
    """Turns values into JSON values, and notes the places of those that are none.

    `read_nested` turns an object inside the value into data of its own; None where it can't.
    """

    def __init__(self, owner: object, read_nested: Callable[[object], Any] | None = None) -> None:
        self._owner = owner
        self._read_nested = read_nested
        self.unreadable: list[str] = []
        """Paths of what JSON can't carry; None stands there instead."""

    def fallback(self, _value: object) -> None:
        """What stands for a value that a serializer can't write: pydantic's `fallback`."""
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
                self.unreadable.append(path)  # JSON has no such keys
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
    """A scalar as a JSON value; `_MISSING` where there is none for it."""
    if isinstance(value, (str, int)):  # a subclass of one
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
    """The data of an object as JSON; raises where JSON can't carry something in it."""
    reading = Plain(value, read_nested)
    found = guarded(value, lambda: reading.read(data))
    if reading.unreadable:
        refuse(value, "holds something that is neither text, number nor media")
    return found
