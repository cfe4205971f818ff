"""Which function response answers which function call.

The wire's ids are optional and may be missing, empty, repeated in one turn or reused later (W81,
I5); ours are unique. A response is paired by its id, else by name and order within the step.
"""

from __future__ import annotations

from collections import defaultdict, deque

from msgspec import UNSET, UnsetType

from dragoman.model.ids import new_id

_Open = tuple[str, str | None]


class Calls:
    """The calls of a conversation read so far."""

    __slots__ = ("_answered", "_by_id", "_by_name", "_known")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._answered: set[str] = set()
        self._by_id: dict[str, deque[_Open]] = defaultdict(deque)
        self._by_name: dict[str, deque[_Open]] = defaultdict(deque)

    def begin_step(self) -> None:
        """A new model turn: a response without an id can't mean a call of an earlier one (W78)."""
        if self._by_name:
            self._by_name = defaultdict(deque)

    def admit(self, name: str, wire_id: str | None) -> tuple[str, str | UnsetType | None]:
        """The id of a new call, and its `wire_id`."""
        call_id = wire_id if wire_id and wire_id not in self._known else new_id("call_")
        self._known.add(call_id)
        call = (call_id, wire_id)
        self._by_name[name].append(call)
        if wire_id:
            self._by_id[wire_id].append(call)
        return call_id, UNSET if call_id == wire_id else wire_id

    def answer(self, name: str, wire_id: str | None) -> tuple[str, str | None]:
        """The id of the call that a response answers, and the id that the wire has for that call.

        A response to nothing keeps its id, or gets one of its own.
        """
        call = self._oldest_open(self._by_id.get(wire_id)) if wire_id else None
        if call is None:
            call = self._oldest_open(self._by_name.get(name))
            if call is not None and wire_id and call[1]:
                call = None  # both have ids, and they differ
        if call is None:
            call_id = wire_id or new_id("call_")
            return call_id, call_id
        self._answered.add(call[0])
        return call

    def _oldest_open(self, calls: deque[_Open] | None) -> _Open | None:
        while calls:
            if calls[0][0] not in self._answered:
                return calls[0]
            calls.popleft()
        return None
