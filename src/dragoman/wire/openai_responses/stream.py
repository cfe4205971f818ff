"""Stream decoder: server-sent events to canonical events.

Event numbers and padding (`sequence_number`, `obfuscation`: W18) mean nothing outside the stream
and are dropped. The log probabilities of a text come with each delta, and all of them again at its
end. Progress events of built-in tools become opaque events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Text, Thinking
from dragoman.wire.framing import SseEvent, SseParser
from dragoman.wire.lane.templates import ASCII_TEXT, INTEGER, Growth, Noises
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.response import (
    decode_finish,
    decode_head,
    identity_of,
    logprobs_of,
)
from dragoman.wire.openai_responses.stream_items import GrowingItem, GrowingPart, Item, Items
from dragoman.wire.openai_responses.stream_tables import CALLS, HOLDERS, PARTS, TEXTS, Kind
from dragoman.wire.openai_responses.tables import read_citations
from dragoman.wire.overlay import overlay_of
from dragoman.wire.stream_decoding import DONE, FrameDecoder, Passing, object_in, stream_error

_KEEP_ALIVE = frozenset({"keepalive", "ping"})
_DROPPED = frozenset({"sequence_number", "obfuscation"})
_FIELDS = _DROPPED | {
    "type", "response", "item", "item_id", "output_index", "content_index", "summary_index",
    "part", "delta", "logprobs", "text", "refusal", "annotation", "annotation_index", "name",
    "arguments", "input", "code", "call_id", "status",
}  # fmt: skip
"""The fields of known events."""
_CHANGING_ID: Noises = {"item_id": ASCII_TEXT}
_DETAILS = frozenset({"logprobs"})  # of a text that the server did not announce
_PROGRESS = ("response.shell_call_command.", "response.apply_patch_call_operation_diff.")
"""Deltas of client-run calls: their items have the whole content at the end."""
_ITEM_ADDED = "response.output_item.added"
_STATUSES = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}


_DONE = [kind.removesuffix("delta") + "done" for kind in (*TEXTS, *CALLS)]
_LISTS = {
    f"{event}.{end}": (field, place)
    for field, (event, place) in PARTS.items()
    for end in ("added", "done")
}
"""By event of a part: the list that it is in, and the field with its index there."""


class StreamDecoder(FrameDecoder[SseEvent]):
    """Decodes one response, whose items may be open at the same time."""

    _dialect = NAME
    PASSING = Passing(
        # A final event may omit the items, so calls are recognised by their own events.
        (rb'"response"\s*:\s*\{', b'"error"', b'"function_call"', b'"custom_tool_call"')
    )
    _noise: ClassVar[Noises] = {"sequence_number": INTEGER, "obfuscation": ASCII_TEXT}

    def __init__(self) -> None:
        super().__init__(SseParser())
        self._items = Items(self._emit)
        self._head: Item | None = None
        self._id: Any = None
        self._settings: Mapping[str, Any] = (
            EMPTY  # of the response, from the latest lifecycle event
        )
        self._item_id: Any = None  # of the previous event, if a part grew
        self._has_failed = False
        self._is_over = False

    def _in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        return self._items.in_order(parts)

    def _take(self, frame: SseEvent) -> None:
        if frame.data == DONE:
            return
        wire = object_in(frame.data)
        kind = wire.get("type")
        if type(kind) is not str:
            kind = "error" if "error" in wire else frame.event or ""
        if kind in _KEEP_ALIVE:
            return
        place = len(self._emitted.events)
        take = None if self._is_over else self.EVENTS.get(kind)
        if take is None or not take(self, wire, kind):
            is_progress = kind.startswith(_PROGRESS)
            self._emit(events.OpaqueEvent(NAME, _without(wire, _DROPPED), is_progress))
        elif not _FIELDS.issuperset(wire) and kind != "error":
            # Emitted first, as the event may end the response. Nulls don't count (`agent`).
            fields = {
                key: one for key, one in wire.items() if key not in _FIELDS and one is not None
            }
            if fields:
                unknown = events.OpaqueEvent(NAME, fields)
                self._folded.add(unknown)
                self._emitted.events.insert(place, unknown)
                self._growth = None

    # --- the response: each method returns whether the event was understood

    def _lifecycle(self, wire: Item, kind: str) -> bool:
        response: Any = wire.get("response")
        if not isinstance(response, dict):
            return False
        head = dict(response)
        head.pop("output", None)
        known, self._head = self._head, head
        if known is None:
            self._id = head.get("id")
            self._items.output.identity = identity_of(head)
        elif kind == "response.created" and known.get("id") != head.get("id"):
            # Two responses spliced into one stream: the first will never be finished.
            self._is_over = True
            self._emit(events.StreamError("the stream started over"))
            return True
        if head != known:
            self._emit_head(head)
        return True

    def _emit_head(self, head: Item) -> None:
        """Emit what is known of the response except its items; GitHub's ids change mid-stream."""
        finish, word = decode_finish(head, ())
        if type(self._id) is str:
            head = {**head, "id": self._id}
        known = decode_head(head, finish, word, self._settings)
        self._settings = known.extras[NAME]
        self._emit(
            events.ResponseStart(
                id=known.id,
                model=known.model,
                created_at=known.created_at,
                origin=known.origin,
                extras=known.extras,
            )
        )
        if known.usage is not None:
            self._emit(events.UsageUpdate(known.usage))

    def _terminal(self, wire: Item, kind: str) -> bool:
        """Decode the final event, which repeats everything; Codex's backend omits the items."""
        self._is_over = True
        response: Any = wire.get("response")
        if not isinstance(response, dict):
            response = {}
        self._items.settle(response.get("output"))
        if response:
            self._emit_head(response)
        parts = tuple([growing.part for growing in self._items.output.all])
        finish, word = decode_finish({"status": _STATUSES[kind], **response}, parts)
        if finish is not None:
            self._emit(events.ChoiceFinish(finish, word, 0, logprobs_of(parts)))
        if not self._has_failed:
            is_failure = kind == "response.failed"
            self._emit(decode_failure(response) if is_failure else events.ResponseEnd())
        return True

    def _error(self, wire: Item, _kind: str) -> bool:
        self._has_failed = True  # the response stays incomplete, whatever follows
        self._emit(decode_stream_error(wire))
        return True

    # --- its items

    def _item(self, wire: Item, kind: str) -> bool:
        item: Any = wire.get("item")
        if isinstance(item, dict):
            take = self._items.begin if kind == _ITEM_ADDED else self._items.end
            take(_index(wire), item)
        return isinstance(item, dict)

    def _part(self, wire: Item, kind: str) -> bool:
        found = self._place(wire, kind)
        if found is None:
            return False
        item, field, index = found
        entry = wire.get("part")
        known = item.part(field, index)
        has_begun = known is None and item.add(field, index, entry)
        if kind.endswith(".added"):
            return has_begun or item.repeats_part(field, index, entry)
        return item.end(field, index, entry) or has_begun

    def _place(self, wire: Item, kind: str) -> tuple[GrowingItem, str, int] | None:
        """The position of a part: its item, the list in it, and its index there."""
        item = self._items.of(wire)
        field, key = _LISTS[kind]
        if item is None or item.is_done or field not in item.fields:
            return None
        index = wire.get(key)
        if (
            type(index) is not int
        ):  # llama.cpp sends no indexes: `added` means the next part, `done` the last
            count = item.count(field)
            index = count if kind.endswith(".added") else max(count - 1, 0)
        return item, field, index

    # --- deltas

    def _text_delta(self, wire: Item, name: str) -> bool:
        delta, kind = wire.get("delta"), TEXTS[name]
        item = self._items.of(wire)
        index = wire.get(kind.place)
        part = item.part(kind.field, index) if item and type(index) is int else None
        if type(delta) is not str or (item is not None and item.is_done):
            return False
        if part is None or type(part.part) is not kind.type:
            part = self._unannounced(item, kind, wire)
            if part is None or type(part.part) is not kind.type:
                return False
        logprobs = wire.get("logprobs")
        if delta or logprobs:
            extras = {NAME: {"logprobs": logprobs}} if logprobs else EMPTY
            grown = PartDelta(part.number, delta, extras=extras)
            self._emit(grown)
            self._growth = None if logprobs else self._growth_of(wire, grown)
        return True

    def _unannounced(self, item: GrowingItem | None, kind: Kind, wire: Item) -> GrowingPart | None:
        """The part of a delta that the server did not announce or number."""
        if item is None:
            item_id = wire.get("item_id")
            named = {"id": item_id} if type(item_id) is str else {}
            holder = HOLDERS["reasoning" if kind.type is Thinking else "message"]
            item = self._items.begin(_index(wire), {**holder, **named})
        if kind.field not in item.fields:
            return None
        index = wire.get(kind.place)
        number = index if type(index) is int else max(item.count(kind.field) - 1, 0)
        if item.part(kind.field, number) is None:
            item.add(kind.field, number, _without(kind.entry, _DETAILS))
        return item.part(kind.field, number)

    def _annotation(self, wire: Item, _kind: str) -> bool:
        item, index = self._items.of(wire), wire.get("content_index")
        part = item.part("content", index) if item and type(index) is int else None
        if part is None or type(part.part) is not Text or part.is_stopped:
            return False
        found = read_citations([wire.get("annotation")])
        if found:
            self._emit(PartDelta(part.number, citations=found))
        return True

    def _arguments(self, wire: Item, _kind: str) -> bool:
        item, delta = self._items.of(wire), wire.get("delta")
        if item is None or item.is_done or type(delta) is not str:
            return False
        number = item.grow(delta)
        if number is not None and delta:
            grown = PartDelta(number, delta)
            self._emit(grown)
            self._growth = self._growth_of(wire, grown, item.pieces)
        return number is not None

    def _growth_of(self, wire: Item, grown: PartDelta, kept: tuple[list[str], ...] = ()) -> Growth:
        """The growth caused by an event. Items are found by index, as GitHub's ids change."""
        known, self._item_id = self._item_id, wire.get("item_id")
        is_loose = known != self._item_id and type(wire.get("output_index")) is int
        return Growth(grown, ("delta",), (), kept, None, _CHANGING_ID if is_loose else None)

    def _repeated(self, _wire: Item, _kind: str) -> bool:
        """Ignore a whole text, which the end of its part or item repeats."""
        return True

    EVENTS: ClassVar[dict[str, Callable[[Any, Item, str], bool]]] = {
        **dict.fromkeys(("response.created", "response.queued", "response.in_progress"),
                        _lifecycle),
        **dict.fromkeys(_STATUSES, _terminal),
        "error": _error,
        _ITEM_ADDED: _item,
        "response.output_item.done": _item,
        **dict.fromkeys(_LISTS, _part),
        **dict.fromkeys(TEXTS, _text_delta),
        "response.output_text.annotation.added": _annotation,
        **dict.fromkeys(CALLS, _arguments),
        **dict.fromkeys(_DONE, _repeated),
    }  # fmt: skip


