"""Items of a stream that are still growing, read as the plain form would read them.

A part that begins is decoded as if its item were complete: most become so, and of an answer that
was cut off the message tells (it has no finish). Where the item, once done, says something else,
its parts are told again.
"""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, derived_call_id
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque, ServerToolCall
from dragoman.model.tools import ToolCall
from dragoman.wire.openai_responses.content_items import decode_output_item, is_thought
from dragoman.wire.openai_responses.dialect import ORIGIN
from dragoman.wire.openai_responses.tools_calls import TYPES
from dragoman.wire.openai_responses.tools_client import begun
from dragoman.wire.stream_decoding import Emit, PartEvents

Item = dict[str, Any]

# The lists that an item's parts come out of, in the order of the parts.
_FIELDS = {"message": ("content",), "reasoning": ("summary", "content")}
_TEXTS = {types.call: types.text for types in TYPES.values()}
_SERVERS = {"mcp_call": "arguments", "code_interpreter_call": "code"}
_THOUGHTS = {"summary": "summary_text", "content": "reasoning_text"}
_LATE = frozenset({"content", "summary", "encrypted_content"})  # of items that hold parts: W26
_FILLING = {"text": "", "refusal": ""}


class GrowingPart:
    """A part that has begun: its number among the events, and what was told of it last."""

    __slots__ = ("is_stopped", "number", "part", "place")

    def __init__(self, number: int, part: AnyPart, place: tuple[int, ...]) -> None:
        self.number = number
        self.part = part
        self.place = place
        self.is_stopped = False


