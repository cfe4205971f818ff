"""Types that are a single string, number, boolean or null in JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from dragoman.model.functions.shapes import MisfitError, Scalar, Shape


def _checked(kinds: type | tuple[type, ...], expected: str) -> Callable[[Any], Any]:
    def load(value: Any) -> Any:
        if isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool)):
            return value
        raise MisfitError(expected=expected)

    return load


_text = _checked(str, "a string")
_number = _checked((int, float), "a number")


def _whole(value: Any) -> int:
    number = _number(value)
    if number == int(number):
        return int(number)
    raise MisfitError(expected="an integer")


def _parsed(kind: Any, expected: str) -> Callable[[Any], Any]:
    """Reads text with msgspec; replaces its errors, which would quote the text."""

    def load(value: Any) -> Any:
        try:
            return msgspec.convert(_text(value), kind)
        except msgspec.ValidationError:
            pass
        raise MisfitError(expected=expected)

    return load


def _parsed_key(key: str) -> int:
    try:
        return int(key)
    except ValueError:
        pass
    raise MisfitError(expected="a key that is an integer")


def string(**keywords: str) -> dict[str, str]:
    """The schema of a string with these keywords."""
    return {"type": "string", **keywords}


SCALARS: dict[Any, Scalar] = {
    str: Scalar(string(), _text),
    int: Scalar({"type": "integer"}, _whole),
    float: Scalar({"type": "number"}, lambda value: float(_number(value))),
    bool: Scalar({"type": "boolean"}, _checked(bool, "a boolean")),
    type(None): Scalar({"type": "null"}, _checked(type(None), "null")),
    dt.datetime: Scalar(
        string(format="date-time"), _parsed(dt.datetime, "a date and time in ISO 8601")
    ),
    dt.date: Scalar(string(format="date"), _parsed(dt.date, "a date in ISO 8601")),
    dt.time: Scalar(string(format="time"), _parsed(dt.time, "a time in ISO 8601")),
    dt.timedelta: Scalar(
        string(format="duration"), _parsed(dt.timedelta, "a duration in ISO 8601")
    ),
    UUID: Scalar(string(format="uuid"), _parsed(UUID, "a UUID")),
    Decimal: Scalar(string(pattern=r"^-?[0-9]+(\.[0-9]+)?$"), _parsed(Decimal, "a decimal number")),
    bytes: Scalar(string(contentEncoding="base64"), _parsed(bytes, "base64")),
}
INTEGER_KEY = Scalar(string(pattern="^-?[0-9]{1,18}$"), _parsed_key)


def scalar_of(kind: type) -> Shape | None:
    """The shape of a subclass of str, int, float or PurePath; `None` for other classes."""
    for plain in (str, int, float):
        if issubclass(kind, plain):
            shape = SCALARS[plain]
            return Scalar(shape.keywords, _made_by(kind, shape))
    if issubclass(kind, PurePath):
        return Scalar(string(), _made_by(kind, SCALARS[str]))
    return None


def _made_by(kind: Callable[[Any], Any], plain: Shape) -> Callable[[Any], Any]:
    return lambda value: kind(plain.read(value))
