"""Previews of a typed output while it streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from dragoman.agent.output.partial import PartialJson
from dragoman.agent.output.roots import RESULT

_OPENING = re.compile(r"[{\[]")
_CHEAP_SIZE = 4_096
"""Up to this size, a copy costs next to nothing."""
_MIN_NEW_SHARE = 64
"""Beyond it, a new copy is made only if at least 1/64 of the value is new: the total cost of a
stream is then a fixed number of copies, however small its pieces are."""


_MAX_SHORTENED = 8
"""How many of the enclosing elements may be left out of a preview."""


def shortened(value: Any) -> Iterator[Any]:
    """The value, then without its last element, which may still grow; the innermost one first.

    >>> [*shortened({"a": [1, {"b": 2}]})]
    [{'a': [1, {'b': 2}]}, {'a': [1, {}]}, {'a': [1]}, {}]
    """
    yield value
    path: list[Any] = []
    while isinstance(value, (dict, list)) and value:
        path.append(value)
        value = value[_last_key(value)]
    for depth in range(len(path) - 1, max(-1, len(path) - 1 - _MAX_SHORTENED), -1):
        made = path[depth].copy()
        del made[_last_key(made)]
        for outer in reversed(path[:depth]):
            inner, made = made, outer.copy()
            made[_last_key(made)] = inner
        yield made


def _last_key(container: Any) -> Any:
    return next(reversed(container)) if isinstance(container, dict) else -1


class Preview:
    """Takes the pieces of one answer, and returns snapshots of its value.

    Words before the JSON, and a code fence around it, are skipped.
    """

    __slots__ = ("_has_begun", "_is_wrapped", "_last", "_new", "_parser")

    def __init__(self, *, is_wrapped: bool) -> None:
        self._is_wrapped = is_wrapped
        self._parser = PartialJson()
        self._has_begun = False
        self._new = 0
        self._last: Any = UNSET

    def feed(self, delta: str) -> Any:
        """The value so far if it has changed since last shown; otherwise unset."""
        text = self._from_opening(delta)
        if not text:
            return UNSET
        self._parser.feed(text)
        self._new += len(text)
        if self._new * _MIN_NEW_SHARE < self._parser.size - _CHEAP_SIZE:
            return UNSET
        return self._shown()

    def close(self) -> Any:
        """What `feed` has held back, at the end; unset if nothing."""
        return self._shown() if self._new else UNSET

    def _from_opening(self, delta: str) -> str:
        if self._has_begun:
            return delta
        found = _OPENING.search(delta)
        if found is None:
            return ""
        self._has_begun = True
        return delta[found.start() :]

    def _shown(self) -> Any:
        self._new = 0
        value = self._opened(self._parser.copy())
        if value is UNSET or value == self._last:
            return UNSET
        self._last = value
        return value

    def _opened(self, value: Any) -> Any:
        if self._is_wrapped and isinstance(value, dict):
            return value.get(RESULT, UNSET)
        return value
