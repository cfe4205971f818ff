"""What writes one content block of a stream, of whichever kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Citation, Part, ServerToolCall, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.anthropic import stream_frames as frames
from dragoman.wire.anthropic.arguments import Arguments, TextArguments, UntouchedArguments
from dragoman.wire.anthropic.calls import NOT_AN_OBJECT
from dragoman.wire.anthropic.citations import encode_citations
from dragoman.wire.anthropic.context import NAME, Encoding, is_ours
from dragoman.wire.anthropic.parts import encode_parts
from dragoman.wire.overlay import overlay
from dragoman.wire.streams import CORRECTED, unsent, unsent_arguments

_LATE_DATA = "a block is readable or sealed: what was sealed of shown thinking is left out"


class BlockWriter:
    """A part that has no place here; or, derived from it, one that has."""

    def __init__(self, part: AnyPart, number: int, context: Encoding) -> None:
        self._part = part
        self._number = number
        self._context = context

    @property
    def may_end(self) -> bool:
        """Whether the block may be ended, without having been stopped, when another begins."""
        return True

    @property
    def length(self) -> int:
        """How many characters of its text were written."""
        return 0

    def begin(self, index: int) -> bytes:  # noqa: ARG002 - derived ones need it
        """The block's start; nothing where that is not to be written yet, or never."""
        return b""

    def grow(self, index: int, delta: PartDelta) -> bytes:  # noqa: ARG002 - as above
        """More of it."""
        return b""

    def end(self, index: int, final: AnyPart | None) -> bytes:  # noqa: ARG002 - as above
        """The rest of it, and its stop. `final` is the whole part, where that was said."""
        return b""

    def _blocks(self, part: AnyPart) -> list[Any]:
        """The part as the plain form has it; empty where it has no place here."""
        return encode_parts((part,), self._context, self._number)

    def _lose(self, reason: str) -> None:
        self._context.part = self._number
        self._context.lose(reason)

    def _check_kind(self, final: AnyPart | None, *kinds: type[Part]) -> None:
        """Note a last word on something else than what was begun."""
        if final is not None and not isinstance(final, kinds):
            self._lose(CORRECTED)

    def _unsent(
        self,
        pieces: list[str],
        whole: str,
        rest: Callable[[list[str], str], str | None] = unsent,
    ) -> str:
        """What the last word on a part adds to its pieces (W26); it can't take any back."""
        more = rest(pieces, whole)
        if more is None:
            self._lose(CORRECTED)
        return more or ""


class WholeWriter(BlockWriter):
    """A block that is written when it is known whole, in its start."""

    @property
    def may_end(self) -> bool:
        """Not before it is stopped."""
        return False

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """All of it; nothing, where it has no place here."""
        blocks = self._blocks(self._part if final is None else final)
        if not blocks:
            return b""
        (block,) = blocks
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            self._lose("what is not a block is left out")
            return b""
        return frames.block_start(index, block) + frames.block_stop(index)


class UnknownThinkingWriter(WholeWriter):
    """Thinking of unknown origin: only its signature tells whether it may be said (W54)."""

    _part: Thinking

    def __init__(self, part: Thinking, number: int, context: Encoding) -> None:
        super().__init__(part, number, context)
        self._texts = [part.text]
        self._signature = part.signature
        self._data = part.data

    def grow(self, index: int, delta: PartDelta) -> bytes:  # noqa: ARG002 - it is not written yet
        """Kept."""
        self._texts.append(delta.text or "")
        if delta.signature:
            self._signature = (self._signature or "") + delta.signature
        if delta.data:
            self._data = (self._data or "") + delta.data
        return b""

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The whole block."""
        whole = self._part.replace(
            text="".join(self._texts), signature=self._signature, data=self._data
        )
        if isinstance(final, Thinking):
            whole = final
        self._check_kind(final, Thinking)
        if whole.data is not None:
            return super().end(index, whole)
        if not self._blocks(whole):
            return b""
        writer = ThinkingWriter(whole, self._number, self._context)
        return writer.begin(index) + writer.end(index, None)


class TextWriter(BlockWriter):
    """A text, as it comes."""

    _part: Text

    def __init__(self, part: Text, number: int, context: Encoding) -> None:
        super().__init__(part, number, context)
        self._pieces: list[str] = []
        self.cited = 0

    @property
    def may_end(self) -> bool:
        """Yes: if more of the text comes, it goes into a block of its own."""
        return True

    @property
    def length(self) -> int:
        """As above."""
        return sum(map(len, self._pieces))

    def begin(self, index: int) -> bytes:
        """The empty block, and what is there already."""
        part = self._part
        (block,) = self._blocks(part.replace(text="", citations=()))
        return frames.block_start(index, block) + self._grown(index, part.text, part.citations)

    def grow(self, index: int, delta: PartDelta) -> bytes:
        """More text, more sources."""
        if delta.text and not delta.citations:
            self._pieces.append(delta.text)
            return frames.text_delta(index, delta.text)
        return self._grown(index, delta.text or "", delta.citations)

    def _grown(self, index: int, text: str, citations: tuple[Citation, ...]) -> bytes:
        written = []
        if text:
            self._pieces.append(text)
            written.append(frames.text_delta(index, text))
        written += [frames.citations_delta(index, wire) for wire in self.cite(citations)]
        return b"".join(written)

    def cite(self, citations: tuple[Citation, ...]) -> list[Any]:
        """More sources, as the wire has them."""
        first = self.cited
        self.cited += len(citations)
        self._context.part = self._number  # where citations without a place are lost
        return encode_citations(citations, self._context, first)

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """What the final word adds, and the stop."""
        written = b""
        self._check_kind(final, Text)
        if isinstance(final, Text):
            more = self._unsent(self._pieces, final.text)
            written = self._grown(index, more, final.citations[self.cited :])
            strange: Any = overlay(final.extras, NAME).get("citations")
            if isinstance(strange, (list, tuple)):  # such as can't be understood
                for citation in strange[self.cited :]:
                    written += frames.citations_delta(index, citation)
        return written + frames.block_stop(index)


class ThinkingWriter(BlockWriter):
    """Thinking, as it comes; its signature last (W67)."""

    _part: Thinking

    def __init__(self, part: Thinking, number: int, context: Encoding) -> None:
        super().__init__(part, number, context)
        self._pieces = [part.text]
        self._signature = part.signature or ""

    @property
    def may_end(self) -> bool:
        """Yes: as a text."""
        return True

    @property
    def length(self) -> int:
        """As above."""
        return sum(map(len, self._pieces))

    def begin(self, index: int) -> bytes:
        """The empty block, and what is there already."""
        part = self._part
        empty = part.replace(text="", signature=None if part.signature is None else "")
        (block,) = self._blocks(empty)
        written = frames.block_start(index, block)
        return written + frames.thinking_delta(index, part.text) if part.text else written

    def grow(self, index: int, delta: PartDelta) -> bytes:
        """More thinking; the signature is kept for the end."""
        self._signature += delta.signature or ""
        if delta.data:
            self._lose(_LATE_DATA)
        if not delta.text:
            return b""
        self._pieces.append(delta.text)
        return frames.thinking_delta(index, delta.text)

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The signature, and the stop."""
        written = b""
        self._check_kind(final, Thinking)
        if isinstance(final, Thinking):
            self._signature = final.signature or self._signature
            if final.data is not None:
                self._lose(_LATE_DATA)
            if more := self._unsent(self._pieces, final.text):
                written = frames.thinking_delta(index, more)
        if self._signature:
            written += frames.signature_delta(index, self._signature)
        return written + frames.block_stop(index)


