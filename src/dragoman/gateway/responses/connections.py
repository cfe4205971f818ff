"""What a WebSocket remembers: its latest turns, so that `previous_response_id` needs no store."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

_MOST_TURNS = 16


class Turn(Struct):
    """A response, with everything that led to it."""

    items: list[Any]
    size: int


class Connection:
    """The turns of one connection; they are gone when it closes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._turns: dict[str, Turn] = {}

    def __repr__(self) -> str:
        return f"<connection, {len(self._turns)} turns>"

    def turn(self, id: str) -> Turn | None:
        """A turn that is remembered."""
        return self._turns.get(id)

    def remember(self, id: str, items: list[Any], size: int) -> None:
        """Remember a turn; the oldest give way, and what is too large is not remembered."""
        if size > self._most_bytes:
            return
        self._turns[id] = Turn(items, size)
        while len(self._turns) > 1 and self._is_full():
            del self._turns[next(iter(self._turns))]

    def _is_full(self) -> bool:
        # Turns share the items of those before them, so that the sum is more than is held.
        held = sum(turn.size for turn in self._turns.values())
        return len(self._turns) > _MOST_TURNS or held > _MOST_TURNS * self._most_bytes
