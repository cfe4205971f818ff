"""Stream decoder: server-sent events to canonical events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, response_identity
from dragoman.model.events import PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque, Refusal, ServerToolCall
from dragoman.model.tools import ToolCall
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.anthropic.response import (
    Head,
    decode_head,
    decode_stream_error,
    decode_usage,
)
from dragoman.wire.anthropic.tables import BLOCKS, decode_part
from dragoman.wire.call_ids import CallIds
from dragoman.wire.folding import Folded, Growing, event_fields, piece_in
from dragoman.wire.framing import SseEvent, SseParser
from dragoman.wire.lane.templates import ASCII_TEXT, Growth, Noises
from dragoman.wire.reading import Reading
from dragoman.wire.stream_decoding import DONE, FrameDecoder, PartEvents, Passing, object_in

_LATE = frozenset({"stop_reason", "stop_sequence", "stop_details", "usage"})
"""Fields of the message that are not final at its start."""
_PADDING = "obfuscation"  # W18
_STOP = frozenset({"type", "index"})
_START = _STOP | {"content_block"}
_PIECES = frozenset({"type", "text", "partial_json", "thinking", "signature", "citation"})


# --- content blocks between their start and their stop

GROWING = Growing(BLOCKS)
_DELTA_OF = {field: kind for kind, field in GROWING.texts.items()}
"""The type of a delta that says none, by its field."""
_BARE_DELTA = frozenset({"type", "index", "delta", _PADDING})
_BARE_PIECE = 2  # fields of a delta: its type and its value


class GrowingBlock:
    """A block that has started and not stopped yet.

    Most of what comes is only passed on, since the consumer accumulates the events. The folded
    block is for what the accumulated part would lack: citations, the arguments of server tools, and
    unknown fields.
    """

    __slots__ = ("_beginning", "_folded", "_pieces", "_text", "index", "is_open", "part")

    def __init__(self, index: int, wire: Any, reading: Reading) -> None:
        self.index = index
        self._beginning = wire
        self._folded = Folded(GROWING.begun(wire))
        self.part: AnyPart = _unwritten(decode_part(self._folded.wire, reading))
        self.is_open = True
        self._text = text = GROWING.text_of.get(type(self.part))
        self._pieces: list[Any] = [] if text is None else self._folded.pieces(text.row)

    def is_begun_by(self, wire: Any) -> bool:
        """Whether a start is that of this block again, maybe after its end."""
        return bool(wire == self._beginning)

    @property
    def may_go_on(self) -> bool:
        """Whether a repeated start may be followed by the rest of this block."""
        is_named = isinstance(self._beginning, dict) and self._beginning.get("id") is not None
        return self.is_open and (is_named or not self._folded.has_grown())

    def grow(self, delta: Block) -> PartDelta | None:
        """Decode a delta; None if it adds nothing, or only to the part emitted at the stop.

        Raises `LookupError` for a delta that does not fit the block.
        """
        text, kind = self._text, delta.get("type")
        if text is not None and kind == text.delta:  # nearly always
            piece = delta[text.field]
            if type(piece) is not str:
                raise LookupError
            if not piece:
                return None
            self._pieces.append(piece)
            return PartDelta(self.index, piece)
        growth = GROWING.of(self.part, delta)
        if growth is not None:
            piece = piece_in(growth, delta)
            if piece != "" and not growth.row.is_last:
                self._folded.add(growth.row, piece)
            fields = event_fields(growth.row, piece)
            return PartDelta(self.index, **fields) if fields else None
        if type(self.part) is not Opaque or not isinstance(self._folded.wire, dict):
            raise LookupError
        self._folded.merge(delta)
        return None

    def growth(self, wire: Block, delta: Block, grown: PartDelta) -> Growth | None:
        """The growth of a part, if the event was only more text."""
        text = self._text
        if text is None or delta["type"] != text.delta or len(delta) != _BARE_PIECE:
            return None
        if type(wire.get("index")) is not int or not wire.keys() <= _BARE_DELTA:
            return None
        return Growth(grown, ("delta", text.field), kept=(self._pieces,))

    def stop(self, reading: Reading) -> AnyPart | None:
        """The whole part, if that is more than the sum of its start and deltas."""
        self.is_open = False
        kind, folded = type(self.part), self._folded
        is_more = kind is ServerToolCall and folded.has_grown("input")
        if kind is Opaque or is_more or folded.has_grown("citations"):
            return decode_part(folded.whole(), reading)
        return None


def _unwritten(part: AnyPart) -> AnyPart:
    """A call as it begins: its empty object stands for arguments that are not yet written."""
    if type(part) is ToolCall and part.input is not None and not part.input:
        return part.replace_unchecked(raw="", input=None)
    return part


def unannounced_block(delta: Block) -> Block | None:
    """The start of a block that a server forgot to announce; None if it can't be guessed."""
    kind: Any = delta.get("type")
    if kind not in ("text_delta", "thinking_delta"):
        return None
    field = GROWING.texts[kind]
    return {"type": field, field: ""}


