"""Stream encoder: canonical events to server-sent events.

The format (W66): one message, with blocks one after the other, numbered consecutively. Other
dialects may interleave parts, so parts are queued: the first in the queue is written as it comes,
the others are buffered until it is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

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
from dragoman.wire.anthropic.dialect import NAME, is_own
from dragoman.wire.anthropic.dialect import Block as Wire
from dragoman.wire.anthropic.response import (
    encode_body,
    encode_stream_error,
    encode_usage,
    finish_beside_calls,
    report_losses,
)
from dragoman.wire.anthropic.stream import EVENTS, GROWING
from dragoman.wire.anthropic.stream_blocks import Block, BlockWriting, frame
from dragoman.wire.cut_calls import LEFT_OUT, finish_beside
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

    def __init__(self, writing: BlockWriting | None = None) -> None:
        """`writing`: for clients that expect all fields, or another order."""
        self._writing = BlockWriting() if writing is None else writing
        super().__init__(self._writing)
        self._blocks: dict[Hashable, Block] = {}
        self._queue: deque[Block] = deque()  # those that are unfinished: the first one is written
        self._number = 0  # index of the next part
        self._last = -1  # index of the latest part that is content
        self._is_ending = False
        self._begun: Wire | None = None  # the message as sent in `message_start`
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
        body |= {"type": "message", "role": "assistant", "content": [], "stop_reason": None,
                 "usage": self._sent_usage(body)}  # fmt: skip
        if not isinstance(body["id"], str):
            body["id"] = new_id()
        if not isinstance(body["model"], str):
            body["model"] = ""
        self._begun = body = self._head(body)
        if body["id"] is not self._start.id:
            self._start = self._start.replace(id=body["id"])
        return self._writing.send("message_start", message=body)

    def _sent_usage(self, body: Wire) -> Wire:
        """The usage, never null (W69)."""
        return encode_usage(Usage()) if self._usage is None else body["usage"]

    def _head(self, body: Wire) -> Wire:
        """The message of `message_start`."""
        return body

    def _tail(self, delta: Wire, usage: Wire) -> Wire:
        """The fields of `message_delta`."""
        return {"delta": delta, "usage": usage}

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        self._writing.is_cut_off = event.finish.is_cut_off
        return super()._choice_finish(event) + self._message_start()

    def _end(self) -> bytes:
        return self._message_start() + self._finished() + self._message_delta()

    def _message_delta(self) -> bytes:
        choice = self._choice()
        report_losses(choice, self._writing)
        sent = encode_body(self._start, self._usage, choice, [])
        begun = self._begun or {}
        usage = self._sent_usage(sent)
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
            self._last = self._number
            self._number += 1
            return begun
        self._has_calls = self._has_calls or isinstance(event.part, ToolCall)
        self._add(event.index, event.part)
        return begun + self._advance()

    def _part_delta(self, event: PartDelta) -> bytes:
        begun = self._message_start()
        if event.index in self._refusals:
            self._refusals[event.index].append(event.text or "")
            return begun
        return begun + self._grow(event.index, event)

    def _part_stop(self, event: events.PartStop) -> bytes:
        begun = self._message_start()
        if event.index not in self._refusals:
            return begun + self._stop(event.index, event.part)
        if isinstance(event.part, Refusal):
            self._refusals[event.index] = [event.part.text]
        elif event.part is not None:
            self._add(("corrected", event.index), event.part)
            begun += self._advance()
        return begun

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        """Start or extend a call, whose id and name may come in several deltas (W7, W8)."""
        begun = self._message_start()
        place, call = self._calls.add_call(event)
        self._has_calls = True
        key = ("call", place)
        block = self._blocks.get(key)
        if block is None:
            self._add(key, call)
        elif block.mode == "waiting":
            block.part = call
        if event.arguments_delta:
            return begun + self._grow(key, PartDelta(0, event.arguments_delta))
        return begun + self._advance()

    def _part_flow(self, event: PartDelta) -> Flow | None:
        return None if event.index in self._refusals else self._flow(event.index, event)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        kept = self._calls.texts_of(event)
        flow = self._flow(("call", self._calls.place_of(event)), event)
        return flow.beside(*kept) if flow is not None and kept else None

    # --- its blocks: one at a time (W66)

    def _add(self, key: Hashable, part: AnyPart) -> Block:
        self._number += 1
        if not is_carrier(key):
            self._last = self._number - 1
        return self._append(key, Block(self._number - 1, part, self._writing))

    def _append(self, key: Hashable, block: Block) -> Block:
        self._blocks[key] = block
        self._queue.append(block)
        return block

    def _grow(self, key: Hashable, delta: PartDelta) -> bytes:
        block = self._blocks.get(key)
        if block is None:  # not announced by the server: most likely text
            block = self._add(key, Text(""))
        elif block.is_over:
            rest = self._rest_of(block, delta)
            if rest is None:
                return b""
            block = self._append(key, rest)
        if delta.signature and block.before and isinstance(block.part, Thinking):
            block.lose(_SPLIT)
        if block.mode != "waiting" and len(self._queue) == 1:
            return block.grow(delta)
        block.waiting.append(delta)
        return self._advance()

    def _flow(self, key: Hashable, like: Delta) -> Flow | None:
        """A fast path for deltas of a part, if its block is open and no other part waits."""
        block = self._blocks.get(key)
        is_only = block is not None and not block.is_over and len(self._queue) == 1
        return block.flow(like) if is_only and block is not None else None

    def _stop(self, key: Hashable, final: AnyPart | None) -> bytes:
        block = self._blocks.get(key)
        if block is None:
            if final is None:
                return b""
            block = self._add(key, final)
        if block.is_over:
            self._lose_late_citations(block, final)
            return self._late_rest(key, block, final)
        block.is_stopped, block.final = True, final
        if block.is_rest and isinstance(final, (Text, Thinking)):  # `final` is the whole part
            self._lose_late_citations(block, final)
            if final.signature and block.before and isinstance(final, Thinking):
                block.lose(_SPLIT)
            block.final = type(final)(final.text[block.before :], signature=final.signature)
        return self._advance()

    def _finished(self) -> bytes:
        """Write everything that is left."""
        self._is_ending, self._writing.last = True, self._last
        for block in list(self._queue):
            if block.number == self._last and block.is_bare_call and self._writing.is_cut_off:
                self._writing.has_cut_calls = True
                block.lose(LEFT_OUT)
                self._queue.remove(block)
            block.is_stopped = True
        return self._advance()

    def _advance(self) -> bytes:
        """Write what can be written now of the first part, and if it is over, of the next."""
        written = b""
        while self._queue:
            block = self._queue[0]
            is_latest = block.number == self._last and not self._is_ending
            if block.mode == "waiting":
                if is_latest and block.is_bare_call:
                    break
                written += block.begin()
            waiting, block.waiting = block.waiting, []
            for delta in waiting:
                written += block.grow(delta)
            is_only = len(self._queue) == 1 and not block.is_stopped
            if is_only or not block.may_end or (is_latest and block.waits):
                break
            written += block.end()
            self._queue.popleft()
            block.is_over = True
        return written

    @property
    def _open_index(self) -> int | None:
        """The index of the open block, if there is one."""
        return self._writing.index if self._writing.stream.state == "within" else None

    def _rest_of(self, block: Block, delta: PartDelta) -> Block | None:
        """A new block for the rest of a part whose block was closed early for another part."""
        part = block.part
        if delta.citations:
            self._lose_citations(block, delta.citations)
        if not isinstance(part, (Text, Thinking)) or not (delta.text or delta.signature):
            if not delta.citations:
                block.lose("content added to a part after its end is left out")
            return None
        rest = type(part)("", origin=part.origin)
        if isinstance(rest, Thinking) and part.signature is not None:
            rest = rest.replace(signature="")  # as its first block did
        return Block(block.number, rest, self._writing, block.before + block.length)

    def _late_rest(self, key: Hashable, block: Block, final: AnyPart | None) -> bytes:
        """Write the rest of the final text of a part whose block is closed."""
        if final is not None and type(final) is not type(block.part):
            block.lose(CORRECTED)
        elif isinstance(final, (Text, Thinking)):
            more = final.text[block.before + block.length :]
            return self._grow(key, PartDelta(0, more)) if more else b""
        return b""

    def _lose_late_citations(self, block: Block, final: AnyPart | None) -> None:
        if isinstance(final, Text) and block.is_text:
            self._lose_citations(block, final.citations[block.cited :])

    def _lose_citations(self, block: Block, citations: tuple[Citation, ...]) -> None:
        """Report citations for a closed block as lost."""
        if block.is_text and block.cite(citations):
            block.lose("citations received after the end of their text are left out")

    # --- errors and unknown events

    def _error(self, error: events.StreamError) -> bytes:
        return self._writing.send("error", **encode_stream_error(error))

    def _held_back(self) -> Iterable[Loss]:
        usage = () if self._usage is self._begun_usage else super()._held_back()
        unsent = [
            block.number
            for block in self._queue
            if block.waiting or (block.mode in ("waiting", "whole") and not _is_empty(block.part))
        ]
        numbers = [*self._refusals, *unsent]
        parts = [Loss(f"choices[0].message.parts[{n}]", HELD_BACK) for n in numbers]
        return [*usage, *parts]

    def _opaque(self, payload: Wire) -> bytes | None:
        kind, index = payload.get("type"), self._open_index
        if type(kind) is not str or not is_event_name(kind):
            return None
        if kind not in EVENTS:
            return self._message_start() + frame(**payload)
        if kind == "content_block_delta" and index is not None and _is_unknown(payload):
            return frame(kind, index=index, delta=payload["delta"])
        return None


def _is_unknown(payload: Wire) -> bool:
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
