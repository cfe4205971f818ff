"""Items of a stream that are still growing, read as the plain form would read them.

A part that begins is decoded as if its item were complete: most become so, and of an answer that
was cut off the message tells (it has no finish). Where the item, once done, says something else,
its parts are told again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, derived_call_id
from dragoman.model.events import Event, PartStart, PartStop
from dragoman.model.parts import Opaque, ServerToolCall
from dragoman.model.tools import ToolCall
from dragoman.wire.openai_responses.forms import ORIGIN
from dragoman.wire.openai_responses.items import decode_output_item

Item = dict[str, Any]

# The lists that an item's parts come out of, in the order of the parts.
_FIELDS = {"message": ("content",), "reasoning": ("summary", "content")}
_TEXTS = {"function_call": "arguments", "custom_tool_call": "input"}
_SERVERS = {"mcp_call": "arguments", "code_interpreter_call": "code"}
_THOUGHTS = {"summary": "summary_text", "content": "reasoning_text"}
_LATE = frozenset({"content", "summary", "encrypted_content"})  # of items that hold parts: W26


class GrowingPart:
    """A part that has begun: its number among the events, and what was said of it last."""

    __slots__ = ("is_stopped", "number", "part", "place")

    def __init__(self, number: int, part: AnyPart, place: tuple[int, ...]) -> None:
        self.number = number
        self.part = part
        self.place = place
        self.is_stopped = False


class Numbering:
    """What the items of one answer share: the number of the next part, and the calls' ids."""

    __slots__ = ("_call_ids", "identity", "last", "parts")

    def __init__(self) -> None:
        self.identity = UNKNOWN_RESPONSE
        self.parts: list[GrowingPart] = []
        self.last: AnyPart | None = None
        self._call_ids: set[str] = set()

    def add(self, part: AnyPart, place: tuple[int, ...]) -> GrowingPart:
        """A part begins."""
        if isinstance(part, ToolCall):
            part = self._named(part, place)
        growing = GrowingPart(len(self.parts), part, place)
        self.parts.append(growing)
        self.last = part
        return growing

    def settled(self, part: AnyPart, growing: GrowingPart) -> AnyPart:
        """The final form of a part; a call keeps the id that it was given at its start."""
        known = growing.part
        if not isinstance(part, ToolCall) or not isinstance(known, ToolCall):
            return part
        wire_id = part.id if part.wire_id is UNSET else part.wire_id
        if wire_id == (known.id if known.wire_id is UNSET else known.wire_id):
            return part.replace_unchecked(id=known.id, wire_id=known.wire_id, origin=known.origin)
        return self._named(part, growing.place)

    def _named(self, call: ToolCall, place: tuple[int, ...]) -> ToolCall:
        """The call, under an id of its own where another one has its id (I5)."""
        if call.id in self._call_ids:
            said, is_taken = (call.name, call.raw), self._call_ids.__contains__
            made = derived_call_id(self.identity, (place[0], 1), said, is_taken)
            call = call.replace_unchecked(id=made, wire_id=call.id, origin=ORIGIN)
        self._call_ids.add(call.id)
        return call


