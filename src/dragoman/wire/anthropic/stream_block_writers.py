"""Writers for the content blocks of a stream, and the frames of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Citation, ServerToolCall, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.anthropic.dialect import NAME, TARGET
from dragoman.wire.anthropic.stream import GROWING
from dragoman.wire.anthropic.stream_arguments import (
    Arguments,
    JsonObjectPrefix,
    TextArguments,
    UntouchedArguments,
)
from dragoman.wire.anthropic.tables import NOT_AN_OBJECT, encode_citations, encode_parts, is_plain
from dragoman.wire.folding import Transitions
from dragoman.wire.framing import sse
from dragoman.wire.lane.flows import Delta, Flow, around
from dragoman.wire.overlay import fields_of
from dragoman.wire.stream_encoding import CORRECTED, SentPart, unsent_arguments
from dragoman.wire.writing import Writing

_LATE_DATA = "a block is readable or redacted: the redacted data of readable thinking is left out"


# --- frames

_DELTA = (
    b"event: content_block_delta\ndata: "
    b'{"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
)
_TEXT_START = (
    b"event: content_block_start\ndata: "
    b'{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}\n\n'
)
_COMPLETE_TEXT_START = _TEXT_START.replace(b'"text":""', b'"text":"","citations":null')
_DELTAS = {
    each.shape.kind: (each.delta.encode(), each.field.encode()) for each in GROWING.begun_with
}
"""The type of a delta with text and its field, by part class."""
_SIGNATURE, _CITATION = (b"signature_delta", b"signature"), (b"citations_delta", b"citation")


def frame(type: str, **fields: Any) -> bytes:
    """Encode an event. Its type is sent twice: clients look at either (W66)."""
    return sse(dumps({"type": type, **fields}), type)


_BLOCK_START, _BLOCK_STOP = "content_block_start", "content_block_stop"
_STREAM = {
    "before": {"message_start": "between", "error": "over"},
    "between": {_BLOCK_START: "within", "message_delta": "ending", "error": "over"},
    "within": {_BLOCK_STOP: "between", "error": "over"},
    "ending": {"message_stop": "over"},
    "over": {},
}
"""What may follow what (W66): one message, and one block at a time, which deltas don't change."""


class BlockWriting(Writing):
    """The blocks of a response as they are written."""

    __slots__ = ("completed", "stream")

    def __init__(self, completed: Callable[[Any], Any] | None = None) -> None:
        super().__init__(TARGET, place="choices[0].message.parts[{1}]", is_response=True)
        self.completed = completed
        """Fills in the fields that a client expects; None: nothing."""
        self.stream = Transitions("before", _STREAM)
        """Where the stream is."""

    def send(self, type: str, **fields: Any) -> bytes:
        """Encode a frame that may come now."""
        self.stream.go(type)
        return frame(type, **fields)

    def stop(self, index: int) -> bytes:
        """Encode the stop of a block."""
        self.stream.go(_BLOCK_STOP)
        return sse(b'{"type":"content_block_stop","index":%d}' % index, _BLOCK_STOP)


def block_delta(index: int, kind: bytes, field: bytes, value: Any) -> bytes:
    """Encode a delta of a block, with its type and the value of its one field."""
    return _DELTA % (index, kind, field, dumps(value))


def _edges(index: int, kind: bytes, field: bytes) -> tuple[bytes, bytes]:
    """The bytes before and after the text of a delta."""
    before, _, after = (_DELTA % (index, kind, field, b"\n")).rpartition(b"\n}}")
    return before, b"}}" + after


# --- blocks


class BlockWriter(SentPart):
    """Base class of block writers; by itself for an unsupported part, which is not written."""

    _writing: BlockWriting

    def __init__(self, part: AnyPart, number: int, writing: BlockWriting) -> None:
        super().__init__(number, part)
        self._writing = writing

    @property
    def may_end(self) -> bool:
        """Whether the block may be ended without a stop event when another part begins."""
        return True

    def waits(self, final: AnyPart | None) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the block must not end before another part begins or the response ends."""
        return False

    @property
    def length(self) -> int:
        """The number of characters of text written."""
        return sum(map(len, self.pieces))

    def begin(self, index: int) -> bytes:  # noqa: ARG002 - as above
        """The start of the block; empty if it is written later or never."""
        return b""

    def grow(self, index: int, delta: PartDelta) -> bytes:  # noqa: ARG002 - as above
        """A delta of the block."""
        return b""

    def flow(self, index: int, like: Delta) -> Flow | None:  # noqa: ARG002 - as above
        """A fast path for more text; None to use `grow`."""
        return None

    def end(self, index: int, final: AnyPart | None) -> bytes:  # noqa: ARG002 - as above
        """The rest of the block and its stop. `final` is the whole part, if given."""
        return b""

    def _start(self, index: int, block: Any) -> bytes:
        completed = self._writing.completed
        block = block if completed is None else completed(block)
        return self._writing.send(_BLOCK_START, index=index, content_block=block)

    def _blocks(self, part: AnyPart) -> list[Any]:
        """The part encoded as for a whole response; empty if it is unsupported."""
        return encode_parts((part,), self._writing, self.number)

    def _lose(self, reason: str) -> None:
        self._writing.part = self.number
        self._writing.lose_here(reason)


class WholeWriter(BlockWriter):
    """Writes a block when it is complete, all in its start event."""

    @property
    def may_end(self) -> bool:
        """False: only when it is stopped."""
        return False

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The whole block; empty if it is unsupported."""
        blocks = self._blocks(self.part if final is None else final)
        if not blocks:
            return b""
        (block,) = blocks
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            self._lose("a value that is not a block is left out")
            return b""
        return self._start(index, block) + self._writing.stop(index)


