"""Writers for the items of a stream, as they begin, grow and end.

The state of an item is that of a whole response: its parts so far, encoded as an item. Only the
deltas in between are specific to streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any
from weakref import ref

from dragoman.model.accumulate import GrowingPart
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.ids import new_id
from dragoman.model.jsontext import dumps
from dragoman.model.messages import make_message
from dragoman.model.parts import Part, Refusal, ServerToolCall, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.cut_calls import is_unfinished
from dragoman.wire.fitting.tools import NO_ARGUMENTS
from dragoman.wire.framing import sse
from dragoman.wire.lane.flows import Delta, Flow, Writer, encode_text, lines_of
from dragoman.wire.openai_responses.content_types import PREFIXES
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.forms import form_of
from dragoman.wire.openai_responses.layout_writer import (
    MessageWriter,
    generated_id,
)
from dragoman.wire.openai_responses.response import as_cut, is_own
from dragoman.wire.openai_responses.stream_tables import (
    FUNCTION,
    TEXT,
    Kind,
    ProgressEvent,
    end_events,
    initial_item,
    start_events,
    streamed_as,
)
from dragoman.wire.openai_responses.tables import write_citation
from dragoman.wire.openai_responses.tools_client import client_tool_of
from dragoman.wire.stream_encoding import CORRECTED, TEXTS, SentPart, arguments_of

Body = dict[str, Any]
_EMPTIED: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
LATE_CONTENT = "content added to a part after its end is left out"


def text_of(part: AnyPart) -> str:
    """The text or arguments of a part so far."""
    if isinstance(part, TEXTS):
        return part.text
    return arguments_of(part) if isinstance(part, ToolCall) else ""


_EVENT = b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b\n\n'
_ABOUT = b'{"item_id":%b,"output_index":%d,%b%b'
_DELTA = (
    b'event: %b\ndata: {"type":"%b","sequence_number":%%d,"item_id":%b,"output_index":%d,%b'
    b'"delta":%%b%b}\n\n'
)
_WITH_STATUS = (Text, Refusal, ToolCall)
"""Parts of items that have a status."""


class OutputWriter:
    """Writes the events of one response, numbered consecutively (W33), and tracks its items."""

    __slots__ = ("_by_id", "_number", "_placed", "id", "is_cut_off", "writing")

    def __init__(self, message_id: str | None = None) -> None:
        self.writing = MessageWriter(is_cut_off=True)  # until the finish reason is known
        self.is_cut_off = False  # the response was truncated
        self.id = message_id or new_id()
        """The base of generated ids."""
        self._number = -1
        # Items refer to this object. The encoder holds them: no cycle keeps them in memory.
        self._placed: list[ref[ItemWriter]] = []
        self._by_id: dict[str, ref[ItemWriter]] = {}
        # Without parts, which are written one by one.
        self.writing.begin(make_message(Role.ASSISTANT, id=self.id))

    def event(self, type: str, fields: Body) -> bytes:
        """Encode an event with these fields."""
        return self.encoded(type, dumps(fields))

    def encoded(self, type: str, fields: bytes) -> bytes:
        """Encode an event whose fields are JSON. Its type is sent twice: clients look at either."""
        self._number += 1
        name = type.encode("ascii")
        return _EVENT % (name, name, self._number, fields[1:])

    def whole(self, body: Body) -> bytes:
        """Encode an event body that has its type."""
        self._number += 1
        body["sequence_number"] = self._number
        return sse(dumps(body), body["type"])

    def flow(self, form: bytes) -> Writer:
        """A writer for repeated deltas, each with the next number."""

        def encode(text: str) -> bytes:
            written = encode_text(text)
            self._number += 1
            return form % (self._number, written)

        def encode_all(texts: list[str]) -> bytes:
            lines = lines_of(texts).split(b"\n")
            first = self._number + 1
            self._number += len(lines)
            return b"".join(map(form.__mod__, enumerate(lines, first)))

        return Writer(encode, encode_all)

    def place(self, item: ItemWriter) -> int:
        """Assign the next output index to an item (W35)."""
        placed = ref(item)
        self._placed.append(placed)
        self._by_id[item.id] = placed
        return len(self._placed) - 1

    def placed(self, wire: Mapping[str, Any]) -> ItemWriter | None:
        """The open item that an event refers to by id or index."""
        named, index = wire.get("item_id"), wire.get("output_index")
        found = self._by_id.get(named) if type(named) is str else None
        if named is None and type(index) is int and 0 <= index < len(self._placed):
            found = self._placed[index]
        item = None if found is None else found()
        return None if item is None or item.is_done else item

    def item(self, parts: Sequence[Part], start: int) -> Body | None:
        """Encode parts as an item, the first with index `start`; None if they are not supported.

        In a stream each item has an id, and content is always a list.
        """
        written = self.writing.items
        written.clear()
        self.writing.write_item(parts, start)
        if not written:
            return None
        if not isinstance(written[0], dict):
            self.lose(start, "an item that is not an object is left out of a stream")
            return None
        item = dict(written[0])
        if "role" in item:
            item.setdefault("type", "message")
        if type(item.get("id")) is not str:
            item["id"] = generated_id(item.get("type"), self.id, start)
        if type(item.get("content")) is str and item.get("role") == "assistant":
            item["content"] = [{**TEXT.entry, "text": item["content"]}]
        return self._completed(item)

    def _completed(self, item: Body) -> Body:
        """The item with all fields that clients expect; for subclasses."""
        return item

    def lose(self, number: int, reason: str) -> None:
        """Report a part as lost."""
        self.writing.lose(f"choices[0].message.parts[{number}]", reason)


class PartWriter(SentPart):
    """A part being written: its state so far, and what was sent of it."""

    __slots__ = ("_item", "before", "first", "grown", "index", "is_stopped", "kind")

    def __init__(self, item: ItemWriter, number: int, part: AnyPart) -> None:
        super().__init__(number, part)  # its index among the written parts
        self._item = ref(item)
        self.first = part  # its initial state
        self.kind = streamed_as(part)
        self.index: int | None = None  # its index in the item, once it was sent
        self.is_stopped = False
        self.before: str | None = None  # the text in earlier items, if this is the rest
        self.grown = GrowingPart(part)

    @property
    def item(self) -> ItemWriter:
        """Its item, which holds this part; the encoder holds the item."""
        item = self._item()
        assert item is not None  # noqa: S101 - see above
        return item

    @property
    def state(self) -> AnyPart:
        """The part so far."""
        return self.grown.built()


class ItemWriter:
    """An item being written."""

    __slots__ = ("__weakref__", "_counts", "_id", "_known", "_parts", "_start", "_writer", "id",
                 "index", "is_cut", "is_done", "is_held", "last")  # fmt: skip

    def __init__(self, answer: OutputWriter, start: int) -> None:
        self._writer = answer
        self._start = start  # index of its first part
        self._parts: list[PartWriter] = []
        self._counts = {"content": 0, "summary": 0}
        self._id = b""
        self._known: tuple[list[Any], Body | None] = ([], None)  # see `_item`
        self.id = ""
        self.index: int | None = None
        self.last: AnyPart | None = None
        self.is_done = self.is_held = False
        self.is_cut = False  # the response was cut off within it

    @property
    def is_stopped(self) -> bool:
        """Whether all its parts have stopped."""
        return all(part.is_stopped for part in self._parts)

    @property
    def may_go_on(self) -> bool:
        """Whether another part may still belong to it."""
        part = self.last
        return part is not None and (
            isinstance(part, Thinking) or part.item_id is not None or NAME in part.extras
        )

    @property
    def may_be_cut(self) -> bool:
        """Whether it is a message or call of another dialect: how it ends is known later."""
        part = self.last
        return isinstance(part, _WITH_STATUS) and not is_own(self._writer.writing.origin)

    def lacks_arguments(self, part: PartWriter) -> bool:
        """Whether a part is a call that would get an empty object, if it was not cut off."""
        state = part.state
        return isinstance(state, ToolCall) and self._lacks_arguments(state)

    @property
    def may_end(self) -> bool:
        """Whether it may end before its parts: other dialects' texts can continue in a new item."""
        part = self.last
        return isinstance(part, TEXTS) and not self._writer.writing.is_own(part)

    # --- parts

    def start(self, number: int, begun: AnyPart) -> tuple[PartWriter, bytes]:
        """Start a part."""
        part = PartWriter(self, number, begun)
        self._parts.append(part)
        self.last = begun
        return part, self._part_begin(part, begun)

    def grow(self, part: PartWriter, delta: PartDelta) -> bytes:
        """Add a delta to a part."""
        part.grown.grow(delta)
        text = delta.text
        if part.index is None:
            # Without deltas (audio), it is written when it ends, and not built for each piece.
            is_due = bool(text) and bool(part.kind.event)
            return self._part_begin(part, part.state) if is_due else b""
        written = self._delta(part, text, delta.extras) if text else b""
        for citation in delta.citations:
            annotation = write_citation(citation)
            if annotation is not None and part.kind is TEXT:
                written += self._annotation(part, annotation)
        return written

    def flow(self, part: PartWriter, like: Delta) -> Flow | None:
        """A fast path for deltas of a part that was already sent."""
        kind, is_open = part.kind, not (self.is_done or part.is_stopped)
        if part.index is None or not kind.event or not is_open:
            return None
        return Flow(like, self._writer.flow(self._form(part)), part.grown.pieces, part.pieces)

    def stop(self, part: PartWriter, final: AnyPart | None = None) -> bytes:
        """Stop a part, or replace the final form of a stopped one."""
        if final is not None and self._is_contradicted(part, final):
            self._writer.lose(part.number, CORRECTED)
        elif final is not None:
            part.grown = GrowingPart(final)
        if part.is_stopped or self.is_done:
            if self.index is None and text_of(part.state):  # it ended without being sent
                self._writer.lose(part.number, LATE_CONTENT)
            return b""
        part.is_stopped = True
        state = part.state
        if part.index is None and self._must_be_complete(part):
            part.kind = self._kind_of(state)
        if part.kind is FUNCTION and isinstance(state, ToolCall) and self._lacks_arguments(state):
            state = state.replace_unchecked(raw=NO_ARGUMENTS)
        if state is not part.grown.part:
            part.grown = GrowingPart(state)  # built only once
        shown = self._part_begin(part, state) if part.index is None else b""
        return shown + self._part_end(part, state)

    def _is_contradicted(self, part: PartWriter, final: AnyPart) -> bool:
        """Whether the final form contradicts what was sent: empty, or of another type.

        An item that was sent must exist at the end, and empty thinking of others has no item.
        """
        is_shown = part.index is not None
        state = part.state
        if type(final) is not type(state):
            return is_shown or isinstance(state, (*TEXTS, ToolCall))
        return is_shown and isinstance(final, Thinking) and self._is_nothing(final)

    def _is_nothing(self, thought: Thinking) -> bool:
        return not thought.text and not self._writer.writing.is_own(thought)

    def _must_be_complete(self, part: PartWriter) -> bool:
        """Whether a call is only sent complete: another dialect's, of a client-run tool."""
        state = part.first
        is_client_call = isinstance(state, ToolCall) and client_tool_of(state) is not None
        return is_client_call and not self._writer.writing.is_own(state)

    def _kind_of(self, call: AnyPart) -> Kind:
        """How a complete call is streamed: as a function call if no client could run it."""
        item = self._writer.item([call], self._start)
        is_function = item is not None and item.get("type") == "function_call"
        return FUNCTION if is_function else streamed_as(call)

    def _lacks_arguments(self, call: ToolCall) -> bool:
        """Whether another dialect's call needs an empty object; not if truncated (I7)."""
        is_excused = self._writer.is_cut_off or self._writer.writing.is_own(call)
        return call.raw == "" and not is_excused

    def _part_begin(self, part: PartWriter, state: AnyPart) -> bytes:
        """The start events of a part, and of its item, once there is something to send."""
        if isinstance(state, Thinking) and self._is_nothing(state):
            return b""
        if self._must_be_complete(part) and not part.is_stopped:
            return b""
        begun = self._begun()
        if self.index is None:
            return b""
        kind = part.kind
        part.index = 0
        if kind.field:
            part.index = self._counts[kind.field]
            self._counts[kind.field] += 1
            begun += self._about(part, f"{kind.part}.added", {"part": kind.entry})
        text = text_of(state)
        return begun + self._delta(part, text, {}) if text else begun

    def _form(self, part: PartWriter) -> bytes:
        """The template of a delta event, without its number and text."""
        kind = part.kind
        more = b',"logprobs":[]' if kind is TEXT else b""
        event = f"{kind.event}.delta".encode()
        named = (event, event, self._id.replace(b"%", b"%%"))
        return _DELTA % (*named, self.index or 0, self._place(part), more)

    def _delta(self, part: PartWriter, text: str, extras: Mapping[str, Any]) -> bytes:
        kind = part.kind
        if not kind.event:
            return b""
        part.pieces.append(text)
        fields: Body = {"delta": text}
        if kind is TEXT:
            fields["logprobs"] = _listed(form_of(extras).get("logprobs"))
        return self._about(part, f"{kind.event}.delta", fields)

    def _annotation(self, part: PartWriter, annotation: Any) -> bytes:
        number = part.cited
        part.cited += 1
        fields = {"annotation_index": number, "annotation": annotation}
        return self._about(part, "response.output_text.annotation.added", fields)

    def _part_end(self, part: PartWriter, state: AnyPart) -> bytes:
        """The end events of a part, with what was not sent as deltas."""
        kind, sent = part.kind, "".join(part.pieces)
        if not (kind.field or kind.text):
            return b""
        body = self._entry(part, state)
        if part.index is None:
            return b""
        if body is None:  # it became something else, but what was started must end
            body = {**kind.entry, kind.text: sent} if kind.text else dict(kind.entry)
        found, written = body.get(kind.text), b""
        whole = found if type(found) is str else sent
        if not kind.is_servers and len(whole) > len(sent) and whole.startswith(sent):
            written = self._delta(part, whole[len(sent) :], {})
        if kind is TEXT and isinstance(annotations := body.get("annotations"), (list, tuple)):
            for annotation in annotations[part.cited :]:
                written += self._annotation(part, annotation)
        written += self._done_event(part, whole, body)
        done = self._about(part, f"{kind.part}.done", {"part": body}) if kind.field else b""
        return written + done

    def _done_event(self, part: PartWriter, whole: str, body: Body) -> bytes:
        """The event with the whole text, sent once."""
        kind = part.kind
        if not kind.event or (kind.is_servers and not part.pieces):
            return b""
        part.pieces = []
        fields: Body = {kind.text: whole}
        if kind is TEXT:
            fields["logprobs"] = _listed(body.get("logprobs"))
        return self._about(part, f"{kind.event}.done", fields)

    def _entry(self, part: PartWriter, state: AnyPart) -> Body | None:
        """The entry of a part in its item."""
        kind = part.kind
        item = self._item([state], part.number)
        if item is None or not kind.field:
            return item
        entries = item.get(kind.field)
        entry = entries[0] if isinstance(entries, (list, tuple)) and entries else None
        return dict(entry) if isinstance(entry, dict) else None

    def progress(self) -> bytes:
        """The whole code of a server tool call, which precedes its progress events."""
        first = self._parts[0]
        return self._done_event(first, "".join(first.pieces), {}) if first.kind.is_servers else b""

    def _about(self, part: PartWriter, type: str, fields: Body) -> bytes:
        """Encode an event about a part that was sent."""
        about = _ABOUT % (self._id, self.index or 0, self._place(part), dumps(fields)[1:])
        return self._writer.encoded(type, about)

    def _place(self, part: PartWriter) -> bytes:
        """The field with the index of a part, if it has one."""
        field = part.kind.place
        return b'"%b":%d,' % (field.encode("ascii"), part.index or 0) if field else b""

    # --- the item

    def body(self) -> Body | None:
        """The current state of the item."""
        item = self._item([part.state for part in self._parts], self._start)
        return item if item is None or not self.is_cut else as_cut(item)

    def _item(self, states: list[AnyPart], start: int) -> Body | None:
        """Encode parts as an item; cached, as the same parts are often requested again."""
        key = [start, self._writer.writing.origin, *states]
        known, item = self._known
        if len(key) != len(known) or not all(map(is_, key, known)):
            item = self._writer.item(states, start)
            self._known = key, item
        return None if item is None else dict(item)

    def _begun(self) -> bytes:
        states = [] if self.index is not None else [part.state for part in self._parts]
        if not states or (item := self._item(states, self._start)) is None:
            return b""
        self.id = item["id"]
        self.index = self._writer.place(self)
        self._id = dumps(self.id)
        kind = item.get("type")
        if type(kind) is str and kind in PREFIXES:
            for key in filter(item.__contains__, _EMPTIED):
                item[key] = _EMPTIED[key]
            if kind == "reasoning":  # W26
                item = {k: v for k, v in item.items() if k not in {"content", "encrypted_content"}}
            if "status" in item:
                item["status"] = "in_progress"
        first = states[0]
        if not isinstance(first, ServerToolCall):
            return self._item_event("response.output_item.added", item)
        added = self._item_event("response.output_item.added", initial_item(item, first))
        return added + self._progress_events(start_events(first))

    def _item_event(self, type: str, item: Body) -> bytes:
        return self._writer.event(type, {"output_index": self.index, "item": item})

    def _progress_events(self, news: Iterable[ProgressEvent]) -> bytes:
        place = {"item_id": self.id, "output_index": self.index}
        return b"".join([self._writer.event(name, {**place, **fields}) for name, fields in news])

    def end(self) -> bytes:
        """End the item."""
        if self.is_done:
            return b""
        open_parts = [part for part in self._parts if not part.is_stopped]
        written = b"".join([self.stop(part) for part in open_parts])
        self.is_done = True
        states = [part.state for part in self._parts]
        item = self._item(states, self._start)
        if self.index is None or item is None:
            return written
        if self._is_unfinished(states[0]):
            self.is_cut = self._writer.writing.has_cut_calls = True
        if self.is_cut:
            item = as_cut(item)
        item["id"] = self.id  # the id must not change: clients compare it
        if isinstance(states[0], ServerToolCall):
            written += self._progress_events(end_events(states))
        return written + self._item_event("response.output_item.done", item)

    def _is_unfinished(self, part: AnyPart) -> bool:
        """Whether it is another dialect's call whose arguments have begun and not ended."""
        if is_own(self._writer.writing.origin) or not isinstance(part, ToolCall):
            return False
        return is_unfinished(part)


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else ()
