"""Calls that come in pieces, until enough of them is known to begin."""

from __future__ import annotations

from collections.abc import Hashable

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import ResponseStart
from dragoman.model.tools import ToolCall, ToolCallDelta


class Heads:
    """The head of the call that comes in now: id and name may take several pieces (W7, W8)."""

    __slots__ = ("_heads", "_seen", "_waiting")

    def __init__(self) -> None:
        self._seen = MessageAccumulator()  # tells which call a piece belongs to, and its id
        self._heads: dict[Hashable, ToolCall] = {}
        self._waiting: Hashable | None = None

    def start(self, event: ResponseStart) -> None:
        """Learn which response these are the calls of."""
        self._seen.add(event)

    def key(self, delta: ToolCallDelta) -> Hashable:
        """Which call a piece belongs to; to be asked once for each."""
        place, head = self._seen.add_call(delta)
        self._heads["call", place] = head
        return ("call", place)

    def is_waiting(self, key: Hashable) -> bool:
        """Whether that call's head is not complete."""
        return self._waiting == key

    def wait(self, key: Hashable) -> None:
        """More of that call's head is to come."""
        self._waiting = key

    def take(self) -> tuple[Hashable, ToolCall] | None:
        """The call that waits, which waits no longer."""
        key, self._waiting = self._waiting, None
        return None if key is None else (key, self._heads[key])
