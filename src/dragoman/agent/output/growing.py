"""A JSON value under construction: its open containers, and the current string."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import MAX_DEPTH


class GrowingValue:
    """Grows in place, driven by the parser."""

    __slots__ = ("_keys", "_length", "_pieces", "is_in_key", "is_in_text", "root", "stack")

    def __init__(self) -> None:
        self.root: Any = UNSET
        self.stack: list[Any] = []
        """Open containers, outermost first."""
        self.is_in_text = False
        """Whether a string value is being read."""
        self.is_in_key = False
        self._keys: list[str] = []
        """The current key of each container; empty for arrays."""
        self._pieces: list[str] = []
        self._length = 0
        """Total length of the pieces."""

    @property
    def is_in_string(self) -> bool:
        """Whether a string is being read, a key or a value."""
        return self.is_in_text or self.is_in_key

    @property
    def is_in_array(self) -> bool:
        """Whether the innermost container is an array."""
        return isinstance(self.stack[-1], list)

    @property
    def size(self) -> int:
        """The cost of a copy: the items of open containers, and the characters of the string."""
        return sum(map(len, self.stack)) + self._length

    def shown(self) -> Any:
        """The value, with its current string as far as it has been read."""
        if self.is_in_text:
            text = "".join(self._pieces)
            self._pieces = [text]
            self._replace(text)
        return self.root

    def copy(self) -> Any:
        """A snapshot of `shown`. Complete parts are not copied again."""
        value = self.shown()
        if not self.stack:
            return value
        copies = [container.copy() for container in self.stack]
        for (outer, inner), key in zip(pairwise(copies), self._keys, strict=False):
            outer[-1 if isinstance(outer, list) else key] = inner
        return copies[0]

    def place(self, value: Any) -> None:
        """Add a value at the current position."""
        if not self.stack:
            self.root = value
        elif isinstance(top := self.stack[-1], list):
            top.append(value)
        else:
            top[self._keys[-1]] = value

    def _replace(self, value: Any) -> None:
        if not self.stack:
            self.root = value
        else:
            self.stack[-1][-1 if self.is_in_array else self._keys[-1]] = value

    def open(self, container: Any) -> bool:
        """Open a container, unless it is too deep; returns whether it did."""
        if len(self.stack) >= MAX_DEPTH:
            return False
        self.place(container)
        self.stack.append(container)
        self._keys.append("")
        return True

    def close(self) -> None:
        """Close the innermost container."""
        self.stack.pop()
        self._keys.pop()

    def begin_string(self, *, is_key: bool) -> None:
        """Start a string."""
        self._pieces, self._length = [], 0
        self.is_in_key, self.is_in_text = is_key, not is_key
        if not is_key:
            self.place("")

    def add(self, piece: str) -> None:
        """Append to the string."""
        self._pieces.append(piece)
        self._length += len(piece)

    def end_string(self) -> None:
        """End the string, complete or not."""
        text = "".join(self._pieces)
        if self.is_in_key:
            self._keys[-1] = text
        elif self.is_in_text:
            self._replace(text)
        self.is_in_key = self.is_in_text = False
        self._pieces, self._length = [], 0
