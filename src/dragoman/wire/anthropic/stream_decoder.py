"""Streams, from server-sent events to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, response_identity
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import loads
from dragoman.model.responses import Response
from dragoman.wire.anthropic.context import NAME, Block, Decoding
from dragoman.wire.anthropic.stream_blocks import TEXT_DELTAS, GrowingBlock, unannounced
from dragoman.wire.anthropic.stream_errors import decode_stream_error
from dragoman.wire.anthropic.stream_heads import head_of
from dragoman.wire.anthropic.usage import decode_usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.framing import SseEvent, SseParser

_LATE = frozenset({"stop_reason", "stop_sequence", "stop_details", "usage"})
"""Fields of the message that are not settled at its start."""
_DONE = "[DONE]"  # Chat's last word, which gateways send here too
_PADDING = "obfuscation"  # W18
_BARE_DELTA = 3  # fields: type, index, delta
_BARE_PIECE = 2  # fields: type, and one of
_STOP = frozenset({"type", "index"})
_START, _DELTA = _STOP | {"content_block"}, _STOP | {"delta"}
_PIECES = frozenset({"type", "text", "partial_json", "thinking", "signature", "citation"})


class StreamDecoder:
    """Reads one response out of a stream's bytes, cut anywhere."""

    def __init__(self) -> None:
        self._frames = SseParser()
        self._folded = MessageAccumulator()
        # The message's origin is its parts' too.
        self._context = Decoding(None, CallIds(UNKNOWN_RESPONSE))
        self._message: Block | None = None
        self._blocks: dict[Any, GrowingBlock] = {}  # by the wire's index: the last one there
        self._last: GrowingBlock | None = None
        self._growing: GrowingBlock | None = None  # of the event before this one
        self._started = 0
        self._refusal: str | None = None
        self._has_finished = False
        self._is_over = False

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        return self._folded.response

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done."""
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
        events: list[Event] = []
        try:
            for frame in frames:
                if frame.data == _DONE:
                    continue
                wire = loads(frame.data)
                if type(wire) is not dict:
                    problem = "an event is not a JSON object"
                    break
                growing = self._growing
                grown = None if growing is None else growing.grown_again(wire)
                if grown is None:
                    events += self._take(wire, frame.event)
                else:  # nearly all
                    self._folded.grow(grown)
                    events.append(grown)
            else:
                return events
        except InvalidInputError as error:  # malformed, nested too deeply, a number out of range
            problem = str(error)
        raise WireError(problem, dialect=NAME, path="$")

    def _take(self, wire: Block, name: str | None) -> list[Event]:
        grown = self._plain_delta(wire)
        if grown is not None:
            self._folded.grow(grown)
            return [grown]
        self._growing = None
        events = self._frame(wire, name)
        self._folded.extend(events)
        return events

    def _plain_delta(self, wire: Block) -> PartDelta | None:
        """What most events are, more of a block, in a third of the time; None for all others."""
        if len(wire) != _BARE_DELTA or wire.get("type") != "content_block_delta" or self._is_over:
            return None
        index, delta = wire.get("index"), wire.get("delta")
        block = self._blocks.get(index) if type(index) is int else None
        if block is None or type(delta) is not dict or len(delta) != _BARE_PIECE:
            return None
        self._growing = block
        return block.grown_plainly(wire, delta)

    def _frame(self, wire: Block, name: str | None) -> list[Event]:
        kind = wire.get("type")
        if type(kind) is not str:
            kind = "error" if "error" in wire else name
        if kind == "ping":
            return []
        handler = self._HANDLERS.get(kind) if kind is not None and not self._is_over else None
        return [OpaqueEvent(NAME, wire)] if handler is None else handler(self, wire)

    # --- the message

    def _message_start(self, wire: Block) -> list[Event]:
        if self._message is not None:
            # Two answers spliced into one stream: what came first will never be finished.
            self._is_over = True
            return [OpaqueEvent(NAME, wire), StreamError("the stream started over")]
        message = wire.get("message")
        content: Any = None
        self._message = {}
        if isinstance(message, dict):
            content = message.get("content")
            self._learn(message, ("content",))
        self._learn(wire, ("type", "message"))
        events = self._header()
        for block in content if isinstance(content, list) else ():
            events += self._begin(None, block)
            events += self._end(self._last)
        return events

    def _message_delta(self, wire: Block) -> list[Event]:
        delta = wire.get("delta")
        if isinstance(delta, dict):
            self._learn(delta, ())
        self._learn(wire, ("type", "delta"))
        return self._trailer()

    def _message_stop(self, wire: Block) -> list[Event]:
        self._is_over = True
        events: list[Event] = []
        for block in self._blocks.values():
            events += self._end(block)
        # Some say why it ended at the start already, and Bedrock adds its measures here.
        if len(wire) > 1 or not self._has_finished:
            self._learn(wire, ("type",))
            events += self._trailer()
        return [*events, ResponseEnd()]

    def _learn(self, fields: Block, handled: tuple[str, ...]) -> None:
        """Add to what is known of the message. Null says nothing that a value has not said."""
        known = self._message = {} if self._message is None else self._message
        for key, value in fields.items():
            if key in handled:
                continue
            old = known.get(key)
            if key == "usage" and isinstance(old, dict) and isinstance(value, dict):
                # Cumulative, but the counts that have not changed may be left out: W69.
                late = {name: count for name, count in value.items() if count is not None}
                known[key] = {**value, **old, **late}
            elif value is not None or old is None:
                known[key] = value

    def _header(self) -> list[Event]:
        """What the start of the message tells."""
        fields = self._message or {}
        # Not its nulls, nor what the end will tell: an extra can't be taken back.
        settled = {k: v for k, v in fields.items() if k not in _LATE and v is not None}
        known = head_of(settled)
        extras = known.extras if settled else EMPTY
        start = ResponseStart(id=known.id, model=known.model, origin=known.origin, extras=extras)
        self._context.calls.identity = response_identity(start.id, None, start.model)
        usage = decode_usage(fields.get("usage"))
        return [start] if usage is None else [start, UsageUpdate(usage)]

    def _trailer(self) -> list[Event]:
        """What the end of the message tells, over what its start told."""
        known = head_of(self._message or {})
        events: list[Event] = []
        if known.refusal is not None and self._refusal is None:
            self._refusal = known.refusal.text
            events += [PartStart(self._started, known.refusal), PartStop(self._started)]
            self._started += 1
        events.append(
            ResponseStart(id=known.id, model=known.model, origin=known.origin, extras=known.extras)
        )
        if known.usage is not None:
            events.append(UsageUpdate(known.usage))
        if known.finish is not None:
            self._has_finished = True
            events.append(ChoiceFinish(known.finish, known.finish_raw))
        return events

    # --- its blocks

    def _block_start(self, wire: Block) -> list[Event]:
        events = self._begin(_index(wire), wire.get("content_block"))
        return events + _unknown(wire, _START)

    def _begin(self, index: Any, block: Any) -> list[Event]:
        events = self._end(self._blocks.get(index))  # one that was never stopped
        if type(block) is str:
            block = {"type": "text", "text": block}
        growing = GrowingBlock(self._started, block, self._context)
        self._started += 1
        self._blocks[index] = self._last = growing
        return [*events, PartStart(growing.index, growing.part)]

    def _block_delta(self, wire: Block) -> list[Event]:
        delta: Any = wire.get("delta")
        index = wire.get("index")
        block = self._blocks.get(index) if type(index) is int else self._last
        if not isinstance(delta, dict):
            return [OpaqueEvent(NAME, wire)]
        events: list[Event] = []
        if block is None or not block.is_open:
            start = unannounced(delta)
            if start is None:
                return [OpaqueEvent(NAME, wire)]
            events = self._begin(_index(wire), start)
            block = self._last or block
        try:
            grown: PartDelta | None = block.grow(delta) if block is not None else None
        except LookupError:
            return [*events, OpaqueEvent(NAME, wire)]
        if grown is not None:
            events.append(grown)
        if len(wire) > _BARE_DELTA:
            events += _unknown(wire, _DELTA)
        if len(delta) > _BARE_PIECE:
            events += _unknown_piece(delta, is_known=grown is not None)
        return events

    def _block_stop(self, wire: Block) -> list[Event]:
        index = _index(wire)
        block = self._last if index is None else self._blocks.get(index)
        return self._end(block) + _unknown(wire, _STOP)

    def _end(self, block: GrowingBlock | None) -> list[Event]:
        if block is None or not block.is_open:
            return []
        return [PartStop(block.index, block.stop(self._context))]

    # --- its failure

    def _error(self, wire: Block) -> list[Event]:
        self._is_over = True  # whatever follows, this answer is not complete
        return [decode_stream_error(wire)]

    _HANDLERS: ClassVar[dict[str, Callable[[Any, Block], list[Event]]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "error": _error,
    }


def _index(wire: Block) -> int | None:
    index = wire.get("index")
    return index if type(index) is int else None


def _unknown_piece(delta: Block, *, is_known: bool) -> list[Event]:
    """The fields of a delta that nobody knows: of a text's, as one that says nothing else."""
    kind = delta.get("type")
    field = TEXT_DELTAS.get(kind) if type(kind) is str else None
    if field is None or not (is_known or delta.get(field) == ""):
        return _unknown(delta, _PIECES) if is_known else []
    strange = {key: value for key, value in delta.items() if key not in _PIECES}
    strange.pop(_PADDING, None)
    bare = {"type": kind, field: "", **strange}
    return [OpaqueEvent(NAME, {"type": "content_block_delta", "delta": bare})] if strange else []


def _unknown(wire: Block, known: frozenset[str]) -> list[Event]:
    """The fields of an event that nobody knows, as an event of its own."""
    if wire.keys() <= known:
        return []
    strange = {key: value for key, value in wire.items() if key not in known and key != _PADDING}
    return [OpaqueEvent(NAME, strange)] if strange else []
