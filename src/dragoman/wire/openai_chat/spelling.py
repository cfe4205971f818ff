"""How the wire spelled things: the overlay of this dialect, and the notes that it needs.

One canonical value often has several spellings here: thinking as `reasoning` or
`reasoning_content`, a cap as `max_tokens` or `max_completion_tokens`, a call with or without its
`type`. Which one it was is noted as a word in the extras, beside the fields that nobody knows.
Without the word, encoders choose the spelling of OpenAI's own API. A word that begins with `-`
says that a field was not there, or not as it should be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeGuard

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import Origin
from dragoman.wire import overlay

NAME = "openai-chat"
OWN = Origin(dialect=NAME)
"""The origin of what stood in a request, whose provider nobody knows."""

_WORDS = ":words"  # no wire has such a field

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


def extras_of(left: Mapping[str, Any], words: Iterable[str] = ()) -> FrozenDict:
    """Extras that hold the fields left over and the words about the others."""
    noted = {**left, _WORDS: list(words)} if words else left
    return freeze_mapping({NAME: noted}, "the wire") if noted else EMPTY


def left_over(
    wire: Mapping[str, Any], known: Collection[str], words: Iterable[str] = ()
) -> FrozenDict:
    """As `extras_of`, for the fields that are not known."""
    return extras_of({key: value for key, value in wire.items() if key not in known}, words)


def words_of(extras: Mapping[str, Any]) -> Collection[Any]:
    """The words in extras."""
    if extras is EMPTY:
        return ()
    mine = extras.get(NAME)
    words = mine.get(_WORDS) if is_object(mine) else None
    return words if is_list(words) else ()


def with_word(extras: Mapping[str, Any], word: str) -> FrozenDict:
    """The extras with one word more."""
    mine = extras.get(NAME)
    left = {key: mine[key] for key in mine if key != _WORDS} if is_object(mine) else {}
    return extras_of(left, (*words_of(extras), word))


def absent(found: Collection[str], *keys: str) -> list[str]:
    """Words for those of the keys that were not found, or not understood."""
    return [f"-{key}" for key in keys if key not in found]


def without_absent(body: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the fields that the wire lacked."""
    for word in words_of(extras):
        if isinstance(word, str) and word.startswith("-"):
            body.pop(word[1:], None)
    return body


def laid(body: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The body with this dialect's extras laid over it, where the model says nothing.

    As `overlay.laid_over`, but for the words.
    """
    mine = extras.get(NAME)
    if is_object(mine):
        body = _filled(body, mine)
    return overlay.reshaped(overlay.corrected(body, extras, NAME), extras, NAME)


def _filled(body: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    for key, value in over.items():
        if key == _WORDS:
            continue
        if key not in body:
            body[key] = value
        elif is_object(value) and is_object(mine := body[key]):
            body[key] = _filled(dict(mine), value)
    return body
