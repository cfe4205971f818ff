"""Which result answers which call, on wires whose ids are optional (Gemini's, Ollama's).

They may be missing, empty, repeated in one turn or reused later (W81, W103, I5); ours are unique. A
result is paired by its id, else by name and order within the step, else by order alone.
"""

from __future__ import annotations

from collections import defaultdict, deque

from msgspec import UNSET, UnsetType

from dragoman.model.ids import new_id

_Open = tuple[str, str | None]


class Calls:
    """The calls of a conversation read so far."""

    __slots__ = ("_answered", "_by_id", "_by_name", "_known", "_open")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._answered: set[str] = set()
        self._by_id: dict[str, deque[_Open]] = defaultdict(deque)
        self._by_name: dict[str, deque[_Open]] = defaultdict(deque)
        self._open: deque[_Open] = deque()

    def begin_step(self) -> None:
        """A new model turn: a result without an id can't mean a call of an earlier one (W78)."""
        if self._by_name:
            self._by_name = defaultdict(deque)
            self._open = deque()

    def admit(self, name: str, wire_id: str | None) -> tuple[str, str | UnsetType | None]:
        """The id of a new call, and its `wire_id`."""
        call_id = wire_id if wire_id and wire_id not in self._known else new_id("call_")
        self._known.add(call_id)
        call = (call_id, wire_id)
        self._by_name[name].append(call)
        self._open.append(call)
        if wire_id:
            self._by_id[wire_id].append(call)
        return call_id, UNSET if call_id == wire_id else wire_id

    def answer(self, name: str | None, wire_id: str | None) -> tuple[str, str | None]:
        """The id of the call that a result answers, and the id that the wire has for that call.

        A result of nothing keeps its id, or gets one of its own.
        """
        call = self._oldest_open(self._by_id.get(wire_id)) if wire_id else None
        if call is None:
            called = self._open if name is None else self._by_name.get(name)
            call = self._oldest_open(called)
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
