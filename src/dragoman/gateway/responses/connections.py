"""The latest turns of a WebSocket, so that `previous_response_id` works without a store."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

_MAX_TURNS = 16


class Turn(Struct):
    """A response and its full input, as items."""

    items: list[Any]
    size: int


class Connection:
    """The turns of one connection, discarded when it closes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._turns: dict[str, Turn] = {}

    def __repr__(self) -> str:
        return f"<connection, {len(self._turns)} turns>"

    def turn(self, id: str) -> Turn | None:
        """Returns a remembered turn, or None."""
        return self._turns.get(id)

    def remember(self, id: str, items: list[Any], size: int) -> None:
        """Remembers a turn, unless it is too large; evicts the oldest turns."""
        if size > self._most_bytes:
            return
        self._turns[id] = Turn(items, size)
        while len(self._turns) > 1 and self._is_full():
            del self._turns[next(iter(self._turns))]

    def _is_full(self) -> bool:
        # Turns share items with earlier ones, so the sum overestimates the memory used.
        held = sum(turn.size for turn in self._turns.values())
        return len(self._turns) > _MAX_TURNS or held > _MAX_TURNS * self._most_bytes
