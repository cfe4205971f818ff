"""Calls that come in pieces, until enough of them is known to begin."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import UNSET

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.ids import new_id
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call


class Heads:
    """The head of the call that comes in now: id and name may take several pieces (W7, W8)."""

    __slots__ = ("_ids", "_seen", "_waiting")

    def __init__(self) -> None:
        self._seen = MessageAccumulator()  # tells which call a piece belongs to
        self._ids: set[str] = set()
        self._waiting: tuple[Hashable, ToolCall] | None = None

    def key(self, delta: ToolCallDelta) -> Hashable:
        """Which call a piece belongs to; to be asked once for each."""
        place = self._seen.resolved(delta).index
        self._seen.add(delta)
        return ("call", place)

    def is_waiting(self, key: Hashable) -> bool:
        """Whether that call's head is not complete."""
        return self._waiting is not None and self._waiting[0] == key

    def add(self, key: Hashable, delta: ToolCallDelta) -> None:
        """More of a head."""
        if self._waiting is None:
            self._waiting = (key, self._begun(delta))
            return
        call = self._waiting[1]
        if delta.id and call.wire_id is None and delta.id not in self._ids:
            self._ids.add(delta.id)
            call = call.replace_unchecked(id=delta.id, wire_id=UNSET)
        if delta.name and delta.name != call.name:
            call = call.replace_unchecked(name=call.name + delta.name)
        self._waiting = (key, call)

    def take(self) -> tuple[Hashable, ToolCall] | None:
        """The call that waits, which waits no longer."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def _begun(self, delta: ToolCallDelta) -> ToolCall:
        is_free = bool(delta.id) and delta.id not in self._ids  # I5
        call_id = delta.id if delta.id and is_free else new_id("call_")
        self._ids.add(call_id)
        return make_call(
            call_id,
            delta.name or "",
            raw="",
            kind=delta.kind,
            wire_id=UNSET if is_free else None,
            extras=delta.extras,
        )