class StreamDecoder(FrameDecoder[SseEvent]):
    """Decodes one message, whose blocks start, grow and stop."""

    _dialect = NAME
    _noise: ClassVar[Noises] = {_PADDING: ASCII_TEXT}
    PASSING = Passing((b'"usage"', b'"stop_reason"', b"message_stop", b'"error"'))

    def __init__(self) -> None:
        super().__init__(SseParser())
        # Parts inherit the message's origin.
        self._reading = Reading(None, CallIds(UNKNOWN_RESPONSE))
        self._message: Block | None = None
        self._parts = PartEvents(self._emit)
        self._blocks: dict[Any, GrowingBlock] = {}  # the latest block by wire index
        self._last: GrowingBlock | None = None
        self._has_refusal = False
        self._has_finished = self._is_repeated = False
        self._is_over = False

    def _take(self, frame: SseEvent) -> None:
        if frame.data == DONE:
            return
        wire = object_in(frame.data)
        kind = wire.get("type")
        if type(kind) is not str:
            kind = "error" if "error" in wire else frame.event
        if kind == "ping":
            return
        take = self.EVENT_METHODS.get(kind) if kind is not None and not self._is_over else None
        if take is None:
            self._emit(events.OpaqueEvent(NAME, wire))
        else:
            take(self, wire)

    # --- the message

    def _message_start(self, wire: Block) -> None:
        message = wire.get("message")
        if self._message is not None:
            self._message_again(wire, message if isinstance(message, dict) else {})
            return
        content: Any = None
        self._message = {}
        if isinstance(message, dict):
            content = message.get("content")
            self._merge_fields(message, ("content",))
        self._merge_fields(wire, ("type", "message"))
        self._emit_head()
        for block in content if isinstance(content, list) else ():
            self._begin(None, block)
            self._stop(self._last)

    def _message_again(self, wire: Block, message: Block) -> None:
        """Decode another start: some proxies repeat that of the same message."""
        known = {} if self._message is None else self._message
        said, again = known.get("id"), message.get("id")
        if said is not None and again is not None and said != again:
            self._start_over(wire)
            return
        self._is_repeated = True
        gaps = {key: message[key] for key in message if known.get(key) is None}
        if any(value is not None for key, value in gaps.items() if key != "content"):
            self._merge_fields(gaps, ("content",))
            self._emit_head()

    def _start_over(self, wire: Block) -> None:
        """End a stream in which two responses are spliced: the first will never be finished."""
        self._is_over = True
        self._emit(events.OpaqueEvent(NAME, wire))
        self._emit(events.StreamError("the stream started over"))

    def _message_delta(self, wire: Block) -> None:
        delta = wire.get("delta")
        if isinstance(delta, dict):
            self._merge_fields(delta, ())
        self._merge_fields(wire, ("type", "delta"))
        self._emit_end()

    def _message_stop(self, wire: Block) -> None:
        self._is_over = True
        is_cut = self._folded.ends_within_part  # before the blocks are stopped
        for block in self._blocks.values():
            self._stop(block)
        # Some servers send the stop reason at the start, and Bedrock adds its metrics here.
        if len(wire) > 1 or not self._has_finished:
            self._merge_fields(wire, ("type",))
            self._emit_end()
        if self._has_finished or not is_cut:
            self._emit(events.ResponseEnd())

    def _merge_fields(self, fields: Block, handled: tuple[str, ...]) -> None:
        """Merge fields into the message. Null never overrides a value."""
        known = self._message = {} if self._message is None else self._message
        for key, value in fields.items():
            if key in handled:
                continue
            old = known.get(key)
            if key == "usage" and isinstance(old, dict) and isinstance(value, dict):
                # Cumulative, but unchanged counts may be omitted: W69.
                late = {name: count for name, count in value.items() if count is not None}
                known[key] = {**value, **old, **late}
            elif value is not None or old is None:
                known[key] = value

    def _emit_head(self) -> None:
        """Emit the fields known at the start of the message."""
        fields = self._message or {}
        # Not nulls, nor fields that the end will have: an extra can't be taken back.
        settled = {k: v for k, v in fields.items() if k not in _LATE and v is not None}
        head = decode_head(settled)
        self._emit_start(head, head.extras if settled else EMPTY)
        self._reading.calls.identity = response_identity(head.id, None, head.model)
        usage = decode_usage(fields.get("usage"))
        if usage is not None:
            self._emit(events.UsageUpdate(usage))

    def _emit_start(self, head: Head, extras: Mapping[str, Any]) -> None:
        self._emit(
            events.ResponseStart(id=head.id, model=head.model, origin=head.origin, extras=extras)
        )

    def _emit_end(self) -> None:
        """Emit the fields of the whole message at its end."""
        head = decode_head(self._message or {})
        if head.refusal is not None and not self._has_refusal:
            self._has_refusal = True
            self._parts.whole(Refusal(head.refusal))
        self._emit_start(head, head.extras)
        if head.usage is not None:
            self._emit(events.UsageUpdate(head.usage))
        if head.finish is not None:
            self._has_finished = True
            self._emit(events.ChoiceFinish(head.finish, head.finish_raw))

    # --- its blocks

    def _block_start(self, wire: Block) -> None:
        index, block = _index(wire), wire.get("content_block")
        known = self._blocks.get(index)
        is_again = known is not None and known.is_begun_by(block)
        if known is not None and is_again and (known.may_go_on or not self._is_repeated):
            return  # text that follows the end of its block begins another
        if known is not None and index is not None and self._is_repeated:
            self._start_over(wire)
            return
        self._begin(index, block)
        self._emit_unknown(wire, _START)

    def _begin(self, index: Any, block: Any) -> GrowingBlock:
        self._stop(self._blocks.get(index))  # in case it was never stopped
        if type(block) is str:
            block = {"type": "text", "text": block}
        growing = GrowingBlock(self._parts.count, block, self._reading)
        self._parts.start(growing.part)
        self._blocks[index] = self._last = growing
        return growing

    def _block_at(self, index: int | None) -> GrowingBlock | None:
        """The block with an index; if none has, the one that began without any."""
        last = self._blocks.get(None)
        if index not in self._blocks and last is not None and last.is_open:
            self._blocks[index] = self._blocks.pop(None)
        return self._blocks.get(index)

    def _block_delta(self, wire: Block) -> None:
        delta: Any = wire.get("delta")
        index = wire.get("index")
        block = self._block_at(index) if type(index) is int else self._last
        if not isinstance(delta, dict):
            self._emit(events.OpaqueEvent(NAME, wire))
            return
        if "type" not in delta:
            kinds = [kind for field, kind in _DELTA_OF.items() if field in delta]
            delta = {"type": kinds[0], **delta} if len(kinds) == 1 else delta
        if block is None or not block.is_open:
            start = unannounced_block(delta)
            if start is None:
                self._emit(events.OpaqueEvent(NAME, wire))
                return
            block = self._begin(_index(wire), start)
        try:
            grown = block.grow(delta)
        except LookupError:
            self._emit(events.OpaqueEvent(NAME, wire))
            return
        if grown is not None:
            self._emit(grown)
            self._growth = block.growth(wire, delta, grown)
            if self._growth is not None:
                return
        self._emit_unknown(wire, _BARE_DELTA)
        self._emit_unknown_piece(delta, is_known=grown is not None)

    def _block_stop(self, wire: Block) -> None:
        index = _index(wire)
        self._stop(self._last if index is None else self._block_at(index))
        self._emit_unknown(wire, _STOP)

    def _stop(self, block: GrowingBlock | None) -> None:
        if block is not None and block.is_open:
            self._parts.stop(block.index, block.stop(self._reading))

    # --- unknown fields

    def _emit_unknown(self, wire: Block, known: frozenset[str]) -> None:
        """Emit the unknown fields of an event as an opaque event."""
        if not wire.keys() <= known:
            unknown = _without(wire, known)
            if unknown:
                self._emit(events.OpaqueEvent(NAME, unknown))

    def _emit_unknown_piece(self, delta: Block, *, is_known: bool) -> None:
        """Emit the unknown fields of a delta; those of a text delta with an empty text."""
        kind = delta.get("type")
        field = GROWING.texts.get(kind) if type(kind) is str else None
        if field is None or not (is_known or delta.get(field) == ""):
            if is_known:
                self._emit_unknown(delta, _PIECES)
        elif unknown := _without(delta, _PIECES):
            bare = {"type": kind, field: "", **unknown}
            self._emit(events.OpaqueEvent(NAME, {"type": "content_block_delta", "delta": bare}))

    # --- errors

    def _error(self, wire: Block) -> None:
        self._is_over = True  # the response stays incomplete, whatever follows
        self._emit(decode_stream_error(wire))

    EVENT_METHODS: ClassVar[dict[str, Callable[[Any, Block], None]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "error": _error,
    }


EVENTS = frozenset(StreamDecoder.EVENT_METHODS)
"""The known event types; any other becomes an opaque event."""


def _index(wire: Block) -> int | None:
    index = wire.get("index")
    return index if type(index) is int else None


def _without(wire: Block, known: frozenset[str]) -> Block:
    return {key: value for key, value in wire.items() if key not in known and key != _PADDING}
