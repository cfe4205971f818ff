"""Ids of tool calls, and which call a result answers.

`OpenCalls` does the matching, for everyone: readers (`CallIds`), messages from several sources
(`inputs`) and fitting.

Wires leave ids out, send empty ones, use one twice in a turn, or again later (W81, W103, I5); ours
are unique. A call without an id of its own gets one that is derived from its place
(`dragoman.model.derived_ids`), so that decoding twice gives the same, and keeps the wire's beside
it. A result is paired by its id; on wires where ids are optional (Gemini, Ollama) else by name and
order within the step, else by order alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import UNSET, UnsetType

from dragoman.model.derived_ids import REQUEST, Identity, derived_call_id

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class OpenCalls(Generic[K]):
    """Calls that wait for their results, in their order, and which of them a result answers.

    A call is known by labels: its tool's name, say, or an id that it shares with others. What asks
    for a label gets the oldest call that has it and waits.

    >>> calls = OpenCalls[str]()
    >>> calls.add("call_1", "weather", None)
    >>> calls.add("call_2", "time", None)
    >>> calls.oldest("time"), calls.oldest(None)
    ('call_2', 'call_1')
    >>> calls.close("call_1")
    >>> calls.oldest("weather"), calls.oldest(None)
    (None, 'call_2')
    """

    __slots__ = ("_answered", "_queues")

    def __init__(self, answered: set[K] | None = None) -> None:
        self._queues: dict[Hashable, deque[K]] = {}
        self._answered: set[K] = set() if answered is None else answered
        """May be shared: a call that is answered waits nowhere."""

    def __contains__(self, label: Hashable) -> bool:
        """Whether any call has had this label."""
        return label in self._queues

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, call: K, *labels: Hashable) -> None:
        """Note a call that waits from now on."""
        for label in labels:
            queue = self._queues.get(label)
            if queue is None:
                queue = self._queues[label] = deque()
            queue.append(call)

    def close(self, call: K) -> None:
        """Note that a call has its result."""
        self._answered.add(call)

    def oldest(self, label: Hashable) -> K | None:
        """The call of that label that has waited longest."""
        queue = self._queues.get(label)
        while queue:
            if queue[0] not in self._answered:
                return queue[0]
            queue.popleft()
        return None

    def waiting(self, label: Hashable) -> Iterator[K]:
        """The calls of that label that wait, the oldest first."""
        return (call for call in self._queues.get(label, ()) if call not in self._answered)


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
        self._repeated = OpenCalls(self._done)  # by an id that came twice
        self._open = OpenCalls(self._done)  # those of this step without an id, by that and name
        self._step = OpenCalls(self._done)  # all of this step, by name; see `add_named_call`

    # --- where the reader is

    def at(self, place: int) -> None:
        """The message, item or choice that is read now."""
        self._place, self._count = place, 0

    def begin_step(self) -> None:
        """A new model turn: a result without an id can't mean a call of an earlier one (W78)."""
        if self._step:
            self._step = OpenCalls(self._done)
        if self._open:
            self._open = OpenCalls(self._done)

    def begin_turn(self, place: int) -> None:
        """A message of the model; one right after another is of the same step."""
        if place != self._place + 1:
            self.begin_step()
        self.at(place)

    # --- calls

    def add_call(
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
            self._open.add(made, (wire_id, name), (wire_id, None))
        return made, wire_id

    def add_named_call(
        self, name: str, wire_id: str | None, arguments: Any = None
    ) -> tuple[str, str | UnsetType | None]:
        """As `add_call`, for a call that a result may name by its tool alone."""
        found = self.add_call(name, wire_id, arguments)
        self._step.add(found[0], name, None)
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
        is_first = wire_id not in self._repeated
        if is_first and wire_id not in self._answered and wire_id not in self._derived:
            self._repeated.add(wire_id, wire_id)
        self._repeated.add(made, wire_id)

    # --- results

    def answer(self, wire_id: str | None, name: str | None = None) -> str | None:
        """The id of the call that a result answers; the wire's own where no call is known.

        Without an id a result is for a call that came without, of that name if one waits.
        """
        if not wire_id:
            found = self._open.oldest((wire_id, name)) or self._open.oldest((wire_id, None))
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
            call_id = self._step.oldest(name)
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
        if wire_id in self._repeated:
            found = self._repeated.oldest(wire_id)
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
