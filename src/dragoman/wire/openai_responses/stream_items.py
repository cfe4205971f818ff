"""Items of a stream between their start and their end, decoded like those of a whole response.

A part that begins is decoded as if its item were complete: most become so, and a truncated message
is recognised by its missing finish reason. If the completed item differs, its parts are emitted
again.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from operator import attrgetter
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, derived_call_id
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque, ServerToolCall
from dragoman.model.tools import ToolCall
from dragoman.wire.openai_responses.dialect import ORIGIN
from dragoman.wire.openai_responses.layout import (
    decode_output_item,
    is_reasoning_text,
    likely_call,
)
from dragoman.wire.openai_responses.stream_tables import ARGUMENTS, LISTS, SERVER_TEXTS
from dragoman.wire.openai_responses.tools_client import begun
from dragoman.wire.stream_decoding import Emit, PartEvents

Item = dict[str, Any]

_LATE = frozenset({"content", "summary", "encrypted_content"})  # of items with parts: W26
_FILLING = {"text": "", "refusal": ""}


class GrowingPart:
    """A started part: its index among the events, and its last emitted state."""

    __slots__ = ("is_stopped", "number", "part", "place")

    def __init__(self, number: int, part: AnyPart, place: tuple[int, ...]) -> None:
        self.number = number
        self.part = part
        self.place = place
        self.is_stopped = False


class OutputParts:
    """State shared by the items of one response: its parts, and the ids of its calls."""

    __slots__ = ("_call_ids", "_events", "all", "identity", "last")

    def __init__(self, emit: Emit) -> None:
        self._events = PartEvents(emit)
        self._call_ids: set[str] = set()
        self.identity = UNKNOWN_RESPONSE
        self.all: list[GrowingPart] = []
        self.last: AnyPart | None = None

    def start(self, part: AnyPart, place: tuple[int, ...]) -> GrowingPart:
        """Start a part."""
        if isinstance(part, ToolCall):
            part = self._named(part, place)
        growing = GrowingPart(self._events.start(part), part, place)
        self.all.append(growing)
        self.last = part
        return growing

    def settle(self, growing: GrowingPart, part: AnyPart) -> None:
        """Set the final form of a part."""
        part = self._settled(part, growing)
        if not (growing.is_stopped and growing.part.identical(part)):
            growing.part, growing.is_stopped = part, True
            self._events.stop(growing.number, part)

    def stop(self, growing: GrowingPart) -> None:
        """Stop a part whose final form never came."""
        if not growing.is_stopped:
            growing.is_stopped = True
            self._events.stop(growing.number)

    def _settled(self, part: AnyPart, growing: GrowingPart) -> AnyPart:
        """The final form of a part; a call keeps the id assigned at its start."""
        known = growing.part
        if not isinstance(part, ToolCall) or not isinstance(known, ToolCall):
            return part
        wire_id = part.id if part.wire_id is UNSET else part.wire_id
        if wire_id == (known.id if known.wire_id is UNSET else known.wire_id):
            return part.replace_unchecked(id=known.id, wire_id=known.wire_id, origin=known.origin)
        return self._named(part, growing.place)

    def _named(self, call: ToolCall, place: tuple[int, ...]) -> ToolCall:
        """The call, with a new id if another call has the same (I5)."""
        if call.id in self._call_ids:
            content, is_taken = (call.name, call.raw), self._call_ids.__contains__
            made = derived_call_id(self.identity, (place[0], 1), content, is_taken)
            call = call.replace_unchecked(id=made, wire_id=call.id, origin=ORIGIN)
        self._call_ids.add(call.id)
        return call


class GrowingItem:
    """An item that has started and not ended yet."""

    __slots__ = ("_by_key", "_counts", "_latest", "_output", "_parts", "_pieces", "_settled",
                 "_wire", "again", "before", "fields", "id", "index", "is_done",
                 "kind")  # fmt: skip

    def __init__(self, index: int, wire: Item, output: OutputParts) -> None:
        self.index = index
        self.is_done = False
        self.again: Item | None = None
        """A start with the ids of this item after its end, of which nothing has followed."""
        self.before = output.last
        """The part before the item."""
        wire = _typed(wire)
        self.kind: Any = wire["type"]
        self.id: Any = wire.get("id")
        self.fields = _fields(wire)
        """The lists that hold its parts; empty if the item is itself a part."""
        self._wire = _begun(wire)
        self._output = output
        self._parts: list[GrowingPart] = []
        self._by_key: dict[tuple[str, int], GrowingPart] = {}
        self._counts: dict[str, int] = {}
        self._pieces: list[str] = []
        self._settled: tuple[Any, ...] | None = None  # the key of its latest final form
        self._latest: tuple[Item, list[AnyPart]] | None = None  # the last entry that was decoded

    @property
    def last(self) -> AnyPart | None:
        """The last part, which precedes the next item."""
        return self._parts[-1].part if self._parts else self.before

    def grow(self, piece: str) -> int | None:
        """Add a piece of a call's input; returns the index of the call, None if it is not one."""
        call = self._parts[0] if self._parts else None
        if call is None or not isinstance(call.part, (ToolCall, ServerToolCall)):
            return None
        if isinstance(call.part, ServerToolCall):
            self._pieces.append(piece)  # accumulated events would not hold it
        return call.number

    @property
    def pieces(self) -> tuple[list[str], ...]:
        """The lists that collect the input of a server tool call."""
        is_servers = isinstance(self._parts[0].part, ServerToolCall)
        return (self._pieces,) if is_servers else ()

    @property
    def partial(self) -> tuple[int, AnyPart] | None:
        """The index and state of an unfinished server tool call."""
        field = SERVER_TEXTS.get(self.kind) if self._pieces and type(self.kind) is str else None
        if field is None or self.is_done:
            return None
        wire = {**self._wire, field: "".join(self._pieces)}
        return self._parts[0].number, self._read(wire, self.before)[0]

    def part(self, field: str, index: int) -> GrowingPart | None:
        """The started part at an index."""
        return self._by_key.get((field, index))

    def count(self, field: str) -> int:
        """The number of started parts in a list."""
        return self._counts.get(field, 0)

    def begin(self, wire: Item) -> None:
        """Emit the initial parts of the item."""
        if not self.fields:
            first = self._read(self._wire, self.before)[0]
            # A call without a name may get one by its end.
            if not isinstance(first, Opaque) or not _text_field(self._wire):
                first = begun(first) if isinstance(first, ToolCall) else first
                self._start(first, (self.index, 0, 0))
        for field in self.fields:
            entries = wire.get(field)
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                self.add(field, index, entry)

    def add(self, field: str, index: int, entry: Any) -> bool:
        """Start a part; False if it has already started or is unknown."""
        part = self._decoded(field, index, entry)
        if part is None or (field, index) in self._by_key:
            return False
        growing = self._start(part, (self.index, self.fields.index(field), index))
        self._by_key[field, index] = growing
        self._counts[field] = self.count(field) + 1
        return True

    def end(self, field: str, index: int, entry: Any) -> bool:
        """End a part; returns whether it is known."""
        part, growing = self._decoded(field, index, entry), self._by_key.get((field, index))
        if part is None or growing is None:
            return False
        self._output.settle(growing, part)
        return True

    def repeats_part(self, field: str, index: int, entry: Any) -> bool:
        """Whether this start is that of a part again."""
        part, growing = self._decoded(field, index, entry), self._by_key.get((field, index))
        return part is not None and growing is not None and part.identical(growing.part)

    def repeats(self, wire: Item) -> bool:
        """Whether this end is that of the item again."""
        return self._settled is not None and dumps(self._settled[2]) == dumps(wire)

    def is_named_by(self, wire: Item) -> bool:
        """Whether a start or an end has the type and the ids of the item."""
        is_same = _is_same(self, wire) and self.id == wire.get("id")
        is_call = self._wire.get("call_id") == wire.get("call_id")
        return is_same and is_call and type(self.id) is str

    @property
    def is_call(self) -> bool:
        """Whether it is a call of the client's tools."""
        return "call_id" in self._wire

    def settle(self, wire: Any, previous: AnyPart | None) -> None:
        """Set the final form of the item, decoded like one of a whole response."""
        if isinstance(wire, dict) and wire.get("type") is None:
            wire = {**wire, "type": self.kind}
        # The only properties of the previous part that affect decoding.
        follows = None if previous is None else (type(previous), previous.item_id)
        settled, known = (follows, self._output.identity, wire), self._settled
        if known is not None and settled == known and dumps(wire) == dumps(known[2]):
            return  # already set by its own end, and repeated by that of the response
        self._settled = settled
        parts = self._read_before(wire, previous) or self._read(wire, previous)
        self._parts.sort(key=attrgetter("place"))
        for index, part in enumerate(parts):
            if index == len(self._parts):
                self._start(part, (self.index, len(LISTS), index))
            self._output.settle(self._parts[index], part)
        for growing in self._parts[len(parts) :]:
            self._output.stop(growing)
        self.is_done = True

    def close(self) -> None:
        """Close an item whose final form never came."""
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
        """Decode an entry; the entries before it don't matter."""
        if not isinstance(entry, dict):
            return None
        if self.kind == "reasoning" and not is_reasoning_text(entry, field):
            return None
        known = self._by_key.get((field, index))
        is_first = not self._parts or self._parts[0] is known
        entries = [entry] if is_first else [{**_FILLING, "type": entry.get("type")}, entry]
        wire = {**self._wire, field: entries}
        for key in _LATE - {field}:
            wire.pop(key, None)
        if self.kind == "reasoning":
            del wire[field]
            wire |= {"summary": [], field: entries}
        parts = self._read(wire, self.before)
        self._latest = (wire, parts) if is_first else None
        return parts[-1]

    def _read_before(self, wire: Any, previous: AnyPart | None) -> list[AnyPart] | None:
        """The parts of an item whose only entry has just ended: its end repeats the entry."""
        if self._latest is None or previous is not self.before:
            return None
        known, parts = self._latest
        return parts if wire == known and dumps(wire) == dumps(known) else None


