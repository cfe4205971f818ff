"""Content blocks as a stream sends them: a start, deltas, a stop; and the frames of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import dumps
from dragoman.model.media import Media
from dragoman.model.parts import Citation, ServerToolCall, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.anthropic.dialect import NAME, TARGET, is_own
from dragoman.wire.anthropic.stream import GROWING
from dragoman.wire.anthropic.stream_arguments import (
    PASSED,
    Arguments,
    JsonObjectPrefix,
    Passed,
    TextArguments,
    UntouchedArguments,
)
from dragoman.wire.anthropic.tables import (
    EITHER,
    NOT_AN_OBJECT,
    encode_citations,
    encode_parts,
    is_plain,
)
from dragoman.wire.fitting.tools import is_blank
from dragoman.wire.folding import Transitions
from dragoman.wire.framing import sse
from dragoman.wire.lane.flows import Delta, Flow
from dragoman.wire.overlay import fields_of
from dragoman.wire.stream_encoding import CORRECTED, SentPart, unsent_arguments
from dragoman.wire.writing import Writing

NO_MEDIA = "responses can't contain images or files"
_LATE_DATA = f"{EITHER}: the redacted data of readable thinking is left out"


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


_BLOCK_START, BLOCK_STOP = "content_block_start", "content_block_stop"
_STREAM = {
    "before": {"message_start": "between", "error": "over"},
    "between": {_BLOCK_START: "within", "message_delta": "ending", "error": "over"},
    "within": {BLOCK_STOP: "between", "error": "over"},
    "ending": {"message_stop": "over"},
    "over": {},
}
"""What may follow what (W66): one message, and one block at a time, which deltas don't change."""


class BlockWriting(Writing):
    """The blocks of a response as they are written."""

    __slots__ = ("completed", "index", "stream")

    def __init__(self, completed: Callable[[Any], Any] | None = None) -> None:
        super().__init__(TARGET, place="choices[0].message.parts[{1}]", is_response=True)
        self.completed = completed
        """Fills in the fields that a client expects; None: nothing."""
        self.stream = Transitions("before", _STREAM)
        """Where the stream is."""
        self.index = 0
        """The index of the open or next block."""

    def send(self, type: str, **fields: Any) -> bytes:
        """Encode a frame that may come now."""
        self.stream.go(type)
        self.index += type == BLOCK_STOP
        fields = {"type": type, **fields}
        return sse(dumps(fields), type)

    def delta(self, kind: bytes, field: bytes, value: Any) -> bytes:
        """Encode a delta of the open block, with its type and the value of its one field."""
        return _DELTA % (self.index, kind, field, dumps(value))

    def start_text(self) -> bytes:
        """Encode the start of an empty text."""
        self.stream.go(_BLOCK_START)
        return (_TEXT_START if self.completed is None else _COMPLETE_TEXT_START) % self.index


# --- blocks