class CallWriter(BlockWriter):
    """A call of the user's tools or of the provider's own; its arguments as they come."""

    _part: ToolCall | ServerToolCall

    def __init__(self, part: ToolCall | ServerToolCall, number: int, context: Encoding) -> None:
        super().__init__(part, number, context)
        self._pieces: list[str] = []
        self._arguments = Arguments()
        if isinstance(part, ToolCall) and part.kind == "custom":
            self._arguments = TextArguments()
        elif is_ours(context.origin_of(part)):
            self._arguments = UntouchedArguments()

    @property
    def may_end(self) -> bool:
        """Whether the arguments are whole."""
        return self._arguments.is_complete

    def begin(self, index: int) -> bytes:
        """The call without its arguments: `input` is an empty object until the end (W67)."""
        part = self._part
        if isinstance(part, ToolCall):
            part = part.replace_unchecked(raw=None, input={}, kind="function")
        else:
            part = part.replace_unchecked(input={})
        (block,) = self._blocks(part)
        written = frames.block_start(index, block)
        if isinstance(self._part, ToolCall) and self._part.raw:
            written += self._more(index, self._part.raw)
        return written

    def grow(self, index: int, delta: PartDelta) -> bytes:
        """More of the arguments."""
        return self._more(index, delta.text) if delta.text else b""

    def _more(self, index: int, piece: str) -> bytes:
        self._pieces.append(piece)
        sendable = self._arguments.feed(piece)
        return frames.input_json_delta(index, sendable) if sendable else b""

    def end(self, index: int, final: AnyPart | None) -> bytes:
        """The rest of the arguments, and the stop."""
        written = b""
        self._check_kind(final, ToolCall, ServerToolCall)
        part = final if isinstance(final, (ToolCall, ServerToolCall)) else self._part
        whole = "" if self._pieces and final is None else _written(part)
        if whole and (more := self._unsent(self._pieces, whole, unsent_arguments)):
            written = self._more(index, more)
        if last := self._arguments.finish():
            written += frames.input_json_delta(index, last)
        if self._arguments.is_changed and self._arguments.is_complete:
            self._lose("what came after the arguments' object is left out")
        elif self._arguments.is_changed:
            self._context.part = self._number
            self._context.repair("I6", "retyped", NOT_AN_OBJECT)
        return written + frames.block_stop(index)


def _written(part: ToolCall | ServerToolCall) -> str:
    """All arguments as text; empty where there are none."""
    if isinstance(part, ToolCall) and part.raw is not None:
        return part.raw
    return dumps(part.input).decode() if part.input else ""


def writer_of(part: AnyPart, number: int, context: Encoding) -> BlockWriter:
    """What writes the block of a part; `number` is its place in the message."""
    if isinstance(part, Text):
        return TextWriter(part, number, context)
    if isinstance(part, ToolCall):
        return CallWriter(part, number, context)
    if isinstance(part, Thinking) and part.data is None:
        if context.origin_of(part) is None:
            return UnknownThinkingWriter(part, number, context)
        has_place = encode_parts((part,), context, number)  # notes the loss, if it has none
        return (ThinkingWriter if has_place else BlockWriter)(part, number, context)
    if isinstance(part, ServerToolCall):
        has_place = encode_parts((part,), context, number)
        return (CallWriter if has_place else BlockWriter)(part, number, context)
    return WholeWriter(part, number, context)