class UnknownThinkingWriter(WholeWriter):
    """Thinking of unknown origin, which may only be sent if it is signed (W54)."""

    part: Thinking

    def __init__(self, part: Thinking, number: int, writing: BlockWriting) -> None:
        super().__init__(part, number, writing)
        self._texts = [part.text]
        self._signature = part.signature
        self._data = part.data

    def grow(self, index: int, delta: PartDelta) -> bytes:  # noqa: ARG002 - written at the end
        """Kept."""
        self._texts.append(delta.text or "")
        if delta.signature:
            self._signature = (self._signature or "") + delta.signature
        if delta.data:
            self._data = (self._data or "") + delta.data
        return b""

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The whole block."""
        whole = self.part.replace(
            text="".join(self._texts), signature=self._signature, data=self._data
        )
        if isinstance(final, Thinking):
            whole = final
        elif final is not None:
            self._lose(CORRECTED)
        if whole.data is not None:
            return super().end(index, whole)
        if not self._blocks(whole):
            return b""
        writer = TextWriter(whole, self.number, self._writing)
        return writer.begin(index) + writer.end(index, None)


class TextWriter(BlockWriter):
    """Writes a text or thinking as it comes, and a signature last (W67)."""

    part: Text | Thinking

    def __init__(self, part: Text | Thinking, number: int, writing: BlockWriting) -> None:
        super().__init__(part, number, writing)
        self._delta = _DELTAS[Text if isinstance(part, Text) else Thinking]
        self._signature = ""

    def begin(self, index: int) -> bytes:
        """The empty block, then a delta with the initial content."""
        part = self.part
        if is_plain(part):
            completed = self._writing.completed
            start = _TEXT_START if completed is None else _COMPLETE_TEXT_START
            self._writing.stream.go(_BLOCK_START)
            return start % index + self._grown(index, part.text)
        if isinstance(part, Text):
            (block,) = self._blocks(part.replace_unchecked(text="", citations=()))
            return self._start(index, block) + self._grown(index, part.text, part.citations)
        self._signature = part.signature or ""
        (block,) = self._blocks(part.replace_unchecked(text="", signature=part.signature and ""))
        return self._start(index, block) + self._grown(index, part.text)

    def grow(self, index: int, delta: PartDelta) -> bytes:
        """More text and citations; the signature is kept for the end."""
        if isinstance(self.part, Text):
            return self._grown(index, delta.text or "", delta.citations)
        self._signature += delta.signature or ""
        if delta.data:
            self._lose(_LATE_DATA)
        return self._grown(index, delta.text or "")

    def flow(self, index: int, like: Delta) -> Flow | None:
        """Wraps text in constant bytes."""
        return Flow(like, around(*_edges(index, *self._delta)), self.pieces)

    def _grown(self, index: int, text: str, citations: tuple[Citation, ...] = ()) -> bytes:
        written = b""
        if text:
            self.pieces.append(text)
            written = block_delta(index, *self._delta, text)
        for citation in self.cite(citations) if citations else ():
            written += block_delta(index, *_CITATION, citation)
        return written

    def cite(self, citations: tuple[Citation, ...]) -> list[Any]:
        """Encode more citations."""
        first = self.cited
        self.cited += len(citations)
        self._writing.part = self.number  # the path for losses of citations
        return encode_citations(citations, self._writing, first) or []

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The rest of the final text, and the stop."""
        written = b""
        rest = None if final is None else self.rest(final, self._lose)
        if isinstance(rest, Text):
            written = self._grown(index, rest.text, rest.citations)
            unknown: Any = fields_of(rest.extras, NAME).get("citations")
            if isinstance(unknown, (list, tuple)):  # citations that could not be decoded
                for citation in unknown[self.cited :]:
                    written += block_delta(index, *_CITATION, citation)
        elif isinstance(rest, Thinking):
            self._signature = rest.signature or self._signature
            if rest.data is not None:
                self._lose(_LATE_DATA)
            written = self._grown(index, rest.text)
        if self._signature:
            written += block_delta(index, *_SIGNATURE, self._signature)
        return written + self._writing.stop(index)


