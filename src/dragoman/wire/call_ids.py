"""Tool call ids, and matching of tool results to their calls.

`OpenCalls` does the matching everywhere: in decoders (`CallIds`), for messages merged from several
sources (`inputs`) and in fitting.

Wire formats omit ids, send empty ones, or repeat an id within a turn or later (W81, W103, I5); our
ids are unique. A call without a usable id gets one derived from its position
(`dragoman.model.derived_ids`), so decoding twice gives the same id; the wire id is kept as well.
A result is matched by id; on wires with optional ids (Gemini, Ollama) it falls back to name and
order within the step, then to order alone.
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
    """Calls without a result yet, in order, with lookup of the call that a result belongs to.

    A call is registered under labels, such as its tool's name or an id it shares with other calls.
    Looking up a label returns its oldest call that has no result.
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
        """May be shared between instances, so that a call closed in one is closed in all."""

    def __contains__(self, label: Hashable) -> bool:
        """Whether any call was registered under this label, with or without a result."""
        return label in self._queues

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, call: K, *labels: Hashable) -> None:
        """Register a call that has no result yet."""
        for label in labels:
            queue = self._queues.get(label)
            if queue is None:
                queue = self._queues[label] = deque()
            queue.append(call)

    def close(self, call: K) -> None:
        """Mark a call as having its result."""
        self._answered.add(call)

    def oldest(self, label: Hashable) -> K | None:
        """The oldest call with that label that has no result; None if there is none."""
        queue = self._queues.get(label)
        while queue:
            if queue[0] not in self._answered:
                return queue[0]
            queue.popleft()
        return None

    def waiting(self, label: Hashable) -> Iterator[K]:
        """The calls with that label that have no result, oldest first."""
        return (call for call in self._queues.get(label, ()) if call not in self._answered)


_NO_IDS: set[str] = set()
_NO_WIRE_IDS: dict[str, str | None] = {}
_NO_CALLS = OpenCalls[str]()
"""Shared by all bodies that have none, and never changed."""


def decode_calls(read: Callable[[CallIds], T]) -> T:
    """Run `read` with a fresh `CallIds` and return its result.

    A derived id may turn up later in the body as the wire id of another call. In that case the
    body is read a second time, with such ids reserved for the calls that came with them.
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
        """Distinguishes the ids of this body from those of others; a stream may set it later."""
        self._taken = taken
        self._place = self._count = 0
        self._used: set[str] = set()
        self._answered: dict[str, str] = {}  # by a result's wire id: the call it last matched
        # Most bodies give every call a unique id, and never fill the following; see `_matched`.
        self._done: set[str] | None = None  # calls that have a result
        self._derived = self._clashes = _NO_IDS
        self._wire_ids = _NO_WIRE_IDS  # for calls with a derived id
        self._repeated = _NO_CALLS  # calls whose wire id is repeated, by that id
        self._open = _NO_CALLS  # calls of this step without an id, by id and name
        self._step = _NO_CALLS  # all calls of this step, by name; see `add_named_call`

    def _matched(self) -> set[str]:
        """The calls that have a result, where results are matched by more than a unique id."""
        if self._done is None:
            self._done, self._derived, self._clashes, self._wire_ids = set(), set(), set(), {}
            self._repeated = OpenCalls(self._done)
            self._open = OpenCalls(self._done)
            self._step = OpenCalls(self._done)
        return self._done

    # --- position of the decoder

    def at(self, place: int) -> None:
        """Set the message, item or choice that is being read."""
        self._place, self._count = place, 0

    def begin_step(self) -> None:
        """Start a new model turn: a result without an id can't match an earlier call (W78)."""
        if self._step:
            self._step = OpenCalls(self._matched())
        if self._open:
            self._open = OpenCalls(self._matched())

    def begin_turn(self, place: int) -> None:
        """Start a model message; consecutive model messages belong to the same step."""
        if place != self._place + 1:
            self.begin_step()
        self.at(place)

    # --- calls

    def add_call(
        self, name: str, wire_id: str | None, arguments: Any = None
    ) -> tuple[str, str | UnsetType | None]:
        """Return the id for a new call and the value for its `wire_id`."""
        self._count += 1
        if wire_id and wire_id not in self._used:
            self._used.add(wire_id)
            return wire_id, UNSET
        self._matched()
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
        """Like `add_call`, for a call whose result may refer to it by tool name alone."""
        self._matched()
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
        """Register a call whose wire id is already in use; results are matched to them in order."""
        self._note_clash(wire_id)
        is_first = wire_id not in self._repeated
        if is_first and wire_id not in self._answered and wire_id not in self._derived:
            self._repeated.add(wire_id, wire_id)
        self._repeated.add(made, wire_id)

    # --- results

    def answer(self, wire_id: str | None, name: str | None = None) -> str | None:
        """The id of the call that a result belongs to; the wire id itself if no call matches.

        A result without an id matches a call without an id, preferring one with the same name.
        """
        if not wire_id:
            found = self._open.oldest((wire_id, name)) or self._open.oldest((wire_id, None))
            return wire_id if found is None else self._finished(found)
        if not self._derived:  # the normal case: every call had a unique id
            self._answered[wire_id] = wire_id
            return wire_id
        return self._answer_id(wire_id) or self._known(wire_id)

    def answer_named(self, name: str | None, wire_id: str | None) -> tuple[str, str | None]:
        """The id of the call that a result belongs to, and that call's wire id.

        A result that matches no call keeps its own id, or gets a derived one.
        """
        call_id = self._answer_id(wire_id) if wire_id else None
        if call_id is None:
            call_id = self._step.oldest(name)
            if call_id is not None and wire_id and self.wire_id(call_id):
                call_id = None  # both have ids, and the ids differ
        if call_id is not None:
            self._finished(call_id)
        elif wire_id:
            call_id = self._known(wire_id)
        else:
            self._matched()
            self._count += 1
            call_id = self._derive(name or "", None)
        return call_id, self.wire_id(call_id)

    def wire_id(self, call_id: str) -> str | None:
        """The wire id of a call; None if it has none."""
        return self._wire_ids.get(call_id, call_id)

    def _answer_id(self, wire_id: str) -> str | None:
        """Find the oldest call with that id and no result, and mark it as done."""
        if wire_id in self._repeated:
            found = self._repeated.oldest(wire_id)
        else:
            is_open = wire_id in self._used and wire_id not in self._answered
            found = wire_id if is_open and wire_id not in self._derived else None
        if found is not None:
            self._answered[wire_id] = self._finished(found)
        return found

    def _known(self, wire_id: str) -> str:
        """The call last matched under that id; the id itself if there is none."""
        if wire_id not in self._answered:
            self._note_clash(wire_id)
        return self._answered.setdefault(wire_id, wire_id)

    def _finished(self, call_id: str) -> str:
        self._matched().add(call_id)
        return call_id

    # --- clashes between derived ids and wire ids

    def _note_clash(self, wire_id: str) -> None:
        if wire_id in self._derived:
            self._clashes.add(wire_id)

    @property
    def has_clashed(self) -> bool:
        """Whether a wire id turned up that had already been derived for another call."""
        return bool(self._clashes)

    @property
    def present(self) -> frozenset[str]:
        """All wire ids seen, of calls and of results."""
        return frozenset((self._used - self._derived) | self._answered.keys() | self._clashes)
