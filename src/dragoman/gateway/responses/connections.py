"""The latest turns of WebSockets, so that `previous_response_id` works without a store.

They cost nothing but memory, and a client need not even ask a model to have them remembered. So
there are limits for a connection, for a key, and for all connections of a worker.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

_MAX_TURNS = 16
_MAX_BODIES = 32
"""How many of the largest bodies the turns of all connections may have, in bytes."""
_SHARE = 4
"""Of which a key may have a quarter."""


class Turn(Struct):
    """A response and its full input, as items."""

    items: list[Any]
    size: int


class TurnMemory:
    """The turns of all connections of a worker, in the order of their last use."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[Connection, str], int] = {}
        self._by_key: Counter[str | None] = Counter()

    @property
    def size(self) -> int:
        """Bytes in use; turns of a connection share items, so it is an upper estimate."""
        return self._by_key.total()

    def put(self, connection: Connection, id: str, size: int) -> None:
        """Note a turn as the last one that was used."""
        self.drop(connection, id)
        self._sizes[connection, id] = size
        self._by_key[connection.key] += size

    def drop(self, connection: Connection, id: str) -> None:
        """Note that a turn is gone."""
        size = self._sizes.pop((connection, id), 0)
        self._by_key[connection.key] -= size
        if not self._by_key[connection.key]:
            del self._by_key[connection.key]

    def trim(self, key: str | None, most: int) -> None:
        """Remove what all connections have too much of, and what those of a key have."""
        if key is not None:
            own = (each for each in list(self._sizes) if each[0].key == key)
            while self._by_key[key] > most // _SHARE:
                connection, id = next(own)
                connection.forget(id)
        while self.size > most:
            connection, id = next(iter(self._sizes))
            connection.forget(id)


class Connection:
    """The turns of one connection, discarded when it closes."""

    def __init__(self, memory: TurnMemory, key: str | None, most_bytes: int) -> None:
        """`most_bytes` is the size of the largest body."""
        self.key = key
        self._memory = memory
        self._most_bytes = most_bytes
        self._turns: dict[str, Turn] = {}

    def __repr__(self) -> str:
        return f"<connection, {len(self._turns)} turns>"

    def turn(self, id: str) -> Turn | None:
        """Returns a remembered turn, or None."""
        found = self._turns.get(id)
        if found is not None:
            self._memory.put(self, id, found.size)
        return found

    def remember(self, id: str, items: list[Any], size: int) -> None:
        """Remembers a turn, unless it is too large; evicts the oldest turns."""
        if size > self._most_bytes:
            return
        self._turns[id] = Turn(items, size)
        self._memory.put(self, id, size)
        while len(self._turns) > 1 and self._is_full():
            self.forget(next(iter(self._turns)))
        self._memory.trim(self.key, _MAX_BODIES * self._most_bytes)

    def forget(self, id: str) -> None:
        """Forgets a turn."""
        del self._turns[id]
        self._memory.drop(self, id)

    def close(self) -> None:
        """Forgets all turns."""
        for id in list(self._turns):
            self.forget(id)

    def _is_full(self) -> bool:
        # Turns share items with earlier ones, so the sum overestimates the memory used.
        held = sum(turn.size for turn in self._turns.values())
        return len(self._turns) > _MAX_TURNS or held > _SHARE * self._most_bytes
