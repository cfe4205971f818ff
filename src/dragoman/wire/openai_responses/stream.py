"""Streams, read: server-sent events become ours.

Numbers of events and padding (`sequence_number`, `obfuscation`: W18) mean nothing beyond the
stream and are dropped. The log probabilities of a text come with each piece, and all of them with
its end. How far a server's own tools have come is carried as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.wire.framing import SseEvent, SseParser
from dragoman.wire.lane.templates import ASCII_TEXT, INTEGER, Growth, Noises
from dragoman.wire.openai_responses.content import decode_annotations
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.response import (
    decode_finish,
    decode_head,
    identity_of,
    probabilities_of,
)
from dragoman.wire.openai_responses.stream_items import GrowingItem, GrowingPart, Item, Items
from dragoman.wire.overlay import fields_of, overlay_of
from dragoman.wire.stream_decoding import DONE, FrameDecoder, Passing, object_in, stream_error

_KEPT_ALIVE = frozenset({"keepalive", "ping"})
_DROPPED = frozenset({"sequence_number", "obfuscation"})
_FIELDS = _DROPPED | {
    "type", "response", "item", "item_id", "output_index", "content_index", "summary_index",
    "part", "delta", "logprobs", "text", "refusal", "annotation", "annotation_index", "name",
    "arguments", "input", "code", "call_id", "status",
}  # fmt: skip
"""What the events that are understood are made of."""
_CHANGING_ID: Noises = {"item_id": ASCII_TEXT}
_DETAILS = frozenset({"logprobs"})  # of a text that a server did not even announce
_PROGRESS = ("response.shell_call_command.", "response.apply_patch_call_operation_diff.")
"""Pieces of calls that the client runs: their items have all of it in the end."""
_ITEM_ADDED = "response.output_item.added"
_STATUSES = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}


class Kind(NamedTuple):
    """How a kind of part is streamed; empty names are events that there are none of."""

    delta: str = ""
    done: str = ""
    text: str = ""
    """The field that has the whole text: of the event at its end, of its entry or of its item."""
    field: str = ""
    """The item's list of such parts; nothing where the item is the part."""
    place: str = ""
    """The field of its events with its index in that list."""
    part: str = ""
    """What the names of the events of its beginning and its end begin with."""
    entry: Mapping[str, Any] = EMPTY
    """How it begins in the list."""
    item: Mapping[str, Any] = EMPTY
    """How the item begins that holds the list."""
    type: type[AnyPart] | None = None
    is_servers: bool = False
    """Whether the text is only a piece of what the item says, of a tool that runs over there."""


CONTENT = ("content", "content_index", "response.content_part")
_SUMMARIES = ("summary", "summary_index", "response.reasoning_summary_part")
_MESSAGE: Item = {"type": "message", "role": "assistant", "status": "completed"}
_REASONING_ITEM: Item = {"type": "reasoning", "summary": []}

TEXT = Kind(
    "response.output_text.delta", "response.output_text.done", "text", *CONTENT,
    {"type": "output_text", "text": "", "annotations": [], "logprobs": []}, _MESSAGE, Text,
)  # fmt: skip
REFUSAL = Kind(
    "response.refusal.delta", "response.refusal.done", "refusal", *CONTENT,
    {"type": "refusal", "refusal": ""}, _MESSAGE, Refusal,
)  # fmt: skip
REASONING = Kind(
    "response.reasoning_text.delta", "response.reasoning_text.done", "text", *CONTENT,
    {"type": "reasoning_text", "text": ""}, _REASONING_ITEM, Thinking,
)  # fmt: skip
SUMMARY = Kind(
    "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "text",
    *_SUMMARIES, {"type": "summary_text", "text": ""}, _REASONING_ITEM, Thinking,
)  # fmt: skip
FUNCTION = Kind(
    "response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"
)
CUSTOM = Kind(
    "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input"
)
CODE = Kind(
    "response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done",
    "code", is_servers=True,
)  # fmt: skip
MCP = Kind(
    "response.mcp_call_arguments.delta", "response.mcp_call_arguments.done", "arguments",
    is_servers=True,
)  # fmt: skip

