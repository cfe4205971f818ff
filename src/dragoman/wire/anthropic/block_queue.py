"""The blocks of a stream that have begun and are not done: one is written, the others wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.parts import Citation, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.anthropic.block_writers import BlockWriter, TextWriter, writer_of
from dragoman.wire.anthropic.context import Encoding
from dragoman.wire.streams import CORRECTED


class _Queued:
    """A part on its way."""

    __slots__ = (
        "before",
        "final",
        "has_head",
        "is_over",
        "is_rest",
        "is_stopped",
        "number",
        "part",
        "waiting",
        "writer",
    )

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.writer: BlockWriter | None = None  # once it is its turn
        self.waiting: list[PartDelta] = []
        self.final: AnyPart | None = None
        self.has_head = True  # or its id and name may still be on their way
        self.is_stopped = False
        self.is_over = False
        self.is_rest = False  # of a part whose block had to end before
        self.before = 0  # characters of it that are in that block


class BlockQueue:
    """Writes parts as blocks, one at a time (W66)."""

    __slots__ = ("_context", "_index", "_is_open", "_number", "_parts", "_queue")

    def __init__(self, context: Encoding) -> None:
        self._context = context
        self._queue: deque[_Queued] = deque()
        self._parts: dict[Hashable, _Queued] = {}
        self._number = 0  # of the next part
        self._index = 0  # of the block that is open, or will be next
        self._is_open = False

    @property
    def open_index(self) -> int | None:
        """The number of the open block, if there is one."""
        return self._index if self._is_open else None

    def skip(self) -> None:
        """Count a part that is no block."""
        self._number += 1

    def start(self, key: Hashable, part: AnyPart) -> bytes:
        """A part begins."""
        self._append(key, _Queued(self._number, part))
        self._number += 1
        return self._advance()

    def grow(self, key: Hashable, delta: PartDelta) -> bytes:
        """A part grows."""
        queued = self._parts.get(key)
        if queued is None:  # a server that forgot to announce it: text is the likeliest
            queued = self._append(key, _Queued(self._number, Text("")))
            self._number += 1
        elif queued.is_over:
            continued = self._continued(queued, delta)
            if continued is None:
                return b""
            queued = self._append(key, continued)
        if queued.writer is not None and len(self._queue) == 1:
            return queued.writer.grow(self._index, delta)
        queued.waiting.append(delta)
        return self._advance()

    def stop(self, key: Hashable, final: AnyPart | None) -> bytes:
        """A part is done."""
        queued = self._parts.get(key)
        if queued is None:
            if final is None:
                return b""
            queued = self._append(key, _Queued(self._number, final))
            self._number += 1
        if queued.is_over:
            self._note_missed(queued, final)
            return self._late_rest(key, queued, final)
        queued.is_stopped = True
        if queued.is_rest and isinstance(final, (Text, Thinking)):  # it is on the whole part
            self._note_missed(queued, final)
            queued.final = type(final)(final.text[queued.before :], signature=final.signature)
        else:
            queued.final = final
        return self._advance()

    def call(self, place: int, head: ToolCall, arguments: str | None) -> bytes:
        """A call begins or grows; its id and name may come in several deltas (W7, W8)."""
        key = ("call", place)
        queued = self._parts.get(key)
        if queued is None:
            queued = self._append(key, _Queued(self._number, head))
            queued.has_head = False
            self._number += 1
        elif not queued.has_head:
            queued.part = head
        if arguments:
            queued.has_head = True
            return self.grow(key, PartDelta(0, arguments))
        return self._advance()

    def finish(self) -> bytes:
        """All that is left."""
        for queued in self._queue:
            queued.is_stopped = True
        return self._advance()

    def _append(self, key: Hashable, queued: _Queued) -> _Queued:
        self._parts[key] = queued
        self._queue.append(queued)
        return queued

    def _advance(self) -> bytes:
        written: list[bytes] = []
        while self._queue:
            first = self._queue[0]
            is_last = len(self._queue) == 1
            if is_last and not first.has_head and not first.is_stopped:
                break
            written.append(self._write(first))
            if not first.is_stopped and (is_last or not _may_end(first)):
                break
            written.append(self._end(first))
        return b"".join(written)

    def _write(self, queued: _Queued) -> bytes:
        """What has been waiting."""
        written = b""
        if queued.writer is None:
            queued.writer = writer_of(queued.part, queued.number, self._context)
            written = queued.writer.begin(self._index)
            self._is_open = bool(written)
        waiting, queued.waiting = queued.waiting, []
        return written + b"".join([queued.writer.grow(self._index, delta) for delta in waiting])

    def _end(self, queued: _Queued) -> bytes:
        written = b"" if queued.writer is None else queued.writer.end(self._index, queued.final)
        if self._is_open or written:
            self._index += 1
        self._is_open = False
        self._queue.popleft()  # none but the first ends
        queued.is_over = True
        return written

    def _continued(self, queued: _Queued, delta: PartDelta) -> _Queued | None:
        """A block for more of a part whose own is closed, since another had begun meanwhile."""
        part = queued.part
        if delta.citations:
            self._note_late(queued, delta.citations)
        if not isinstance(part, (Text, Thinking)) or not (delta.text or delta.signature):
            if not delta.citations:
                self._lose(queued, "what was added to a part after its end is left out")
            return None
        more = _Queued(queued.number, type(part)("", origin=part.origin))
        more.is_rest = True
        more.before = queued.before + (0 if queued.writer is None else queued.writer.length)
        return more

    def _late_rest(self, key: Hashable, queued: _Queued, final: AnyPart | None) -> bytes:
        """What a last word adds to the text of a block that is closed."""
        writer = queued.writer
        if final is not None and type(final) is not type(queued.part):
            self._lose(queued, CORRECTED)
            return b""
        if writer is None or not isinstance(final, (Text, Thinking)):
            return b""
        more = final.text[queued.before + writer.length :]
        return self.grow(key, PartDelta(0, more)) if more else b""

    def _note_missed(self, queued: _Queued, final: AnyPart | None) -> None:
        if not isinstance(final, Text) or not isinstance(queued.writer, TextWriter):
            return
        self._note_late(queued, final.citations[queued.writer.cited :])

    def _note_late(self, queued: _Queued, citations: tuple[Citation, ...]) -> None:
        """Citations for a block that is closed: those that had a place are lost as well."""
        if isinstance(queued.writer, TextWriter) and queued.writer.cite(citations):
            self._lose(queued, "citations that came after the end of their text are left out")

    def _lose(self, queued: _Queued, reason: str) -> None:
        self._context.part = queued.number
        self._context.lose(reason)


def _may_end(queued: _Queued) -> bool:
    return queued.writer is not None and queued.writer.may_end
