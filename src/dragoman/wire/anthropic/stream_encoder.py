"""Streams, written: our events become server-sent ones.

The grammar (W66): one message, its blocks one after the other, their numbers counting up. Events
of other dialects may interleave parts, so they queue: the first in the queue is written as it
comes, the others are kept until it is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.ids import new_id
from dragoman.model.messages import make_message
from dragoman.model.parts import Citation, Refusal, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.dialect import NAME, TARGET, Block, is_ours
from dragoman.wire.anthropic.response import (
    encode_response,
    encode_stream_error,
    encode_usage,
    finish_beside_calls,
    is_usage,
)
from dragoman.wire.anthropic.stream import EVENTS
from dragoman.wire.anthropic.stream_block_writers import (
    MESSAGE_STOP,
    BlockWriter,
    TextWriter,
    frame,
    writer_of,
)
from dragoman.wire.anthropic.stream_blocks import KNOWN_DELTAS, TEXT_DELTAS
from dragoman.wire.framing import is_event_name
from dragoman.wire.lane.flows import Delta, Flow
from dragoman.wire.stream_encoding import CORRECTED, EventEncoder
from dragoman.wire.writing import Writing

_AT_START = frozenset({"type", "role", "id", "model", "content", "usage"})
_BESIDE_DELTA = frozenset({"context_management", "input_transformations"})
"""Fields of the message that `message_delta` has beside its `delta`."""


class StreamEncoder(EventEncoder):
    """Writes one message and its blocks."""

    _dialect = NAME

    def __init__(self) -> None:
        self._writing = Writing(TARGET, place="choices[0].message.parts[{1}]", is_response=True)
        super().__init__(self._writing)
        self._queue = BlockQueue(self._writing)
        self._begun: Block | None = None  # the message as it was sent at the start
        self._refusals: dict[int, list[str]] = {}
        self._calls = MessageAccumulator()  # tells which call a delta belongs to
        self._has_calls = False

    # --- the message

    def _started(self, event: events.ResponseStart) -> bytes:
        self._calls.add(event)
        start = self._start
        self._writing.origin = start.origin
        # Our own decoder tells the usage next, which belongs into the message; others tell it at
        # the end, and nobody should wait for that (G3). Azure's preamble tells nothing, and some
        # servers' first chunk half of it: the first part, if not a second start, ends the waiting.
        is_enough = bool(start.id and start.model) and not is_ours(event.origin)
        return self._message_start() if is_enough else b""

    def _usage_update(self, event: events.UsageUpdate) -> bytes:
        return super()._usage_update(event) + self._message_start()

    def _message_start(self) -> bytes:
        if self._begun is not None:
            return b""
        self._begun = body = _well_formed(encode_response(self._response(())).body)
        if body["id"] is not self._start.id:
            self._start = self._start.replace(id=body["id"])
        return frame("message_start", message=body)

    def _response(self, choices: tuple[Choice, ...]) -> Response:
        """What is known beside the content."""
        start = self._start
        return Response(
            choices=choices, usage=self._usage, model=start.model, id=start.id, extras=start.extras
        )

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        return super()._choice_finish(event) + self._message_start()

    def _end(self) -> bytes:
        return self._message_start() + self._queue.finish() + self._message_delta() + MESSAGE_STOP

    def _message_delta(self) -> bytes:
        encoded = encode_response(self._response((self._choice(),)))
        self._note(encoded.losses, encoded.repairs)
        begun = self._begun or {}
        told = encoded.body
        usage = _usage(told)
        late = {
            key: value
            for key, value in told.items()
            if key not in _AT_START and (key not in begun or begun[key] != value)
        }
        beside = {key: late.pop(key) for key in _BESIDE_DELTA & late.keys()}
        delta = {"stop_reason": told.get("stop_reason"),
                 "stop_sequence": told.get("stop_sequence"), **late}  # fmt: skip
        return frame("message_delta", delta=delta, usage=usage, **beside)

    def _choice(self) -> Choice:
        """The choice without its content; the words of a refusal stand beside that here."""
        refusals = tuple(Refusal("".join(words)) for words in self._refusals.values())
        message = make_message(Role.ASSISTANT, refusals, origin=self._start.origin)
        end = self._finish
        if end is None:
            return Choice(0, message)
        finish: FinishReason | None = end.finish
        if end.finish_raw is None or not is_ours(self._start.origin):
            finish = finish_beside_calls(finish, self._has_calls)
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

    # --- what else there is

    def _error(self, error: events.StreamError) -> bytes:
        return frame("error", **encode_stream_error(error))

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
    """The start of a message, with what clients count on, whatever the wire had there."""
    body |= {"type": "message", "role": "assistant", "content": [], "stop_reason": None}
    body["usage"] = _usage(body)
    if not isinstance(body["id"], str):
        body["id"] = new_id()
    if not isinstance(body["model"], str):
        body["model"] = ""
    return body


def _usage(body: Block) -> Block:
    """The usage, never null: W69."""
    usage: Any = body.get("usage")
    return usage if is_usage(usage) else encode_usage(Usage())


def _is_unknown(payload: Block) -> bool:
    """Whether a delta is of a type that nobody knows, or says only what nobody knows.

    The others come where they fit.
    """
    delta = payload.get("delta")
    kind = delta.get("type") if isinstance(delta, dict) else None
    if not isinstance(delta, dict) or type(kind) is not str:
        return False
    return kind not in KNOWN_DELTAS or delta.get(TEXT_DELTAS.get(kind, "")) == ""


# --- the blocks that have begun and are not done: one is written, the others wait


class _Queued:
    """A part on its way."""

    writer: BlockWriter | None = None  # once it is its turn
    final: AnyPart | None = None
    has_head = True  # or its id and name may still be on their way
    is_stopped = is_over = False
    is_rest = False  # of a part whose block had to end before
    before = 0  # characters of it that are in that block

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.waiting: list[PartDelta] = []

    @property
    def may_end(self) -> bool:
        """Whether its block may end when another part has begun."""
        return self.is_stopped or (self.writer is not None and self.writer.may_end)


class BlockQueue:
    """Writes parts as blocks, one at a time (W66)."""

    __slots__ = ("_index", "_is_open", "_number", "_parts", "_queue", "_writing")

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._queue: deque[_Queued] = deque()
        self._parts: dict[Hashable, _Queued] = {}
        self._number = 0  # of the next part
        self._index = 0  # of the block that is open, or will be next
        self._is_open = False

    @property
    def open_index(self) -> int | None:
        """The number of the open block, if there is one."""
        return self._index if self._is_open else None

    def skip(self) -> int:
        """Count a part that is no block: its number."""
        self._number += 1
        return self._number - 1

    def start(self, key: Hashable, part: AnyPart) -> bytes:
        """A part begins."""
        self._add(key, part)
        return self._advance()

    def grow(self, key: Hashable, delta: PartDelta) -> bytes:
        """A part grows."""
        queued = self._parts.get(key)
        if queued is None:  # a server that forgot to announce it: text is the likeliest
            queued = self._add(key, Text(""))
        elif queued.is_over:
            continued = self._continued(queued, delta)
            if continued is None:
                return b""
            queued = self._append(key, continued)
        if queued.writer is not None and len(self._queue) == 1:
            return queued.writer.grow(self._index, delta)
        queued.waiting.append(delta)
        return self._advance()

    def flow(self, key: Hashable, like: Delta) -> Flow | None:
        """How more of a part is written, if its block is the open one and no other waits."""
        queued = self._parts.get(key)
        if queued is None or queued.is_over or queued.writer is None or len(self._queue) > 1:
            return None
        return queued.writer.flow(self._index, like)

    def stop(self, key: Hashable, final: AnyPart | None) -> bytes:
        """A part is done."""
        queued = self._parts.get(key)
        if queued is None:
            if final is None:
                return b""
            queued = self._add(key, final)
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
            queued = self._add(key, head)
            queued.has_head = False
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

    def _add(self, key: Hashable, part: AnyPart) -> _Queued:
        self._number += 1
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
            if is_last and not first.has_head and not first.is_stopped:
                break
            written.append(self._write(first))
            if not first.may_end or (is_last and not first.is_stopped):
                break
            written.append(self._end(first))
        return b"".join(written)

    def _write(self, queued: _Queued) -> bytes:
        """What has been waiting."""
        written = b""
        if queued.writer is None:
            queued.writer = writer_of(queued.part, queued.number, self._writing)
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
        rest = type(part)("", origin=part.origin)
        if isinstance(rest, Thinking) and part.signature is not None:
            rest = rest.replace(signature="")  # as its first block began
        more = _Queued(queued.number, rest)
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
        if isinstance(final, Text) and isinstance(queued.writer, TextWriter):
            self._note_late(queued, final.citations[queued.writer.cited :])

    def _note_late(self, queued: _Queued, citations: tuple[Citation, ...]) -> None:
        """Citations for a block that is closed: those that had a place are lost as well."""
        if isinstance(queued.writer, TextWriter) and queued.writer.cite(citations):
            self._lose(queued, "citations that came after the end of their text are left out")

    def _lose(self, queued: _Queued, reason: str) -> None:
        self._writing.part = queued.number
        self._writing.lose_here(reason)
