"""What the chunks of a stream say beyond what is understood, put together as they come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.model.frozen import FrozenDict
from dragoman.wire.openai_chat.spelling import extras_of, is_list


class Leftovers:
    """Fields that nobody knows, and known ones while they are null or empty.

    Chunks repeat what they say, so the last word counts; an object may come in two halves (Groq's
    `x_groq`), and a null takes nothing back.
    """

    __slots__ = ("_extras", "_fields", "_filled")

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._filled: set[str] = set()
        self._extras: FrozenDict | None = None  # until something changes

    def keep(self, key: str, value: Any) -> None:
        """Keep what a chunk says in a field."""
        fields = self._fields
        if value is None:
            if key not in fields:
                self._extras = fields[key] = None
            return
        self._extras = None
        if type(value) is dict and type(known := fields.get(key)) is dict:
            known.update(value)
        else:
            fields[key] = value

    def add(self, key: str, items: Iterable[Any]) -> None:
        """Keep more items of a list."""
        self._extras = None
        known = self._fields.get(key)
        if not is_list(known):
            known = self._fields[key] = []
        known.extend(items)

    def fill(self, key: str) -> None:
        """Note that a field has been understood: its null or emptiness no longer counts."""
        if key not in self._filled:
            self._extras = None
            self._filled.add(key)

    def extras(self, words: Iterable[str] = ()) -> FrozenDict:
        """All of it, as extras; the same object while there is nothing new."""
        if words:
            return extras_of(self._left(), words)
        if self._extras is None:
            self._extras = extras_of(self._left())
        return self._extras

    def _left(self) -> dict[str, Any]:
        filled = self._filled
        return {
            key: value
            for key, value in self._fields.items()
            if key not in filled or not (value is None or value in ("", []))
        }
