"""A JSON value under construction: the containers that are open, and the string under way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import MAX_DEPTH


class GrowingValue:
    """Grows in place; whoever builds it says what comes next."""

    __slots__ = ("_keys", "_length", "_pieces", "is_in_key", "is_in_text", "root", "stack")

    def __init__(self) -> None:
        self.root: Any = UNSET
        self.stack: list[Any] = []
        """The containers that are still open, from the outermost to the innermost."""
        self.is_in_text = False
        """Whether a string that is a value is under way."""
        self.is_in_key = False
        self._keys: list[str] = []
        """The key under way in each container; empty for arrays."""
        self._pieces: list[str] = []
        self._length = 0
        """Of the pieces together."""

    @property
    def is_in_string(self) -> bool:
        """Whether a string is under way, be it a key or a value."""
        return self.is_in_text or self.is_in_key

    @property
    def is_in_array(self) -> bool:
        """Whether the innermost container is one."""
        return isinstance(self.stack[-1], list)

    @property
    def size(self) -> int:
        """What a copy costs: the entries of what is open, and the characters of its string."""
        return sum(map(len, self.stack)) + self._length

    def shown(self) -> Any:
        """The value with its string as far as it has come."""
        if self.is_in_text:
            text = "".join(self._pieces)
            self._pieces = [text]
            self._replace(text)
        return self.root

    def copy(self) -> Any:
        """As `shown`, but it stays as it is. What is complete in it is not copied again."""
        value = self.shown()
        if not self.stack:
            return value
        copies = [container.copy() for container in self.stack]
        for (outer, inner), key in zip(pairwise(copies), self._keys, strict=False):
            outer[-1 if isinstance(outer, list) else key] = inner
        return copies[0]

    def place(self, value: Any) -> None:
        """Put a value where one is due."""
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
        """Go into a container, unless that is too deep; whether it was done."""
        if len(self.stack) >= MAX_DEPTH:
            return False
        self.place(container)
        self.stack.append(container)
        self._keys.append("")
        return True

    def close(self) -> None:
        """Leave the innermost container."""
        self.stack.pop()
        self._keys.pop()

    def begin_string(self, *, is_key: bool) -> None:
        """A string comes in, piece by piece."""
        self._pieces, self._length = [], 0
        self.is_in_key, self.is_in_text = is_key, not is_key
        if not is_key:
            self.place("")

    def add(self, piece: str) -> None:
        """More of the string."""
        self._pieces.append(piece)
        self._length += len(piece)

    def end_string(self) -> None:
        """The string is complete, or as complete as it will be."""
        text = "".join(self._pieces)
        if self.is_in_key:
            self._keys[-1] = text
        elif self.is_in_text:
            self._replace(text)
        self.is_in_key = self.is_in_text = False
        self._pieces, self._length = [], 0
