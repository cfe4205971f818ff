"""Tables of settings that are one field on the wire and one in the model.

>>> table = (setting("maxOutputTokens", "max_tokens", whole), setting("topP", "top_p", number))
>>> decode_settings({"maxOutputTokens": 10, "topP": "high"}, table)
{'max_tokens': 10}

Values of the wrong type are not decoded, so they stay in the overlay as received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:  # dialect descriptions have such tables too, and must not load encoders
    from dragoman.wire.writing import Writing

_INT64 = 1 << 63
_NOTHING = (None, ())


Setting = tuple[str, str, Callable[[Any], Any]]
"""A wire field, the model's field, and a function that returns the value or None if invalid.

Plain tuples: unpacking a named one takes several times as long.
"""


def setting(key: str, name: str, read: Callable[[Any], Any]) -> Setting:
    """A row of a table."""
    return key, name, read


# --- value types


def whole(value: Any) -> int | None:
    """An integer that fits into 64 bits."""
    return value if type(value) is int and -_INT64 <= value < _INT64 else None


def number(value: Any) -> float | None:
    """A number, integer or float."""
    return value if type(value) is float else whole(value)


def flag(value: Any) -> bool | None:
    """A boolean."""
    return value if type(value) is bool else None


def text(value: Any) -> str | None:
    """A string."""
    return value if type(value) is str else None


def texts(value: Any) -> tuple[str, ...] | None:
    """A list of strings."""
    is_fine = isinstance(value, list) and all(type(item) is str for item in value)
    return tuple(value) if is_fine else None


# --- decoding and encoding


def decode_settings(
    wire: Mapping[str, Any], table: Iterable[Setting], used: set[str] | None = None
) -> dict[str, Any]:
    """The settings by their names in the model; if two fields have one setting, the first wins.

    The names of decoded fields are added to `used`.
    """
    found: dict[str, Any] = {}
    for key, name, read in table:
        if key in wire and name not in found and (value := read(wire[key])) is not None:
            found[name] = value
            if used is not None:
                used.add(key)
    return found


def encode_settings(values: Struct, table: Iterable[Setting]) -> dict[str, Any]:
    """The settings that have a value, by their names on the wire."""
    body: dict[str, Any] = {}
    for key, name, _ in table:
        value = getattr(values, name)
        if value is not None and value != ():
            body[key] = list(value) if type(value) is tuple else value
    return body


def lose_settings(
    values: Struct, names: Iterable[str], writing: Writing, place: str, reason: str
) -> None:
    """Report those of the named settings that are set as losses: the wire has no field for them."""
    for name in names:
        if getattr(values, name) not in _NOTHING:
            writing.lose(f"{place}.{name}", reason)
