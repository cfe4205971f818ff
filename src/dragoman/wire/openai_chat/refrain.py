"""Deltas that differ from the one before in their text alone, as most of a stream does.

Servers fill each of them up with nulls and empty lists, and some write one text into two or three
fields. All but the text was taken in with the delta before; to take it in again would change
nothing.
"""

from __future__ import annotations

from typing import Any


class Refrain:
    """The last delta, as a form to put the next one's text into.

    >>> refrain = Refrain({"role": None, "content": "Hel"}, "content", 0)
    >>> refrain.text_in({"role": None, "content": "lo"})
    'lo'
    >>> refrain.text_in({"role": "user", "content": "lo"}) is None
    True
    """

    __slots__ = ("_field", "_form", "_mirrors", "index")

    def __init__(
        self,
        delta: dict[str, Any],
        field: str,
        index: int,
        mirrors: tuple[tuple[dict[str, Any], str], ...] = (),
    ) -> None:
        self.index = index
        """The part that grows."""
        self._form = delta
        self._field = field
        self._mirrors = mirrors  # where in the delta the text stands as well

    def text_in(self, delta: dict[str, Any]) -> str | None:
        """The text of a delta; None where there is anything else to take in."""
        text = delta.get(self._field)
        if type(text) is not str or not text:
            return None
        form = self._form
        form[self._field] = text
        for holder, key in self._mirrors:
            holder[key] = text
        return text if delta == form else None


def is_empty(value: Any) -> bool:
    """Whether a field only says that there is nothing in it."""
    return not value and (value is None or value in ("", []))
