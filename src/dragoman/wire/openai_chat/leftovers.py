"""What the chunks of a stream say beyond what is understood, put together as they come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.model.frozen import FrozenDict
from dragoman.wire.openai_chat.spelling import extras_of, is_list, is_object


class Leftovers:
    """Fields that nobody knows, and known ones while they are null or empty.

    Chunks repeat what they say, so the last word counts; an object may come in two halves (Groq's
    `x_groq`), and a null takes nothing back.
    """

    __slots__ = ("_fields", "_filled")

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._filled: set[str] = set()

    def keep(self, key: str, value: Any) -> None:
        """Keep what a chunk says in a field."""
        known = self._fields.get(key)
        if value is None:
            self._fields.setdefault(key, None)
        elif is_object(value) and is_object(known):
            known.update(value)
        else:
            self._fields[key] = value

    def add(self, key: str, items: Iterable[Any]) -> None:
        """Keep more items of a list."""
        known = self._fields.get(key)
        if not is_list(known):
            known = self._fields[key] = []
        known.extend(items)

    def fill(self, key: str) -> None:
        """Note that a field has been understood: its null or emptiness no longer counts."""
        self._filled.add(key)

    def extras(self, words: Iterable[str] = ()) -> FrozenDict:
        """All of it, as extras."""
        left = {
            key: value
            for key, value in self._fields.items()
            if key not in self._filled or not (value is None or value in ("", []))
        }
        return extras_of(left, words)
