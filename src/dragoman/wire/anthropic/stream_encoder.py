"""Stream encoder: canonical events to server-sent events.

The format (W66): one message, with blocks one after the other, numbered consecutively. Other
dialects may interleave parts, so parts are queued: the first in the queue is written as it comes,
the others are buffered until it is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.ids import new_id
from dragoman.model.messages import make_message
from dragoman.model.parts import Citation, Refusal, Text, Thinking
from dragoman.model.responses import Choice
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.dialect import NAME, Block, is_own
from dragoman.wire.anthropic.response import (
    encode_body,
    encode_stream_error,
    encode_usage,
    finish_beside_calls,
    is_usage,
    report_losses,
)
from dragoman.wire.anthropic.stream import EVENTS, GROWING
from dragoman.wire.anthropic.stream_block_writers import (
    BlockWriter,
    BlockWriting,
    TextWriter,
    frame,
    writer_of,
)
from dragoman.wire.cut_calls import LEFT_OUT, finish_beside
from dragoman.wire.fitting.tools import is_blank
from dragoman.wire.framing import is_event_name
from dragoman.wire.lane.flows import Delta, Flow
from dragoman.wire.losses import Loss
from dragoman.wire.stream_encoding import CORRECTED, HELD_BACK, EventEncoder, is_carrier

_ASSISTANT = Role.ASSISTANT
_AT_START = frozenset({"type", "role", "id", "model", "content", "usage"})
_BESIDE_DELTA = frozenset({"context_management", "input_transformations"})
"""Message fields that are in `message_delta` outside of its `delta`."""

_SPLIT = "the signature is not that of its block, as another part interrupted the thinking"


class StreamEncoder(EventEncoder):
    """Encodes one message and its blocks."""

    _dialect = NAME

    def __init__(self, completed: Callable[[Any], Any] | None = None) -> None:
        """`completed` fills in the fields of blocks, for clients that expect all of them."""
        self._writing = BlockWriting(completed)
        super().__init__(self._writing)
        self._queue = BlockQueue(self._writing)
        self._begun: Block | None = None  # the message as sent in `message_start`
        self._begun_usage: Usage | None = None
        self._refusals: dict[int, list[str]] = {}
        self._calls = MessageAccumulator()  # maps deltas to calls
        self._has_calls = False

    # --- the message

    def _started(self, event: events.ResponseStart) -> bytes:
        self._calls.add(event)
        start = self._start
        self._writing.origin = start.origin
        if event.model and self._begun is not None and not self._begun["model"]:
            self._lose("model", "received after the start of the response")
        # Our own decoder emits the usage next, which belongs in `message_start`; others emit it at
        # the end, and clients should not wait for that (G3). Azure's preamble has no id or model,
        # and some servers' first chunk has only one: wait for a second start or the first part.
        is_enough = bool(start.id and start.model) and not is_own(event.origin)
        return self._message_start() if is_enough else b""

    def _usage_update(self, event: events.UsageUpdate) -> bytes:
        return super()._usage_update(event) + self._message_start()

    def _message_start(self) -> bytes:
        if self._begun is not None:
            return b""
        self._begun_usage = self._usage
        body = encode_body(self._start, self._usage, None, [])
        self._begun = body = self._head(_well_formed(body))
        if body["id"] is not self._start.id:
            self._start = self._start.replace(id=body["id"])
        return self._writing.send("message_start", message=body)

    def _head(self, body: Block) -> Block:
        """The message of `message_start`."""
        return body

    def _tail(self, delta: Block, usage: Block) -> Block:
        """The fields of `message_delta`."""
        return {"delta": delta, "usage": usage}

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        self._writing.is_cut_off = event.finish.is_cut_off
        return super()._choice_finish(event) + self._message_start()

    def _end(self) -> bytes:
        return self._message_start() + self._queue.finish() + self._message_delta()

    def _message_delta(self) -> bytes:
        choice = self._choice()
        report_losses(choice, self._writing)
        sent = encode_body(self._start, self._usage, choice, [])
        begun = self._begun or {}
        usage = _usage(sent)
        late = {
            key: value
            for key, value in sent.items()
            if key not in _AT_START and (key not in begun or begun[key] != value)
        }
        beside = {key: late.pop(key) for key in _BESIDE_DELTA & late.keys()}
        delta = {"stop_reason": sent.get("stop_reason"),
                 "stop_sequence": sent.get("stop_sequence"), **late}  # fmt: skip
        end = self._writing.send("message_delta", **self._tail(delta, usage), **beside)
        return end + self._writing.send("message_stop")

    def _choice(self) -> Choice:
        """The choice without its content, but with refusals, which are outside the content."""
        refusals = tuple([Refusal("".join(words)) for words in self._refusals.values()])
        message = make_message(_ASSISTANT, refusals, origin=self._start.origin)
        end = self._finish
        if end is None:
            return Choice(0, message, finish_beside(None, self._writing))
        finish: FinishReason | None = end.finish
        if end.finish_raw is None or not is_own(self._start.origin):
            finish = finish_beside_calls(finish, self._has_calls)
        finish = finish_beside(finish, self._writing)
        return Choice(0, message, finish, end.finish_raw, end.logprobs)

    # --- its parts

    def _part_start(self, event: events.PartStart) -> bytes:
        begun = self._message_start()
        if isinstance(event.part, Refusal):
            self._refusals[event.index] = [event.part.text]
            self._queue.skip()
            return begun
        self._has_calls = self._has_calls or isinstance(event.part, ToolCall)
        return begun + self._queue.start(event.index, event.part)

    def _part_delta(self, event: PartDelta) -> bytes:
        begun = self._message_start()
        if event.index in self._refusals:
            self._refusals[event.index].append(event.text or "")
            return begun
        return begun + self._queue.grow(event.index, event)

    def _part_stop(self, event: events.PartStop) -> bytes:
        begun = self._message_start()
        if event.index in self._refusals:
            if isinstance(event.part, Refusal):
                self._refusals[event.index] = [event.part.text]
            elif event.part is not None:
                return begun + self._queue.start(("corrected", event.index), event.part)
            return begun
        return begun + self._queue.stop(event.index, event.part)

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        begun = self._message_start()
        place, call = self._calls.add_call(event)
        self._has_calls = True
        return begun + self._queue.call(place, call, event.arguments_delta)

    def _part_flow(self, event: PartDelta) -> Flow | None:
        return None if event.index in self._refusals else self._queue.flow(event.index, event)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        kept = self._calls.texts_of(event)
        flow = self._queue.flow(("call", self._calls.place_of(event)), event)
        return flow.beside(*kept) if flow is not None and kept else None

    # --- errors and unknown events

    def _error(self, error: events.StreamError) -> bytes:
        return self._writing.send("error", **encode_stream_error(error))

    def _held_back(self) -> Iterable[Loss]:
        usage = () if self._usage is self._begun_usage else super()._held_back()
        numbers = [*self._refusals, *self._queue.held_back]
        parts = [Loss(f"choices[0].message.parts[{n}]", HELD_BACK) for n in numbers]
        return [*usage, *parts]

    def _opaque(self, payload: Block) -> bytes | None:
        kind, index = payload.get("type"), self._queue.open_index
        if type(kind) is not str or not is_event_name(kind):
            return None
        if kind not in EVENTS:
            return self._message_start() + frame(**payload)
        if kind == "content_block_delta" and index is not None and _is_unknown(payload):
            return frame(kind, index=index, delta=payload["delta"])
        return None


def _well_formed(body: Block) -> Block:
    """The `message_start` body with all fields that clients rely on."""
    body |= {"type": "message", "role": "assistant", "content": [], "stop_reason": None}
    body["usage"] = _usage(body)
    if not isinstance(body["id"], str):
        body["id"] = new_id()
    if not isinstance(body["model"], str):
        body["model"] = ""
    return body


def _usage(body: Block) -> Block:
    """The usage, never null (W69)."""
    usage: Any = body.get("usage")
    return usage if is_usage(usage) else encode_usage(Usage())


def _is_unknown(payload: Block) -> bool:
    """Whether a delta is of an unknown type, or has only unknown fields.

    Known deltas are written for the part they belong to.
    """
    delta = payload.get("delta")
    kind = delta.get("type") if isinstance(delta, dict) else None
    if not isinstance(delta, dict) or type(kind) is not str:
        return False
    return kind not in GROWING.deltas or delta.get(GROWING.texts.get(kind, "")) == ""


def _is_empty(part: AnyPart) -> bool:
    return isinstance(part, (Text, Thinking)) and not (part.text or part.signature)


# --- unfinished blocks: one is written, the others wait


class _Queued:
    """A part that is being written or waiting."""

    writer: BlockWriter | None = None  # set when its turn comes
    final: AnyPart | None = None
    is_stopped = is_over = False
    is_rest = False  # the rest of a part whose block had to end early
    before = 0  # characters of the part that are in earlier blocks

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.waiting: list[PartDelta] = []

    @property
    def is_bare_call(self) -> bool:
        """Whether it is a call that nothing was sent of, and that has no arguments so far.

        Its id and name may be incomplete, and it may have been cut off before its arguments.
        """
        part = self.part if self.final is None else self.final
        if self.writer is not None or not isinstance(part, ToolCall) or part.raw is None:
            return False
        return is_blank(part.raw) and all(is_blank(each.text or "") for each in self.waiting)

    @property
    def waits(self) -> bool:
        """Whether only another part or the end of the response tells that it is complete."""
        return self.writer is not None and self.writer.waits(self.final)

    @property
    def may_end(self) -> bool:
        """Whether the block may end when another part has begun."""
        return self.is_stopped or (self.writer is not None and self.writer.may_end)


class BlockQueue:
    """Writes parts as blocks, one at a time (W66)."""

    __slots__ = ("_index", "_is_finished", "_last", "_number", "_parts", "_queue",
                 "_writing")  # fmt: skip

    def __init__(self, writing: BlockWriting) -> None:
        self._writing = writing
        self._queue: deque[_Queued] = deque()
        self._parts: dict[Hashable, _Queued] = {}
        self._number = 0  # index of the next part
        self._last = -1  # index of the latest part that is content
        self._index = 0  # index of the open or next block
        self._is_finished = False

    @property
    def open_index(self) -> int | None:
        """The index of the open block, if there is one."""
        return self._index if self._writing.stream.state == "within" else None

    @property
    def held_back(self) -> list[int]:
        """The indices of the parts of which something waits for another part to end."""
        return [
            queued.number
            for queued in self._queue
            if queued.waiting or (queued.writer is None and not _is_empty(queued.part))
        ]

    def skip(self) -> int:
        """Count a part that is not written as a block; returns its index."""
        self._last = self._number
        self._number += 1
        return self._last

    def start(self, key: Hashable, part: AnyPart) -> bytes:
        """Start a part."""
        self._add(key, part)
        return self._advance()

    def grow(self, key: Hashable, delta: PartDelta) -> bytes:
        """Add a delta to a part."""
        queued = self._parts.get(key)
        if queued is None:  # not announced by the server: most likely text
            queued = self._add(key, Text(""))
        elif queued.is_over:
            continued = self._continued(queued, delta)
            if continued is None:
                return b""
            queued = self._append(key, continued)
        if delta.signature and queued.before and isinstance(queued.part, Thinking):
            self._lose(queued, _SPLIT)
        if queued.writer is not None and len(self._queue) == 1:
            return queued.writer.grow(self._index, delta)
        queued.waiting.append(delta)
        return self._advance()

    def flow(self, key: Hashable, like: Delta) -> Flow | None:
        """A fast path for deltas of a part, if its block is open and no other part waits."""
        queued = self._parts.get(key)
        if queued is None or queued.is_over or queued.writer is None or len(self._queue) > 1:
            return None
        return queued.writer.flow(self._index, like)

    def stop(self, key: Hashable, final: AnyPart | None) -> bytes:
        """Stop a part."""
        queued = self._parts.get(key)
        if queued is None:
            if final is None:
                return b""
            queued = self._add(key, final)
        if queued.is_over:
            self._report_late_citations(queued, final)
            return self._late_rest(key, queued, final)
        queued.is_stopped = True
        if queued.is_rest and isinstance(final, (Text, Thinking)):  # `final` is the whole part
            self._report_late_citations(queued, final)
            if final.signature and queued.before and isinstance(final, Thinking):
                self._lose(queued, _SPLIT)
            queued.final = type(final)(final.text[queued.before :], signature=final.signature)
        else:
            queued.final = final
        return self._advance()

    def call(self, place: int, head: ToolCall, arguments: str | None) -> bytes:
        """Start or extend a call, whose id and name may come in several deltas (W7, W8)."""
        key = ("call", place)
        queued = self._parts.get(key)
        if queued is None:
            queued = self._add(key, head)
        elif queued.writer is None:
            queued.part = head
        if arguments:
            return self.grow(key, PartDelta(0, arguments))
        return self._advance()

    def finish(self) -> bytes:
        """Write everything that is left."""
        self._is_finished, self._writing.last = True, self._last
        for queued in [each for each in self._queue if each.number == self._last]:
            if self._is_bare_call(queued) and self._writing.is_cut_off:
                self._writing.has_cut_calls = True
                self._lose(queued, LEFT_OUT)
                self._queue.remove(queued)
        for queued in self._queue:
            queued.is_stopped = True
        return self._advance()

    def _add(self, key: Hashable, part: AnyPart) -> _Queued:
        self._number += 1
        if not is_carrier(key):
            self._last = self._number - 1
        return self._append(key, _Queued(self._number - 1, part))

    def _append(self, key: Hashable, queued: _Queued) -> _Queued:
        self._parts[key] = queued
        self._queue.append(queued)
        return queued

    def _advance(self) -> bytes:
        written: list[bytes] = []
        while self._queue:
            first = self._queue[0]
            is_last = len(self._queue) == 1
            is_latest = first.number == self._last and not self._is_finished
            if is_latest and self._is_bare_call(first):
                break
            written.append(self._write(first))
            if (is_last and not first.is_stopped) or not first.may_end:
                break
            if is_latest and first.waits:
                break
            written.append(self._end(first))
        return b"".join(written)

    def _is_bare_call(self, queued: _Queued) -> bool:
        """Like `is_bare_call`, for calls of other dialects."""
        return queued.is_bare_call and not self._writing.is_own(queued.part)

    def _write(self, queued: _Queued) -> bytes:
        """Write the buffered deltas of a part."""
        written = b""
        if queued.writer is None:
            queued.writer = writer_of(queued.part, queued.number, self._writing)
            written = queued.writer.begin(self._index)
        waiting = queued.waiting
        if not waiting:
            return written
        queued.waiting = []
        return written + b"".join([queued.writer.grow(self._index, delta) for delta in waiting])

    def _end(self, queued: _Queued) -> bytes:
        is_open = self.open_index is not None
        written = b"" if queued.writer is None else queued.writer.end(self._index, queued.final)
        self._index += is_open or bool(written)
        self._queue.popleft()  # only the first part in the queue can end
        queued.is_over = True
        return written

    def _continued(self, queued: _Queued, delta: PartDelta) -> _Queued | None:
        """A new block for the rest of a part whose block was closed early for another part."""
        part = queued.part
        if delta.citations:
            self._lose_citations(queued, delta.citations)
        if not isinstance(part, (Text, Thinking)) or not (delta.text or delta.signature):
            if not delta.citations:
                self._lose(queued, "content added to a part after its end is left out")
            return None
        rest = type(part)("", origin=part.origin)
        if isinstance(rest, Thinking) and part.signature is not None:
            rest = rest.replace(signature="")  # as its first block did
        more = _Queued(queued.number, rest)
        more.is_rest = True
        more.before = queued.before + (0 if queued.writer is None else queued.writer.length)
        return more

    def _late_rest(self, key: Hashable, queued: _Queued, final: AnyPart | None) -> bytes:
        """Write the rest of the final text of a part whose block is closed."""
        writer = queued.writer
        if final is not None and type(final) is not type(queued.part):
            self._lose(queued, CORRECTED)
            return b""
        if writer is None or not isinstance(final, (Text, Thinking)):
            return b""
        more = final.text[queued.before + writer.length :]
        return self.grow(key, PartDelta(0, more)) if more else b""

    def _report_late_citations(self, queued: _Queued, final: AnyPart | None) -> None:
        if isinstance(final, Text) and isinstance(queued.writer, TextWriter):
            self._lose_citations(queued, final.citations[queued.writer.cited :])

    def _lose_citations(self, queued: _Queued, citations: tuple[Citation, ...]) -> None:
        """Report citations for a closed block as lost."""
        if isinstance(queued.writer, TextWriter) and queued.writer.cite(citations):
            self._lose(queued, "citations received after the end of their text are left out")

    def _lose(self, queued: _Queued, reason: str) -> None:
        self._writing.part = queued.number
        self._writing.lose_here(reason)