class Block(SentPart):
    """A part that is being written as a block, or waits for its turn."""

    __slots__ = ("_names", "_signature", "_text", "_writing", "before", "final", "is_over",
                 "is_rest", "is_stopped", "mode", "waiting")  # fmt: skip

    def __init__(
        self, number: int, part: AnyPart, writing: BlockWriting, before: int | None = None
    ) -> None:
        """`before`: how much of the text is in earlier blocks, if they had to end early."""
        super().__init__(number, part)
        self._writing = writing
        self.before, self.is_rest = before or 0, before is not None
        self.mode: Literal["waiting", "growing", "whole", "left out"] = "waiting"
        """`whole`: it is written when it is complete."""
        self.waiting: list[PartDelta] = []
        """Deltas that are not written yet."""
        self.final: AnyPart | None = None
        self.is_stopped = self.is_over = False
        self._text: Passed = PASSED
        self._names = (b"", b"")
        self._signature = ""

    @property
    def is_bare_call(self) -> bool:
        """Whether it is another dialect's call that nothing was sent of, without arguments so far.

        Its id and name may be incomplete, and it may have been cut off before its arguments.
        """
        part = self.part if self.final is None else self.final
        if self.mode != "waiting" or not isinstance(part, ToolCall) or part.raw is None:
            return False
        is_bare = is_blank(part.raw) and all(is_blank(each.text or "") for each in self.waiting)
        return is_bare and not self._writing.is_own(self.part)

    @property
    def is_text(self) -> bool:
        """Whether its text was written."""
        return self.mode == "growing" and not isinstance(self.part, (ToolCall, ServerToolCall))

    @property
    def may_end(self) -> bool:
        """Whether it may end when another part has begun."""
        is_enough = self.mode == "growing" and self._text.is_complete
        return self.is_stopped or is_enough or self.mode == "left out"

    @property
    def waits(self) -> bool:
        """Whether only another part or the end of the response tells that it is complete.

        Free texts may be, and arguments that are no object: they may be the beginning of anything.
        """
        if isinstance(self._text, TextArguments):
            return True
        part = self.final if isinstance(self.final, ToolCall) else self.part
        if self._text.is_complete or not isinstance(part, ToolCall):
            return False
        if self._writing.is_own(self.part) or (part.raw is None and not self.pieces):
            return False  # the latter: the wire had an object
        prefix = JsonObjectPrefix()
        prefix.feed("".join(self.pieces) if self.final is None else _written(part))
        return not prefix.is_closed

    @property
    def length(self) -> int:
        """The number of characters of text written."""
        return sum(map(len, self.pieces))

    def begin(self) -> bytes:
        """The start of the block, if it can grow."""
        part = self.part
        if isinstance(part, Thinking):  # of unknown origin, it may only be sent if signed (W54)
            may_grow = part.data is None and self._writing.origin_of(part) is not None
        else:
            may_grow = isinstance(part, (Text, ToolCall, ServerToolCall))
        if not may_grow:
            self.mode = "whole"
        elif isinstance(part, (Text, ToolCall)) or self._blocks(part):  # reports the loss if not
            return self._begun()
        else:
            self.mode = "left out"
        return b""

    def _begun(self) -> bytes:
        """The block without what grows, then deltas with what there is of it (W67)."""
        part: Any = self.part
        self.mode = "growing"
        self._names = _DELTAS[type(part)]
        if is_plain(part):
            return self._writing.start_text() + self._grown(part.text)
        citations: tuple[Citation, ...] = ()
        if isinstance(part, Text):
            said, citations = part.text, part.citations
            bare: AnyPart = part.replace_unchecked(text="", citations=())
        elif isinstance(part, Thinking):
            said, self._signature = part.text, part.signature or ""
            bare = part.replace_unchecked(text="", signature=part.signature and "")
        elif isinstance(part, ToolCall):
            said, self._text = part.raw or "", self._arguments(part.kind)
            bare = part.replace_unchecked(raw=None, input={}, kind="function")
        else:
            said, self._text = "", self._arguments()
            bare = part.replace_unchecked(input={})
        (block,) = self._blocks(bare)
        return self._start(block) + self._grown(said, citations)

    def _arguments(self, kind: str = "function") -> Passed:
        if kind == "custom":
            return TextArguments()
        is_own = self._writing.is_own(self.part)
        return UntouchedArguments(self.pieces) if is_own else Arguments(self.pieces)

    def grow(self, delta: PartDelta) -> bytes:
        """More text, arguments and citations; the signature is kept for the end (W67)."""
        if self.mode != "growing":
            if self.mode == "whole":
                self.waiting.append(delta)
            return b""
        if isinstance(self.part, Thinking):
            self._signature += delta.signature or ""
            if delta.data:
                self.lose(_LATE_DATA)
            return self._grown(delta.text or "")
        return self._grown(delta.text or "", delta.citations)

    def flow(self, like: Delta) -> Flow | None:
        """A fast path for more text: wraps what is sent of it in constant bytes."""
        if self.mode != "growing":
            return None
        before, _, after = (_DELTA % (self._writing.index, *self._names, b"\n")).rpartition(b"\n}}")
        return Flow(like, self._text.sender(before, b"}}" + after), self.pieces)

    def _grown(self, text: str, citations: tuple[Citation, ...] = ()) -> bytes:
        written = b""
        if text:
            self.pieces.append(text)
            if sent := self._text.feed(text):
                written = self._writing.delta(*self._names, sent)
        for citation in self.cite(citations) if citations and self.is_text else ():
            written += self._writing.delta(*_CITATION, citation)
        return written

    def cite(self, citations: tuple[Citation, ...]) -> list[Any]:
        """Encode more citations."""
        first = self.cited
        self.cited += len(citations)
        self._writing.part = self.number  # the path for losses of citations
        return encode_citations(citations, self._writing, first) or []

    def end(self) -> bytes:
        """The rest of the block and its stop; empty if it is unsupported."""
        if self.mode == "whole":
            return self._whole()
        if self.mode == "left out":
            return b""
        written = self._rest() if self.is_text else self._last_arguments()
        return written + self._writing.send(BLOCK_STOP, index=self._writing.index)

    def _whole(self) -> bytes:
        """A block that is sent at once; thinking that can be read, as if it grew."""
        part = self.part if self.final is None else self.final
        if isinstance(self.part, Thinking) and not isinstance(self.final, Thinking):
            part = _folded(self.part, self.waiting)
            if self.final is not None:
                self.lose(CORRECTED)
        self.waiting, writing = [], self._writing
        if isinstance(part, Media) and writing.completed is not None and not is_own(writing.origin):
            self.lose(NO_MEDIA)  # as in a whole response, its origin decides, not that of its part
            return b""
        blocks = self._blocks(part)
        if not blocks:
            return b""
        self.part, self.final = part, None
        if isinstance(part, Thinking) and part.data is None:
            return self._begun() + self.end()
        (block,) = blocks
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            self.lose("a value that is not a block is left out")
            return b""
        return self._start(block) + self._writing.send(BLOCK_STOP, index=self._writing.index)

    def _rest(self) -> bytes:
        """The rest of the final text, and the signature."""
        written = b""
        rest = None if self.final is None else self.rest(self.final, self.lose)
        if isinstance(rest, Text):
            written = self._grown(rest.text, rest.citations)
            unknown: Any = fields_of(rest.extras, NAME).get("citations")
            if isinstance(unknown, (list, tuple)):  # citations that could not be decoded
                for citation in unknown[self.cited :]:
                    written += self._writing.delta(*_CITATION, citation)
        elif isinstance(rest, Thinking):
            self._signature = rest.signature or self._signature
            if rest.data is not None:
                self.lose(_LATE_DATA)
            written = self._grown(rest.text)
        return written + (
            self._writing.delta(*_SIGNATURE, self._signature) if self._signature else b""
        )

    def _last_arguments(self) -> bytes:
        """The rest of the arguments."""
        final, arguments, written = self.final, self._text, b""
        part: Any = final if isinstance(final, (ToolCall, ServerToolCall)) else self.part
        whole = "" if self.pieces and final is None else _written(part)
        more = unsent_arguments(self.pieces, whole) if whole else ""
        if more is None or (final is not None and part is not final):
            self.lose(CORRECTED)
        if more:
            written = self._grown(more)
        is_cut_off = self._is_cut_off
        if last := arguments.finish(is_cut_off=is_cut_off):
            written += self._writing.delta(*self._names, last)
        if is_cut_off or arguments.is_cut:
            self._writing.has_cut_calls = True
        elif arguments.is_changed and arguments.is_complete:
            self.lose("text after the end of the arguments object is left out")
        elif arguments.is_changed:
            self._writing.part = self.number
            self._writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
        return written

    @property
    def _is_cut_off(self) -> bool:
        """Whether the response was cut off within this call."""
        writing = self._writing
        if not writing.is_cut_off or self._text.is_complete or writing.is_own(self.part):
            return False
        is_text = isinstance(self._text, TextArguments)
        has_begun = not is_text and any(piece.strip() for piece in self.pieces)
        return has_begun or self.number == writing.last

    def _start(self, block: Any) -> bytes:
        completed = self._writing.completed
        block = block if completed is None else completed(block)
        return self._writing.send(_BLOCK_START, index=self._writing.index, content_block=block)

    def _blocks(self, part: AnyPart) -> list[Any]:
        """The part encoded as for a whole response; empty if it is unsupported."""
        return encode_parts((part,), self._writing, self.number)

    def lose(self, reason: str) -> None:
        """Report a loss of this part."""
        self._writing.part = self.number
        self._writing.lose_here(reason)


def _folded(part: Thinking, deltas: list[PartDelta]) -> Thinking:
    """Thinking with what came since it began."""
    text, signature, data = part.text, part.signature, part.data
    for delta in deltas:
        text += delta.text or ""
        if delta.signature:
            signature = (signature or "") + delta.signature
        if delta.data:
            data = (data or "") + delta.data
    return part.replace(text=text, signature=signature, data=data)


def _written(part: ToolCall | ServerToolCall) -> str:
    """All arguments as text; empty if there are none."""
    if isinstance(part, ToolCall) and part.raw is not None:
        return part.raw
    return dumps(part.input).decode() if part.input else ""