class OutputParts:
    """What the items of one answer share: its parts, and the ids of its calls."""

    __slots__ = ("_call_ids", "_events", "all", "identity", "last")

    def __init__(self, emit: Emit) -> None:
        self._events = PartEvents(emit)
        self._call_ids: set[str] = set()
        self.identity = UNKNOWN_RESPONSE
        self.all: list[GrowingPart] = []
        self.last: AnyPart | None = None

    def start(self, part: AnyPart, place: tuple[int, ...]) -> GrowingPart:
        """A part begins."""
        if isinstance(part, ToolCall):
            part = self._named(part, place)
        growing = GrowingPart(self._events.start(part), part, place)
        self.all.append(growing)
        self.last = part
        return growing

    def settle(self, growing: GrowingPart, part: AnyPart) -> bool:
        """The final form of a part is known; returns whether that is news."""
        part = self._settled(part, growing)
        if growing.is_stopped and growing.part.identical(part):
            return False
        growing.part, growing.is_stopped = part, True
        self._events.stop(growing.number, part)
        return True

    def stop(self, growing: GrowingPart) -> None:
        """No more of a part comes, and its final form never came."""
        if not growing.is_stopped:
            growing.is_stopped = True
            self._events.stop(growing.number)

    def _settled(self, part: AnyPart, growing: GrowingPart) -> AnyPart:
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

    __slots__ = ("_by_key", "_counts", "_output", "_parts", "_pieces", "_settled", "_wire",
                 "before", "fields", "id", "index", "is_done", "kind")  # fmt: skip

    def __init__(self, index: int, wire: Item, output: OutputParts) -> None:
        self.index = index
        self.is_done = False
        self.before = output.last
        """The part that came before it."""
        self.kind: Any = wire.get("type")
        self.id: Any = wire.get("id")
        self.fields = _fields(wire)
        """Where its parts are; nowhere, if it is a part itself."""
        self._wire = _begun(wire)
        self._output = output
        self._parts: list[GrowingPart] = []
        self._by_key: dict[tuple[str, int], GrowingPart] = {}
        self._counts: dict[str, int] = {}
        self._pieces: list[str] = []
        self._settled: tuple[Any, ...] | None = None  # as what it was settled last

    @property
    def last(self) -> AnyPart | None:
        """The part before the next item."""
        return self._parts[-1].part if self._parts else self.before

    def grow(self, piece: str) -> int | None:
        """More of what a call is given; the call's number, None where this is no call."""
        call = self._parts[0] if self._parts else None
        if call is None or not isinstance(call.part, (ToolCall, ServerToolCall)):
            return None
        if isinstance(call.part, ServerToolCall):
            self._pieces.append(piece)  # whoever folds the events has no place for it
        return call.number

    @property
    def pieces(self) -> tuple[list[str], ...]:
        """Where more of what a server's call is given is kept."""
        is_servers = isinstance(self._parts[0].part, ServerToolCall)
        return (self._pieces,) if is_servers else ()

    @property
    def partial(self) -> tuple[int, AnyPart] | None:
        """The number and the state of a server's call that is not done."""
        field = _SERVERS.get(self.kind) if self._pieces and type(self.kind) is str else None
        if field is None or self.is_done:
            return None
        wire = {**self._wire, field: "".join(self._pieces)}
        return self._parts[0].number, self._read(wire, self.before)[0]

    def part(self, field: str, index: int) -> GrowingPart | None:
        """The part that has begun there."""
        return self._by_key.get((field, index))

    def count(self, field: str) -> int:
        """How many parts have begun there."""
        return self._counts.get(field, 0)

    def begin(self, wire: Item) -> None:
        """Tell what is known at its beginning."""
        if not self.fields:
            first = self._read(self._wire, self.before)[0]
            # A call without a name may have one when it is done.
            if not isinstance(first, Opaque) or not _text_field(self._wire):
                first = begun(first) if isinstance(first, ToolCall) else first
                self._start(first, (self.index, 0, 0))
        for field in self.fields:
            entries = wire.get(field)
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                self.add(field, index, entry)

    def add(self, field: str, index: int, entry: Any) -> bool:
        """A part begins; False where it has begun before, or can't be understood."""
        part = self._decoded(field, index, entry)
        if part is None or (field, index) in self._by_key:
            return False
        growing = self._start(part, (self.index, self.fields.index(field), index))
        self._by_key[field, index] = growing
        self._counts[field] = self.count(field) + 1
        return True

    def end(self, field: str, index: int, entry: Any) -> bool:
        """A part is done; returns whether that is news."""
        part, growing = self._decoded(field, index, entry), self._by_key.get((field, index))
        return part is not None and growing is not None and self._output.settle(growing, part)

    def settle(self, wire: Any, previous: AnyPart | None) -> None:
        """All of it is known: its parts are what the plain form makes of it."""
        # Nothing else of the part before it makes a difference to what is read.
        follows = None if previous is None else (type(previous), previous.item_id)
        settled, known = (follows, self._output.identity, wire), self._settled
        if known is not None and settled == known and dumps(wire) == dumps(known[2]):
            return  # it came with its own end, and now with that of the response
        self._settled = settled
        parts = self._read(wire, previous)
        self._parts.sort(key=attrgetter("place"))
        for index, part in enumerate(parts):
            if index == len(self._parts):
                self._start(part, (self.index, len(_FIELDS), index))
            self._output.settle(self._parts[index], part)
        for growing in self._parts[len(parts) :]:
            self._output.stop(growing)
        self.is_done = True

    def close(self) -> None:
        """No more comes, and the whole of it never came."""
        self.is_done = True
        for growing in self._parts:
            self._output.stop(growing)

    def _start(self, part: AnyPart, place: tuple[int, ...]) -> GrowingPart:
        growing = self._output.start(part, place)
        self._parts.append(growing)
        return growing

    def _read(self, wire: Any, previous: AnyPart | None) -> list[AnyPart]:
        return decode_output_item(wire, self.index, previous, self._output.identity)

    def _decoded(self, field: str, index: int, entry: Any) -> AnyPart | None:
        """The part of an entry; what is before it in the item is of no importance to it."""
        if not isinstance(entry, dict):
            return None
        if self.kind == "reasoning" and not is_thought(entry, _THOUGHTS[field]):
            return None
        known = self._by_key.get((field, index))
        is_first = not self._parts or self._parts[0] is known
        entries = [entry] if is_first else [{**_FILLING, "type": entry.get("type")}, entry]
        wire = {key: value for key, value in self._wire.items() if key not in _LATE}
        if self.kind == "reasoning":
            wire["summary"] = []
        wire[field] = entries
        return self._read(wire, self.before)[-1]