class CallWriter(BlockWriter):
    """Writes a call of a client or server tool, and its arguments as they come."""

    part: ToolCall | ServerToolCall

    def __init__(self, part: ToolCall | ServerToolCall, number: int, writing: BlockWriting) -> None:
        super().__init__(part, number, writing)
        self._arguments = Arguments()
        if isinstance(part, ToolCall) and part.kind == "custom":
            self._arguments = TextArguments()
        elif writing.is_own(part):
            self._arguments = UntouchedArguments()

    @property
    def may_end(self) -> bool:
        """Whether the arguments are complete."""
        return self._arguments.is_complete

    def waits(self, final: AnyPart | None) -> bool:
        """Whether only the end of the response tells if it is complete.

        Free texts may be, and arguments that are no object: they may be the beginning of anything.
        """
        if isinstance(self._arguments, TextArguments):
            return True
        part = final if isinstance(final, ToolCall) else self.part
        if self.may_end or not isinstance(part, ToolCall) or self._writing.is_own(self.part):
            return False
        if part.raw is None and not self.pieces:
            return False  # the wire had an object
        prefix = JsonObjectPrefix()
        prefix.feed("".join(self.pieces) if final is None else _written(part))
        return not prefix.is_closed

    @property
    def _is_cut_off(self) -> bool:
        """Whether the response was cut off within this call."""
        writing = self._writing
        if not writing.is_cut_off or self.may_end or writing.is_own(self.part):
            return False
        is_text = isinstance(self._arguments, TextArguments)
        has_begun = not is_text and any(piece.strip() for piece in self.pieces)
        return has_begun or self.number == writing.last

    def begin(self, index: int) -> bytes:
        """The call without arguments: `input` is an empty object in the start event (W67)."""
        part = self.part
        if isinstance(part, ToolCall):
            part = part.replace_unchecked(raw=None, input={}, kind="function")
        else:
            part = part.replace_unchecked(input={})
        (block,) = self._blocks(part)
        written = self._start(index, block)
        if isinstance(self.part, ToolCall) and self.part.raw:
            written += self._more(index, self.part.raw)
        return written

    def grow(self, index: int, delta: PartDelta) -> bytes:
        """More of the arguments."""
        return self._more(index, delta.text) if delta.text else b""

    def flow(self, index: int, like: Delta) -> Flow | None:
        """Wraps the sendable arguments in constant bytes."""
        send = self._arguments.sender(*_edges(index, *_DELTAS[ToolCall]))
        return Flow(like, send, self.pieces)

    def _more(self, index: int, piece: str) -> bytes:
        self.pieces.append(piece)
        sendable = self._arguments.feed(piece)
        return block_delta(index, *_DELTAS[ToolCall], sendable) if sendable else b""

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The rest of the arguments, and the stop."""
        written = b""
        part = final if isinstance(final, (ToolCall, ServerToolCall)) else self.part
        whole = "" if self.pieces and final is None else _written(part)
        more = unsent_arguments(self.pieces, whole) if whole else ""
        if more is None or (final is not None and part is not final):
            self._lose(CORRECTED)
        if more:
            written = self._more(index, more)
        if last := self._arguments.finish(is_cut_off=self._is_cut_off):
            written += block_delta(index, *_DELTAS[ToolCall], last)
        if self._is_cut_off or self._arguments.is_cut:
            self._writing.has_cut_calls = True
        elif self._arguments.is_changed and self._arguments.is_complete:
            self._lose("text after the end of the arguments object is left out")
        elif self._arguments.is_changed:
            self._writing.part = self.number
            self._writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
        return written + self._writing.stop(index)


def _written(part: ToolCall | ServerToolCall) -> str:
    """All arguments as text; empty if there are none."""
    if isinstance(part, ToolCall) and part.raw is not None:
        return part.raw
    return dumps(part.input).decode() if part.input else ""


def writer_of(part: AnyPart, number: int, writing: BlockWriting) -> BlockWriter:
    """The writer for a part; `number` is its index in the message."""
    if isinstance(part, Text):
        return TextWriter(part, number, writing)
    if isinstance(part, ToolCall):
        return CallWriter(part, number, writing)
    if isinstance(part, Thinking) and part.data is None:
        if writing.origin_of(part) is None:
            return UnknownThinkingWriter(part, number, writing)
        is_supported = encode_parts((part,), writing, number)  # reports the loss if not
        return (TextWriter if is_supported else BlockWriter)(part, number, writing)
    if isinstance(part, ServerToolCall):
        is_supported = encode_parts((part,), writing, number)
        return (CallWriter if is_supported else BlockWriter)(part, number, writing)
    return WholeWriter(part, number, writing)