class GrowingItem:
    """An item between its beginning and its end."""

    __slots__ = (
        "_by_key",
        "_counts",
        "_numbering",
        "_parts",
        "_pieces",
        "_previous",
        "_wire",
        "index",
        "is_done",
    )

    def __init__(self, index: int, wire: Item, numbering: Numbering) -> None:
        self.index = index
        self.is_done = False
        self._wire = _begun(wire)
        self._numbering = numbering
        self._previous = numbering.last
        self._parts: list[GrowingPart] = []
        self._by_key: dict[tuple[str, int], GrowingPart] = {}
        self._counts: dict[str, int] = {}
        self._pieces: list[str] = []

    @property
    def kind(self) -> Any:
        """Its type."""
        return self._wire.get("type")

    @property
    def id(self) -> Any:
        """Its id."""
        return self._wire.get("id")

    @property
    def fields(self) -> tuple[str, ...]:
        """Where its parts are; nowhere, if it is a part itself."""
        return _fields(self._wire)

    @property
    def call(self) -> GrowingPart | None:
        """The call that it is, if it is one."""
        first = self._parts[0] if self._parts else None
        return first if first and isinstance(first.part, (ToolCall, ServerToolCall)) else None

    def grow(self, piece: str) -> int | None:
        """More of what the call is given; the call's number."""
        call = self.call
        if call is None:
            return None
        if isinstance(call.part, ServerToolCall):
            self._pieces.append(piece)  # whoever folds the events has no place for it
        return call.number

    @property
    def partial(self) -> tuple[int, AnyPart] | None:
        """The number and the state of a server's call that is not done."""
        field = _SERVERS.get(self.kind) if self._pieces and type(self.kind) is str else None
        if field is None or self.is_done:
            return None
        wire = {**self._wire, field: "".join(self._pieces)}
        first = self._read(wire, self._previous)[0]
        return self._parts[0].number, first

    def part(self, field: str, index: int) -> GrowingPart | None:
        """The part that has begun there."""
        return self._by_key.get((field, index))

    def count(self, field: str) -> int:
        """How many parts have begun there."""
        return self._counts.get(field, 0)

    def begin(self, wire: Item) -> list[Event]:
        """What is known at its beginning."""
        if not self.fields:
            return self._begin_whole()
        events: list[Event] = []
        for field in self.fields:
            entries = wire.get(field)
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                events += self.add(field, index, entry)
        return events

    def _begin_whole(self) -> list[Event]:
        first = self._read(self._wire, self._previous)[0]
        if isinstance(first, Opaque) and _text_field(self._wire):
            return []  # a call without a name: it may have one when it is done
        return [self._start(first, (self.index, 0, 0))]

    def add(self, field: str, index: int, entry: Any) -> list[Event]:
        """A part begins, or is said again; nothing where it can't be understood."""
        part = self._decoded(field, index, entry)
        if part is None or (field, index) in self._by_key:
            return []
        started = self._start(part, (self.index, self.fields.index(field), index))
        self._by_key[field, index] = self._parts[-1]
        self._counts[field] = self._counts.get(field, 0) + 1
        return [started]

    def end(self, field: str, index: int, entry: Any) -> list[Event]:
        """A part is done."""
        part, growing = self._decoded(field, index, entry), self._by_key.get((field, index))
        if part is None or growing is None:
            return []
        return self._stop(growing, part)

    def settle(self, wire: Any, previous: AnyPart | None) -> list[Event]:
        """All of it is known: its parts are what the plain form makes of it."""
        events: list[Event] = []
        parts = self._read(wire, previous)
        self._parts.sort(key=_place)
        for index, part in enumerate(parts):
            if index == len(self._parts):
                events.append(self._start(part, (self.index, len(_FIELDS), index)))
            events += self._stop(self._parts[index], part)
        events += [event for growing in self._parts[len(parts) :] for event in _ended(growing)]
        self.is_done = True
        return events

    def close(self) -> list[Event]:
        """No more comes, and the whole of it never came."""
        self.is_done = True
        return [event for growing in self._parts for event in _ended(growing)]

    @property
    def before(self) -> AnyPart | None:
        """The part that came before it."""
        return self._previous

    @property
    def last(self) -> AnyPart | None:
        """The part before the next item."""
        return self._parts[-1].part if self._parts else self._previous

    def _start(self, part: AnyPart, place: tuple[int, ...]) -> PartStart:
        growing = self._numbering.add(part, place)
        self._parts.append(growing)
        return PartStart(growing.number, growing.part)

    def _stop(self, growing: GrowingPart, part: AnyPart) -> list[Event]:
        part = self._numbering.settled(part, growing)
        if growing.is_stopped and growing.part.identical(part):
            return []
        growing.part, growing.is_stopped = part, True
        return [PartStop(growing.number, part)]

    def _read(self, wire: Any, previous: AnyPart | None) -> list[AnyPart]:
        return decode_output_item(wire, self.index, previous, self._numbering.identity)

    def _decoded(self, field: str, index: int, entry: Any) -> AnyPart | None:
        """The part of an entry; what is before it in the item is of no importance to it."""
        if not isinstance(entry, dict):
            return None
        if self.kind == "reasoning" and not _is_thought(field, entry):
            return None
        known = self._by_key.get((field, index))
        is_first = not self._parts or self._parts[0] is known
        entries = [entry] if is_first else [{**_FILLING, "type": entry.get("type")}, entry]
        wire = {key: value for key, value in self._wire.items() if key not in _LATE}
        if self.kind == "reasoning":
            wire["summary"] = []
        wire[field] = entries
        return self._read(wire, self._previous)[-1]


_FILLING = {"text": "", "refusal": ""}


def _begun(wire: Item) -> Item:
    """An item as it will be, as far as that can be told: complete, its text still to come."""
    text = _text_field(wire)
    if text is None and not _fields(wire):
        return wire
    begun = dict(wire)
    if "status" in begun:
        begun["status"] = "completed"
    if text is not None and type(begun.get(text)) is not str:
        begun[text] = ""
    return begun


def _text_field(wire: Item) -> str | None:
    kind = wire.get("type")
    return _TEXTS.get(kind) if type(kind) is str else None


def _fields(wire: Item) -> tuple[str, ...]:
    kind = wire.get("type")
    if kind == "message" and wire.get("role") != "assistant":
        return ()
    return _FIELDS.get(kind, ()) if type(kind) is str else ()


def _is_thought(field: str, entry: Item) -> bool:
    return entry.get("type") == _THOUGHTS[field] and type(entry.get("text")) is str


def _ended(growing: GrowingPart) -> Sequence[Event]:
    if growing.is_stopped:
        return ()
    growing.is_stopped = True
    return (PartStop(growing.number),)


def _place(growing: GrowingPart) -> tuple[int, ...]:
    return growing.place
