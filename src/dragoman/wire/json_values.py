"""Validates JSON values from the wire: bodies and their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.jsontext import JsonText, loads

_MAX_INTEGER = 2**63


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is a list."""
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a JSON value is an integer that the model's fields can hold; true is not one."""
    return type(value) is int and -_MAX_INTEGER < value < _MAX_INTEGER


_TEXTS = (str, bytes, bytearray, memoryview)


def parsed(body: JsonText | Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """A body as a mapping, parsed if it is text; raises `WireError` if it is not an object."""
    if not isinstance(body, _TEXTS) and isinstance(body, Mapping):
        return body
    try:
        value = loads(body)
    except InvalidInputError as error:
        problem = str(error)
    else:
        if isinstance(value, dict):
            return value
        problem = "the body is not a JSON object"
    raise WireError(problem, dialect=dialect, path="$")


def opened(body: JsonText, dialect: str) -> Any:
    """Parse a body; invalid JSON raises `WireError`."""
    try:
        return loads(body)
    except InvalidInputError as error:
        problem = str(error)
    raise WireError(problem, dialect=dialect, path="$")


def want(
    wire: Mapping[str, Any], key: str, kind: type | tuple[type, ...], dialect: str, path: str
) -> Any:
    """A required field of that type; raises `WireError` with its path otherwise."""
    value = wire.get(key)
    if isinstance(value, kind):
        return value
    expected = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
    found = "nothing" if key not in wire else type(value).__name__
    msg = f"expected {expected} at {path}.{key}, found {found}"
    raise WireError(msg, dialect=dialect, path=f"{path}.{key}")
