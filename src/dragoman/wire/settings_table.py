"""Settings that are one field on the wire and one in the model, as a table that a dialect has.

>>> table = (Setting("maxOutputTokens", "max_tokens", whole), Setting("topP", "top_p", number))
>>> decode_settings({"maxOutputTokens": 10, "topP": "high"}, table)
{'max_tokens': 10}

What is not of its kind is not read, so that it stays in the overlay as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:  # descriptions of dialects have tables as well, and load nothing else
    from dragoman.wire.writing import Writing

_INT64 = 1 << 63
_NOTHING = (None, ())


class Setting(NamedTuple):
    """A field of the wire, the model's field, and what reads a value: None if it can't be read."""

    key: str
    name: str
    read: Callable[[Any], Any]


# --- kinds of values


def whole(value: Any) -> int | None:
    """A whole number that fits into 64 bits."""
    return value if type(value) is int and -_INT64 <= value < _INT64 else None


def number(value: Any) -> float | None:
    """A number, whole or not."""
    return value if type(value) is float else whole(value)


def flag(value: Any) -> bool | None:
    """True or false."""
    return value if type(value) is bool else None


def text(value: Any) -> str | None:
    """A text."""
    return value if type(value) is str else None


def texts(value: Any) -> tuple[str, ...] | None:
    """A list of texts."""
    is_fine = isinstance(value, list) and all(type(item) is str for item in value)
    return tuple(value) if is_fine else None


# --- both ways


def decode_settings(
    wire: Mapping[str, Any], table: Iterable[Setting], used: set[str] | None = None
) -> dict[str, Any]:
    """What the wire says, by the model's names; of two fields for one setting the first counts.

    The fields that were read are added to `used`.
    """
    found: dict[str, Any] = {}
    for key, name, read in table:
        if key in wire and name not in found and (value := read(wire[key])) is not None:
            found[name] = value
            if used is not None:
                used.add(key)
    return found


def encode_settings(values: Struct, table: Iterable[Setting]) -> dict[str, Any]:
    """What is set, by the wire's names."""
    body: dict[str, Any] = {}
    for key, name, _ in table:
        value = getattr(values, name)
        if value is not None and value != ():
            body[key] = list(value) if type(value) is tuple else value
    return body


def lose_settings(
    values: Struct, names: Iterable[str], writing: Writing, place: str, reason: str
) -> None:
    """Note those of the names that are set: the wire has no field for them."""
    for name in names:
        if getattr(values, name) not in _NOTHING:
            writing.lose(f"{place}.{name}", reason)
