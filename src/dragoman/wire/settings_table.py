"""Values of fields: each function returns the value, or None if it is of another type."""

from __future__ import annotations

from typing import Any

_INT64 = 1 << 63


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
