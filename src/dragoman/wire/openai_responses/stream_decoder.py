"""Streams, from server-sent events to ours.

Numbers of events and padding (`sequence_number`, `obfuscation`: W18) mean nothing beyond the
stream and are dropped. The log probabilities of a text come with each piece, and all of them with
its end. How far a server's own tools have come is carried as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dragoman.errors import WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Text
from dragoman.model.responses import Response
from dragoman.wire.framing import SseEvent, SseParser
from dragoman.wire.openai_responses.citations import decode_annotations
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.openai_responses.response import decode, decode_finish, identity_of
from dragoman.wire.openai_responses.stream_errors import decode_failure, decode_stream_error
from dragoman.wire.openai_responses.stream_growth import GrowingItem, GrowingPart, Item
from dragoman.wire.openai_responses.stream_items import Items
from dragoman.wire.openai_responses.stream_words import PLACES, WORDS, Words
from dragoman.wire.streams import read_frames

_KEPT_ALIVE = frozenset({"keepalive", "ping"})
_DROPPED = frozenset({"sequence_number", "obfuscation"})
_FIELDS = _DROPPED | {
    "type", "response", "item", "item_id", "output_index", "content_index", "summary_index",
    "part", "delta", "logprobs", "text", "refusal", "annotation", "annotation_index", "name",
    "arguments", "input", "code", "call_id", "status",
}  # fmt: skip
"""What the events that are understood are made of."""
_STATUSES = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}


class StreamDecoder:
    """Reads one response out of a stream's bytes, cut anywhere."""

    def __init__(self) -> None:
        self._frames = SseParser()
        self._folded = MessageAccumulator()
        self._items = Items()
        self._head: Item | None = None
        self._id: Any = None
        self._has_failed = False
        self._is_over = False

    @property
    def response(self) -> Response:
        """What has arrived so far, its parts in the order of the items that they are in."""
        response = self._folded.response
        order, partial = self._items.order, self._items.partial
        if not response.choices or (order is None and not partial):
            return response
        choice = response.choices[0]
        message = choice.message
        parts = list(message.parts)
        for number, part in partial:
            parts[number] = part
        arranged = tuple(parts if order is None else [parts[number] for number in order])
        return response.replace(
            choices=(choice.replace(message=message.replace_unchecked(parts=arranged)),)
        )

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done, and not that it failed."""
        return self._folded.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        return self._read(self._frames.feed(data))

    def close(self) -> list[Event]:
        """What is left when the stream ends; whether it was complete, `is_complete` tells."""
        frames = self._frames.close()
        try:
            return self._read(frames)
        except WireError:
            return []  # no garbage: the stream ended in the middle of a frame

    def _read(self, frames: list[SseEvent]) -> list[Event]:
        return read_frames(frames, NAME, self._take)

    def _take(self, wire: Item, name: str | None) -> list[Event]:
        events = self._frame(wire, name)
        self._folded.extend(events)
        return events

    def _frame(self, wire: Item, name: str | None) -> list[Event]:
        kind = wire.get("type")
        if type(kind) is not str:
            kind = "error" if "error" in wire else name or ""
        if kind in _KEPT_ALIVE:
            return []
        handler = None if self._is_over else self.HANDLERS.get(kind)
        events = None if handler is None else handler(self, wire, kind)
        if events is None:
            return [OpaqueEvent(NAME, _without(wire, _DROPPED))]
        if wire.keys() <= _FIELDS or kind == "error":
            return events
        return [OpaqueEvent(NAME, _without(wire, _FIELDS)), *events]

    # --- the response

    def _lifecycle(self, wire: Item, kind: str) -> list[Event] | None:
        response: Any = wire.get("response")
        if not isinstance(response, dict):
            return None
        head = {key: value for key, value in response.items() if key != "output"}
        known, self._head = self._head, head
        if known is None:
            self._id = head.get("id")
            self._items.identify(identity_of(head))
            return self._header(head)
        if kind == "response.created" and known.get("id") != head.get("id"):
            # Two answers spliced into one stream: what came first will never be finished.
            self._is_over = True
            return [StreamError("the stream started over")]
        return [] if head == known else self._header(head)

    def _header(self, head: Item) -> list[Event]:
        """What is known of the response beside its items; GitHub's ids change on the way."""
        named = {"id": self._id} if type(self._id) is str else {}
        known = decode({**head, **named, "output": []})
        start = ResponseStart(
            id=known.id,
            model=known.model,
            created_at=known.created_at,
            origin=known.message.origin,
            extras=known.extras,
        )
        return [start] if known.usage is None else [start, UsageUpdate(known.usage)]

    def _terminal(self, wire: Item, kind: str) -> list[Event]:
        """The end, which has all of it once more; Codex' backend leaves the items out."""
        self._is_over = True
        response: Any = wire.get("response")
        if not isinstance(response, dict):
            response = {}
        status = {"status": _STATUSES[kind], **response}
        events = self._items.settle(response.get("output"))
        if response:
            events += self._header(response)
        finish, word = decode_finish(status, self._items.parts)
        if finish is not None:
            events.append(ChoiceFinish(finish, word))
        if kind == "response.failed":
            return events if self._has_failed else [*events, decode_failure(response)]
        return events if self._has_failed else [*events, ResponseEnd()]

    def _error(self, wire: Item, _kind: str) -> list[Event]:
        self._has_failed = True  # whatever follows, this answer is not complete
        return [decode_stream_error(wire)]

    # --- its items

    def _item_added(self, wire: Item, _kind: str) -> list[Event] | None:
        item: Any = wire.get("item")
        return self._items.begin(_index(wire), item) if isinstance(item, dict) else None

    def _item_done(self, wire: Item, _kind: str) -> list[Event] | None:
        item: Any = wire.get("item")
        return self._items.end(_index(wire), item) if isinstance(item, dict) else None

    def _part_added(self, wire: Item, kind: str) -> list[Event] | None:
        found = self._place(wire, kind)
        if found is None:
            return None
        item, field, index = found
        return item.add(field, index, wire.get("part")) or None

    def _part_done(self, wire: Item, kind: str) -> list[Event] | None:
        found = self._place(wire, kind)
        if found is None:
            return None
        item, field, index = found
        begun = [] if item.part(field, index) else item.add(field, index, wire.get("part"))
        return [*begun, *item.end(field, index, wire.get("part"))] or None

    def _place(self, wire: Item, kind: str) -> tuple[GrowingItem, str, int] | None:
        """Where a part is: its item, the list in it, and its index there."""
        item = self._items.of(wire)
        field, key = PLACES[kind]
        if item is None or item.is_done or field not in item.fields:
            return None
        index = wire.get(key)
        if type(index) is not int:  # llama.cpp numbers nothing: the next one begins, the last ends
            count = item.count(field)
            index = count if kind.endswith(".added") else max(count - 1, 0)
        return item, field, index

    # --- their growth

    def _words(self, wire: Item, kind: str) -> list[Event] | None:
        delta, words = wire.get("delta"), WORDS[kind]
        item = self._items.of(wire)
        index = wire.get(words.place)
        part = item.part(words.field, index) if item and type(index) is int else None
        if type(delta) is not str or (item is not None and item.is_done):
            return None
        if part is not None and type(part.part) is words.part:
            return self._grown(part, delta, wire)
        events, part = self._unannounced(item, words, wire)
        if part is None or type(part.part) is not words.part:
            return None
        return events + self._grown(part, delta, wire)

    def _grown(self, part: GrowingPart, delta: str, wire: Item) -> list[Event]:
        logprobs = wire.get("logprobs")
        extras = {NAME: {"logprobs": logprobs}} if logprobs else EMPTY
        if not delta and not logprobs:
            return []
        return [PartDelta(part.number, delta, extras=extras)]

    def _unannounced(
        self, item: GrowingItem | None, words: Words, wire: Item
    ) -> tuple[list[Event], GrowingPart | None]:
        """The part that a server forgot to announce, or gave no number."""
        events: list[Event] = []
        if item is None:
            item_id = wire.get("item_id")
            named = {"id": item_id} if type(item_id) is str else {}
            events = self._items.begin(_index(wire), {**words.item, **named})
            item = self._items.latest
        if item is None or words.field not in item.fields:
            return [], None
        index = wire.get(words.place)
        number = index if type(index) is int else max(item.count(words.field) - 1, 0)
        if item.part(words.field, number) is None:
            events += item.add(words.field, number, words.entry)
        return events, item.part(words.field, number)

    def _annotation(self, wire: Item, _kind: str) -> list[Event] | None:
        item, index = self._items.of(wire), wire.get("content_index")
        part = item.part("content", index) if item and type(index) is int else None
        if part is None or type(part.part) is not Text or part.is_stopped:
            return None
        found = decode_annotations([wire.get("annotation")])
        return [PartDelta(part.number, citations=found)] if found else []

    def _arguments(self, wire: Item, _kind: str) -> list[Event] | None:
        item, delta = self._items.of(wire), wire.get("delta")
        if item is None or item.is_done or type(delta) is not str:
            return None
        number = item.grow(delta)
        if number is None:
            return None
        return [PartDelta(number, delta)] if delta else []

    def _repeated(self, _wire: Item, _kind: str) -> list[Event]:
        """The whole of a text, which the end of its part or item says again."""
        return []

    HANDLERS: ClassVar[dict[str, Callable[[Any, Item, str], list[Event] | None]]] = {
        **dict.fromkeys(("response.created", "response.queued", "response.in_progress"),
                        _lifecycle),
        **dict.fromkeys(_STATUSES, _terminal),
        "error": _error,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.content_part.added": _part_added,
        "response.content_part.done": _part_done,
        "response.reasoning_summary_part.added": _part_added,
        "response.reasoning_summary_part.done": _part_done,
        **dict.fromkeys(WORDS, _words),
        "response.output_text.annotation.added": _annotation,
        "response.function_call_arguments.delta": _arguments,
        "response.custom_tool_call_input.delta": _arguments,
        "response.mcp_call_arguments.delta": _arguments,
        "response.code_interpreter_call_code.delta": _arguments,
        **dict.fromkeys((
            "response.output_text.done", "response.refusal.done", "response.reasoning_text.done",
            "response.reasoning_summary_text.done", "response.function_call_arguments.done",
            "response.custom_tool_call_input.done", "response.mcp_call_arguments.done",
            "response.code_interpreter_call_code.done",
        ), _repeated),
    }  # fmt: skip


UNDERSTOOD = frozenset(StreamDecoder.HANDLERS)
"""The types of events that say something here; any other is carried as it is."""


def _index(wire: Item) -> int | None:
    index = wire.get("output_index")
    return index if type(index) is int else None


def _without(wire: Item, fields: frozenset[str]) -> Item:
    return {key: value for key, value in wire.items() if key not in fields}
