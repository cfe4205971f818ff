"""Ids of the tool calls in a body, and which call a result answers.

Wires leave ids out, send empty ones, use one twice in a turn, or again later (W81, W103, I5); ours
are unique. A call without an id of its own gets one that is derived from its place
(`dragoman.model.derived_ids`), so that decoding twice gives the same, and keeps the wire's beside
it. A result is paired by its id; on wires where ids are optional (Gemini, Ollama) else by name and
order within the step, else by order alone.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from dragoman.model.derived_ids import REQUEST, Identity, derived_call_id

T = TypeVar("T")
_Queues = defaultdict[tuple[str | None, str | None], deque[str]]
"""Calls in their order, by the id that the wire has for them, and by name."""


def decode_calls(read: Callable[[CallIds], T]) -> T:
    """What `read` makes of a request, given the ids of its calls.

    An id that was derived may turn up further on as the id of another call: then the request is
    read again, and that id is left to the call that came with it.
    """
    calls = CallIds()
    found = read(calls)
    return read(CallIds(taken=calls.present)) if calls.has_clashed else found


class CallIds:
    """The calls read so far, their results, and the ids of both."""

    __slots__ = ("_answered", "_clashes", "_count", "_derived", "_done", "_open", "_place",
                 "_repeated", "_step", "_taken", "_used", "_wire_ids", "identity")  # fmt: skip

    def __init__(self, identity: Identity = REQUEST, *, taken: Collection[str] = ()) -> None:
        self.identity = identity
        """Tells the ids of this body from those of others; a stream may learn it on the way."""
        self._taken = taken
        self._place, self._count = 0, 0
        self._used: set[str] = set()
        self._derived: set[str] = set()
        self._clashes: set[str] = set()
        self._wire_ids: dict[str, str | None] = {}  # of calls whose id is derived
        self._answered: dict[str, str] = {}  # by a result's id: the call that it was for last
        self._done: set[str] = set()  # calls with a result
        self._repeated: dict[str, deque[str]] = {}  # by an id that came twice: its calls
        self._open: _Queues = defaultdict(deque)  # the calls of this step without an id
        self._step: _Queues = defaultdict(deque)  # all calls of this step; see `admit_named`

    # --- where the reader is

    def at(self, place: int) -> None:
        """The message, item or choice that is read now."""
        self._place, self._count = place, 0

    def begin_step(self) -> None:
        """A new model turn: a result without an id can't mean a call of an earlier one (W78)."""
        if self._step:
            self._step = defaultdict(deque)
        if self._open:
            self._open = defaultdict(deque)

    def begin_turn(self, place: int) -> None:
        """A message of the model; one right after another is of the same step."""
        if place != self._place + 1:
            self.begin_step()
        self.at(place)

    # --- calls

    def admit(
        self, name: str, wire_id: str | None, arguments: Any = None
    ) -> tuple[str, str | UnsetType | None]:
        """The id of a new call, and its `wire_id`."""
        self._count += 1
        if wire_id and wire_id not in self._used:
            self._used.add(wire_id)
            return wire_id, UNSET
        made = self._derive(name, arguments)
        self._wire_ids[made] = wire_id
        if wire_id:
            self._repeat(wire_id, made)
        else:
            self._open[wire_id, name].append(made)
            self._open[wire_id, None].append(made)
        return made, wire_id

    def admit_named(
        self, name: str, wire_id: str | None, arguments: Any = None
    ) -> tuple[str, str | UnsetType | None]:
        """As `admit`, for a call that a result may name by its tool alone."""
        found = self.admit(name, wire_id, arguments)
        self._step[None, name].append(found[0])
        self._step[None, None].append(found[0])
        return found

    def _derive(self, name: str, arguments: Any) -> str:
        place = (self._place, self._count)
        made = derived_call_id(self.identity, place, (name, arguments), self._is_taken)
        self._derived.add(made)
        self._used.add(made)
        return made

    def _is_taken(self, call_id: str) -> bool:
        return call_id in self._used or call_id in self._taken or call_id in self._answered

    def _repeat(self, wire_id: str, made: str) -> None:
        """Note a call whose id another has; results go to them in their order."""
        self._note_clash(wire_id)
        queue = self._repeated.get(wire_id)
        if queue is None:
            is_open = wire_id not in self._answered and wire_id not in self._derived
            queue = self._repeated[wire_id] = deque([wire_id] if is_open else [])
        queue.append(made)

    # --- results

    def answer(self, wire_id: str | None, name: str | None = None) -> str | None:
        """The id of the call that a result answers; the wire's own where no call is known.

        Without an id a result is for a call that came without, of that name if one waits.
        """
        if not wire_id:
            named, first = self._open.get((wire_id, name)), self._open.get((wire_id, None))
            found = self._oldest(named) or self._oldest(first)
            return wire_id if found is None else self._finished(found)
        if not self._derived:  # every id was there, once: as it should be
            self._answered[wire_id] = wire_id
            return wire_id
        return self._answer_id(wire_id) or self._known(wire_id)

    def answer_named(self, name: str | None, wire_id: str | None) -> tuple[str, str | None]:
        """The id of the call that a result answers, and the id that the wire has for that call.

        A result of nothing keeps its id, or gets one of its own.
        """
        call_id = self._answer_id(wire_id) if wire_id else None
        if call_id is None:
            call_id = self._oldest(self._step.get((None, name)))
            if call_id is not None and wire_id and self.wire_id(call_id):
                call_id = None  # both have ids, and they differ
        if call_id is not None:
            self._finished(call_id)
        elif wire_id:
            call_id = self._known(wire_id)
        else:
            self._count += 1
            call_id = self._derive(name or "", None)
        return call_id, self.wire_id(call_id)

    def wire_id(self, call_id: str) -> str | None:
        """What the wire calls a call; None where it has no id there."""
        return self._wire_ids.get(call_id, call_id)

    def _answer_id(self, wire_id: str) -> str | None:
        """The oldest call of that id without a result, which has one now."""
        queue = self._repeated.get(wire_id)
        if queue is not None:
            found = self._oldest(queue)
        else:
            is_open = wire_id in self._used and wire_id not in self._answered
            found = wire_id if is_open and wire_id not in self._derived else None
        if found is not None:
            self._answered[wire_id] = self._finished(found)
        return found

    def _known(self, wire_id: str) -> str:
        """The call that was answered last under that id; the id itself where there is none."""
        if wire_id not in self._answered:
            self._note_clash(wire_id)
        return self._answered.setdefault(wire_id, wire_id)

    def _finished(self, call_id: str) -> str:
        self._done.add(call_id)
        return call_id

    def _oldest(self, queue: deque[str] | None) -> str | None:
        while queue:
            if queue[0] not in self._done:
                return queue[0]
            queue.popleft()
        return None

    # --- ids that are both derived and on the wire

    def _note_clash(self, wire_id: str) -> None:
        if wire_id in self._derived:
            self._clashes.add(wire_id)

    @property
    def has_clashed(self) -> bool:
        """Whether an id of the wire had been derived for something else before it came."""
        return bool(self._clashes)

    @property
    def present(self) -> frozenset[str]:
        """The ids that the wire has, of calls and of results."""
        return frozenset((self._used - self._derived) | self._answered.keys() | self._clashes)