_TEXTS = {kind.delta: kind for kind in (TEXT, REFUSAL, REASONING, SUMMARY)}
_CALLS = {kind.delta: kind for kind in (FUNCTION, CUSTOM, CODE, MCP)}
_DONE = [kind.done for kind in (*_TEXTS.values(), *_CALLS.values())]
# Of the events about a part: the list that it is in, and the field with its place there.
_PLACES = {
    f"{part}.{end}": (field, place)
    for field, place, part in (CONTENT, _SUMMARIES)
    for end in ("added", "done")
}


class StreamDecoder(FrameDecoder[SseEvent]):
    """Reads one response, whose items begin, grow and end side by side."""

    _dialect = NAME
    PASSING = Passing(
        # An end that leaves the items out says nothing of calls: they tell themselves.
        (rb'"response"\s*:\s*\{', b'"error"', b'"function_call"', b'"custom_tool_call"')
    )
    _noise: ClassVar[Noises] = {"sequence_number": INTEGER, "obfuscation": ASCII_TEXT}

    def __init__(self) -> None:
        super().__init__(SseParser())
        self._items = Items(self._emit)
        self._head: Item | None = None
        self._id: Any = None
        self._settings: Mapping[str, Any] = EMPTY  # of the response, as the last head had them
        self._item_id: Any = None  # of the event before, if something grew
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
        if kind in _KEPT_ALIVE:
            return
        place = len(self._events)
        take = None if self._is_over else self.EVENTS.get(kind)
        if take is None or not take(self, wire, kind):
            is_progress = kind.startswith(_PROGRESS)
            self._emit(events.OpaqueEvent(NAME, _without(wire, _DROPPED), is_progress))
        elif not wire.keys() <= _FIELDS and kind != "error":
            # Before the others: they may end the response. Null says nothing (`agent`).
            fields = {
                key: one for key, one in wire.items() if key not in _FIELDS and one is not None
            }
            if fields:
                unknown = events.OpaqueEvent(NAME, fields)
                self._folded.add(unknown)
                self._events.insert(place, unknown)
                self._growth = None

    # --- the response: each of these returns whether the event was understood

    def _lifecycle(self, wire: Item, kind: str) -> bool:
        response: Any = wire.get("response")
        if not isinstance(response, dict):
            return False
        head = {key: value for key, value in response.items() if key != "output"}
        known, self._head = self._head, head
        if known is None:
            self._id = head.get("id")
            self._items.output.identity = identity_of(head)
        elif kind == "response.created" and known.get("id") != head.get("id"):
            # Two answers spliced into one stream: what came first will never be finished.
            self._is_over = True
            self._emit(events.StreamError("the stream started over"))
            return True
        if head != known:
            self._emit_head(head)
        return True

    def _emit_head(self, head: Item) -> None:
        """What is known of the response beside its items; GitHub's ids change on the way."""
        named = {"id": self._id} if type(self._id) is str else {}
        known = decode_head({**self._as_frozen(head), **named}, *decode_finish(head, ()))
        self._settings = fields_of(known.extras, NAME)
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

    def _as_frozen(self, head: Item) -> Item:
        """The head with what was there before as it was frozen then: tools come with every one."""
        known, same = self._settings, dict[str, Any]()
        for key, value in head.items():
            if value and type(value) in (dict, list) and key in known:
                before = known[key]
                if value == before and dumps(value) == dumps(before):
                    same[key] = before
        return {**head, **same}

    def _terminal(self, wire: Item, kind: str) -> bool:
        """The end, which has all of it once more; Codex' backend leaves the items out."""
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
            self._emit(events.ChoiceFinish(finish, word, 0, probabilities_of(parts)))
        if not self._has_failed:
            is_failure = kind == "response.failed"
            self._emit(decode_failure(response) if is_failure else events.ResponseEnd())
        return True

    def _error(self, wire: Item, _kind: str) -> bool:
        self._has_failed = True  # whatever follows, this answer is not complete
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
        has_begun = item.part(field, index) is None and item.add(field, index, entry)
        return has_begun if kind.endswith(".added") else item.end(field, index, entry) or has_begun

    def _place(self, wire: Item, kind: str) -> tuple[GrowingItem, str, int] | None:
        """Where a part is: its item, the list in it, and its index there."""
        item = self._items.of(wire)
        field, key = _PLACES[kind]
        if item is None or item.is_done or field not in item.fields:
            return None
        index = wire.get(key)
        if type(index) is not int:  # llama.cpp numbers nothing: the next one begins, the last ends
            count = item.count(field)
            index = count if kind.endswith(".added") else max(count - 1, 0)
        return item, field, index

    # --- their growth

    def _text_delta(self, wire: Item, name: str) -> bool:
        delta, kind = wire.get("delta"), _TEXTS[name]
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
            self._emit_delta(grown)
            self._growth = None if logprobs else self._growth_of(wire, grown)
        return True

    def _unannounced(self, item: GrowingItem | None, kind: Kind, wire: Item) -> GrowingPart | None:
        """The part that a server forgot to announce, or gave no number."""
        if item is None:
            item_id = wire.get("item_id")
            named = {"id": item_id} if type(item_id) is str else {}
            item = self._items.begin(_index(wire), {**kind.item, **named})
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
        found = decode_annotations([wire.get("annotation")])
        if found:
            self._emit_delta(PartDelta(part.number, citations=found))
        return True

    def _arguments(self, wire: Item, _kind: str) -> bool:
        item, delta = self._items.of(wire), wire.get("delta")
        if item is None or item.is_done or type(delta) is not str:
            return False
        number = item.grow(delta)
        if number is not None and delta:
            grown = PartDelta(number, delta)
            self._emit_delta(grown)
            self._growth = self._growth_of(wire, grown, item.pieces)
        return number is not None

    def _growth_of(self, wire: Item, grown: PartDelta, kept: tuple[list[str], ...] = ()) -> Growth:
        """What an event let grow. Its item is found by its place: GitHub's ids change each time."""
        known, self._item_id = self._item_id, wire.get("item_id")
        is_loose = known != self._item_id and type(wire.get("output_index")) is int
        return Growth(grown, ("delta",), (), kept, None, _CHANGING_ID if is_loose else None)

    def _repeated(self, _wire: Item, _kind: str) -> bool:
        """The whole of a text, which the end of its part or item says again."""
        return True

    EVENTS: ClassVar[dict[str, Callable[[Any, Item, str], bool]]] = {
        **dict.fromkeys(("response.created", "response.queued", "response.in_progress"),
                        _lifecycle),
        **dict.fromkeys(_STATUSES, _terminal),
        "error": _error,
        _ITEM_ADDED: _item,
        "response.output_item.done": _item,
        **dict.fromkeys(_PLACES, _part),
        **dict.fromkeys(_TEXTS, _text_delta),
        "response.output_text.annotation.added": _annotation,
        **dict.fromkeys(_CALLS, _arguments),
        **dict.fromkeys(_DONE, _repeated),
    }  # fmt: skip