EVENTS = frozenset(StreamDecoder.EVENTS)
"""The known event types; any other becomes an opaque event."""


def _index(wire: Item) -> int | None:
    index = wire.get("output_index")
    return index if type(index) is int else None


def _without(wire: Mapping[str, Any], fields: frozenset[str]) -> Item:
    return {key: value for key, value in wire.items() if key not in fields}


# --- mid-stream errors: the `error` event, and the error of a failed response

_STATUS = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
}
_CODES = {429: "rate_limit_exceeded"}


def decode_stream_error(wire: Item) -> events.StreamError:
    """Decode an `error` event; its fields are at the top level or in its `error`."""
    inner = wire.get("error")
    fields = inner if isinstance(inner, dict) else wire
    return _decode_error(fields, overlay_of(wire, ("type", "sequence_number"), NAME))


def decode_failure(response: Item) -> events.StreamError:
    """Decode the error of a failed response, which keeps the details itself."""
    error = response.get("error")
    return _decode_error(error if isinstance(error, dict) else {}, {})


def _decode_error(fields: Item, extras: Mapping[str, Any]) -> events.StreamError:
    code = fields.get("code") or fields.get("type")
    code = code if type(code) is str and code != "error" else None
    return stream_error(fields.get("message"), code, _STATUS.get(code or ""), extras)


def encode_failure(error: events.StreamError) -> dict[str, str]:
    """Encode the error of a failed response; other dialects' errors map by status."""
    code = error.code or ""
    if code not in _STATUS:
        code = _CODES.get(error.status or 0, "server_error")
    return {"code": code, "message": error.message}