def _begun(wire: Item) -> Item:
    """The item as it will probably be: complete, with its text still to come."""
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
    return ARGUMENTS.get(kind) if type(kind) is str else None


def _fields(wire: Item) -> tuple[str, ...]:
    kind = wire.get("type")
    if kind == "message" and (wire.get("role") or "assistant") != "assistant":
        return ()
    return tuple(LISTS.get(kind, ())) if type(kind) is str else ()


class Items:
    """The items of a stream, by index and by id."""

    __slots__ = ("_all", "_by_id", "_by_index", "latest", "output")

    def __init__(self, emit: Emit) -> None:
        self.output = OutputParts(emit)
        self._all: list[GrowingItem] = []
        self._by_index: dict[int, GrowingItem] = {}  # the latest at that index
        self._by_id: dict[str, GrowingItem] = {}
        self.latest: GrowingItem | None = None

    def in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Parts in the order of their items, with the input of server tool calls."""
        places = [growing.place for growing in self.output.all]
        partial = [item.partial for item in self._all if not item.is_done]
        by_number = dict(enumerate(parts)) | dict(found for found in partial if found is not None)
        if all(one <= other for one, other in pairwise(places)):
            return tuple(by_number.values()) if any(partial) else parts
        return tuple([by_number[number] for number in sorted(by_number, key=places.__getitem__)])

    def of(self, wire: Item) -> GrowingItem | None:
        """The item that an event refers to: by index, else by id (which may change)."""
        index = wire.get("output_index")
        if type(index) is int:
            known = self._by_index.get(index)
            return known if known is None or known.again is None else self._begun_again(known)
        item_id = wire.get("item_id")
        found = self._by_id.get(item_id) if type(item_id) is str else None
        return found or (self.latest if item_id is None else None)

    def begin(self, index: int | None, wire: Item) -> GrowingItem:
        """Start an item, once; another unfinished one at the same index is closed.

        The start of one that has ended may be another's, with the same ids: its content will tell.
        """
        known = None if index is None else self._by_index.get(index)
        if known is not None and known.is_named_by(wire):
            known.again = wire if known.is_done and not known.is_call else None
            return known
        if known is not None and not known.is_done:
            known.close()
        item = self._add(self._free() if index is None else index, wire)
        item.begin(wire)
        return item

    def _begun_again(self, known: GrowingItem) -> GrowingItem:
        """Another item with the ids of one that has ended."""
        wire, known.again = known.again or {}, None
        item = self._add(known.index, wire)
        item.begin(wire)
        return item

    def end(self, index: int | None, wire: Item) -> None:
        """End an item; what has the ids of a call is that call again."""
        known = None if index is None else self._by_index.get(index)
        if known is not None and known.repeats(wire):
            known.again = None
            return
        item = self.of({"output_index": index, "item_id": wire.get("id")})
        is_over = item is not None and item.is_done
        if is_over and item is not None and item.is_call and item.is_named_by(wire):
            is_over = False
        if item is None or is_over or not _is_same(item, wire):
            item = self._add(self._free() if index is None else index, wire)
        item.settle(wire, item.before)

    def settle(self, output: Any) -> None:
        """Set the final form of all items at the end of the response, which may omit them."""
        ordered = sorted(self._all, key=attrgetter("index"))
        settled: set[GrowingItem] = set()
        named: dict[str | None, deque[GrowingItem]] = {}
        for each in ordered:
            named.setdefault(each.id if type(each.id) is str else None, deque()).append(each)
        previous: AnyPart | None = None
        for index, wire in enumerate(output if isinstance(output, list) else ()):
            having_id, item = named.get(_id_of(wire)), None
            while having_id and not _is_same(item, wire):
                item = having_id.popleft()
            if not _is_same(item, wire):  # ids may change from event to event, indexes don't
                item = ordered[index] if index < len(ordered) else None
            if item is None or item in settled or not _is_same(item, wire):
                item = self._add(index, wire if isinstance(wire, dict) else {})
            settled.add(item)
            item.settle(wire, previous)
            previous = item.last
        for item in ordered:
            if not item.is_done:
                item.close()

    def _add(self, index: int, wire: Item) -> GrowingItem:
        item = GrowingItem(index, wire, self.output)
        self._all.append(item)
        self._by_index[index] = self.latest = item
        if type(item.id) is str:
            self._by_id[item.id] = item
        return item

    def _free(self) -> int:
        return self.latest.index + 1 if self.latest is not None else 0


def _id_of(wire: Any) -> str | None:
    found = wire.get("id") if isinstance(wire, dict) else None
    return found if type(found) is str else None


def _is_same(item: GrowingItem | None, wire: Any) -> bool:
    if item is None or not isinstance(wire, dict):
        return False
    kind = wire.get("type")
    return bool(kind is None or kind == item.kind)


def _typed(wire: Item) -> Item:
    """The item with the type that its fields have, if it says none."""
    if wire.get("type") is not None:
        return wire
    wire = {key: value for key, value in wire.items() if key != "type"}
    is_thought = "summary" in wire and "content" not in wire
    return {**wire, "type": likely_call(wire) or ("reasoning" if is_thought else "message")}