EVENTS = frozenset(StreamDecoder.EVENTS)
"""The types of events that say something here; any other is carried as it is."""


def _index(wire: Item) -> int | None:
    index = wire.get("output_index")
    return index if type(index) is int else None


def _without(wire: Mapping[str, Any], fields: frozenset[str]) -> Item:
    return {key: value for key, value in wire.items() if key not in fields}


# --- errors in mid-stream: the `error` event, and the error of a response that failed

_STATUS = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
}
_CODES = {429: "rate_limit_exceeded"}


def decode_stream_error(wire: Item) -> events.StreamError:
    """The error in an `error` event; its fields are in it, or in its `error`."""
    inner = wire.get("error")
    fields = inner if isinstance(inner, dict) else wire
    return _decode_error(fields, overlay_of(wire, ("type", "sequence_number"), NAME))


def decode_failure(response: Item) -> events.StreamError:
    """The error of a response that failed, which keeps the details itself."""
    error = response.get("error")
    return _decode_error(error if isinstance(error, dict) else {}, {})


def _decode_error(fields: Item, extras: Mapping[str, Any]) -> events.StreamError:
    code = fields.get("code") or fields.get("type")
    code = code if type(code) is str and code != "error" else None
    return stream_error(fields.get("message"), code, _STATUS.get(code or ""), extras)


def encode_failure(error: events.StreamError) -> dict[str, str]:
    """The error of a response that fails; of others' errors the status tells most."""
    code = error.code or ""
    if code not in _STATUS:
        code = _CODES.get(error.status or 0, "server_error")
    return {"code": code, "message": error.message}
