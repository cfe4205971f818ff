"""How the wire spelled things: what is kept of a wire object, so that it comes back as it was.

Beside the fields that nobody knows (`overlay`), a note is kept of fields that were not there
although an encoder, left to itself, writes them: servers and clients leave out what is empty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import Origin
from dragoman.wire import overlay

NAME = "ollama"
OWN = Origin(dialect=NAME)
"""The origin of what stood in a request, whose server nobody knows."""

_ABSENT = f"{NAME} absent"
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


def is_own(origin: Origin | None) -> bool:
    """Whether something came from this dialect."""
    return origin is OWN or (origin is not None and origin.dialect == NAME)


def kept(
    wire: Mapping[str, Any], known: Collection[str], written: Mapping[str, Any] = EMPTY
) -> FrozenDict:
    """As `extras`: what of a wire object would not come back by itself.

    The fields that are `known` do. `written` is what an encoder writes in others: it may get them
    wrong, or they may not have been there.
    """
    left = {key: value for key, value in wire.items() if key not in known}
    if not written:
        return freeze_mapping({NAME: left}, "the wire") if left else EMPTY
    extras = overlay.difference(left, written, NAME)
    absent = [[key, value] for key, value in written.items() if key not in wire]
    return freeze_mapping({**extras, _ABSENT: absent}, "the wire") if absent else extras


def laid(body: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The body with what was kept: fields put back, and those left out that were not there."""
    if not extras:
        return body
    body = without_absent(overlay.with_fields(body, extras, NAME), extras)
    return overlay.reshaped(body, extras, NAME)


def without_absent(body: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The body without fields that were not there, while they say what they would have then."""
    for key, ours in overlay.entries(extras, _ABSENT, 2) if _ABSENT in extras else ():
        if isinstance(key, str) and key in body and body[key] == ours:
            del body[key]
    return body