def _begun(wire: Item) -> Item:
    """An item as it will be, as far as that can be told: complete, its text still to come."""
    text = _text_field(wire)
    if text is None and not _fields(wire):
        return wire
    filled = dict(wire)
    if "status" in filled:
        filled["status"] = "completed"
    if text is not None and type(filled.get(text)) is not str:
        filled[text] = ""
    return filled


def _text_field(wire: Item) -> str | None:
    kind = wire.get("type")
    return _TEXTS.get(kind) if type(kind) is str else None


def _fields(wire: Item) -> tuple[str, ...]:
    kind = wire.get("type")
    if kind == "message" and wire.get("role") != "assistant":
        return ()
    return _FIELDS.get(kind, ()) if type(kind) is str else ()


class Items:
    """The items of a stream, by their place and by their id."""

    __slots__ = ("_all", "_by_id", "_by_index", "latest", "output")

    def __init__(self, emit: Emit) -> None:
        self.output = OutputParts(emit)
        self._all: list[GrowingItem] = []
        self._by_index: dict[int, GrowingItem] = {}  # the last one there
        self._by_id: dict[str, GrowingItem] = {}
        self.latest: GrowingItem | None = None

    def in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Parts in the order of their items, with what the events do not say of servers' calls."""
        places = [growing.place for growing in self.output.all]
        partial = [item.partial for item in self._all if not item.is_done]
        told = dict(enumerate(parts)) | dict(found for found in partial if found is not None)
        if all(one <= other for one, other in pairwise(places)):
            return tuple(told.values()) if any(partial) else parts
        return tuple([told[number] for number in sorted(told, key=places.__getitem__)])

    def of(self, wire: Item) -> GrowingItem | None:
        """The item that an event is about: by its place, else by its id (which may change)."""
        index = wire.get("output_index")
        if type(index) is int:
            return self._by_index.get(index)
        item_id = wire.get("item_id")
        found = self._by_id.get(item_id) if type(item_id) is str else None
        return found or (self.latest if item_id is None else None)

    def begin(self, index: int | None, wire: Item) -> GrowingItem:
        """An item begins; one in the same place that never ended does now."""
        known = None if index is None else self._by_index.get(index)
        if known is not None and not known.is_done:
            known.close()
        item = self._add(self._free() if index is None else index, wire)
        item.begin(wire)
        return item

    def end(self, index: int | None, wire: Item) -> None:
        """An item is done."""
        item = self.of({"output_index": index, "item_id": wire.get("id")})
        if item is None or item.is_done or item.kind != wire.get("type"):
            item = self._add(self._free() if index is None else index, wire)
        item.settle(wire, item.before)

    def settle(self, output: Any) -> None:
        """The response is done, and has all its items once more, or none."""
        ordered = sorted(self._all, key=attrgetter("index"))
        settled: set[GrowingItem] = set()
        previous: AnyPart | None = None
        for index, wire in enumerate(output if isinstance(output, list) else ()):
            item = ordered[index] if index < len(ordered) else None
            if not _is_same(item, wire):  # ids may change from event to event, places do not
                item = self._named(wire)
            if item is None or item in settled:
                item = self._add(index, wire if isinstance(wire, dict) else {})
            settled.add(item)
            item.settle(wire, previous)
            previous = item.last
        for item in ordered:
            if not item.is_done:
                item.close()

    def _named(self, wire: Any) -> GrowingItem | None:
        item_id = wire.get("id") if isinstance(wire, dict) else None
        found = self._by_id.get(item_id) if type(item_id) is str else None
        return found if _is_same(found, wire) else None

    def _add(self, index: int, wire: Item) -> GrowingItem:
        item = GrowingItem(index, wire, self.output)
        self._all.append(item)
        self._by_index[index] = self.latest = item
        if type(item.id) is str:
            self._by_id[item.id] = item
        return item

    def _free(self) -> int:
        return self.latest.index + 1 if self.latest is not None else 0


def _is_same(item: GrowingItem | None, wire: Any) -> bool:
    return item is not None and isinstance(wire, dict) and item.kind == wire.get("type")
