"""Streams, from our events to server-sent ones.

The grammar (W66): one message, its blocks one after the other, their numbers counting up. Events
of other dialects may interleave parts, so they queue: the first in the queue is written as it
comes, the others are kept until it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dragoman.model.accumulate import MessageAccumulator
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
from dragoman.model.ids import new_id
from dragoman.model.messages import make_message
from dragoman.model.parts import Refusal
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic import stream_frames as frames
from dragoman.wire.anthropic.block_queue import BlockQueue
from dragoman.wire.anthropic.context import NAME, Block, Encoding, is_ours
from dragoman.wire.anthropic.response import encode_response, told_finish
from dragoman.wire.anthropic.stream_blocks import KNOWN_DELTAS, TEXT_DELTAS
from dragoman.wire.anthropic.stream_errors import INTERRUPTED, encode_stream_error
from dragoman.wire.anthropic.usage import decode_usage, encode_usage
from dragoman.wire.framing import is_event_name
from dragoman.wire.losses import Loss, Repair

_GRAMMAR = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop", "error",
})  # fmt: skip
_AT_START = frozenset({"type", "role", "id", "model", "content", "usage"})
_BESIDE_DELTA = frozenset({"context_management", "input_transformations"})
"""Fields of the message that `message_delta` has beside its `delta`."""


class StreamEncoder:
    """Writes one response as a stream; `feed` gives the bytes to send now."""

    def __init__(self) -> None:
        self._context = Encoding("choices[0].message.parts[{1}]")
        self._queue = BlockQueue(self._context)
        self._start = ResponseStart()
        self._begun: Block | None = None  # the message as it was sent at the start
        self._usage: Usage | None = None
        self._finish: ChoiceFinish | None = None
        self._refusals: dict[int, list[str]] = {}
        self._calls = MessageAccumulator()  # tells which call a delta belongs to
        self._has_calls = False
        self._lost: set[tuple[str, str]] = set()
        self._is_over = False

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        return list(dict.fromkeys(self._context.repairs))

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far."""
        return list(dict.fromkeys(self._context.losses))

    def feed(self, event: Event) -> bytes:
        """What to send for an event; nothing, where more has to come first."""
        if self._is_over:
            self._lose_once("events", "what comes after the end of a message is left out")
            return b""
        if getattr(event, "choice", 0):
            self._lose_once(f"choices[{event.choice}]", "there is one choice only")  # type: ignore[union-attr]  # it has one
            return b""
        return self._HANDLERS[type(event)](self, event)

    def close(self) -> bytes:
        """What to send when no more events come: an error, if the answer is not complete (G1)."""
        return b"" if self._is_over else self._stream_error(INTERRUPTED)

    def _lose_once(self, path: str, reason: str) -> None:
        if (path, reason) not in self._lost:
            self._lost.add((path, reason))
            self._context.lose_at(path, reason)

    # --- the message

    def _response_start(self, event: ResponseStart) -> bytes:
        self._start = self._start.filled(event)
        self._calls.add(event)
        self._context.origin = self._start.origin
        # Our own decoder tells the usage next, which belongs into the message; others tell it at
        # the end, and nobody should wait for that (G3). Azure's preamble tells nothing, and some
        # servers' first chunk half of it: the first part, if not a second start, ends the waiting.
        start = self._start
        is_enough = bool(start.id and start.model) and not is_ours(event.origin)
        return self._message_start() if is_enough else b""

    def _usage_update(self, event: UsageUpdate) -> bytes:
        self._usage = event.usage
        return self._message_start()

    def _message_start(self) -> bytes:
        if self._begun is not None:
            return b""
        body = _well_formed(encode_response(self._response(())).body)
        self._begun = body
        self._start = self._start.replace(id=body["id"])
        return frames.message_start(body)

    def _response(self, choices: tuple[Choice, ...]) -> Response:
        """What is known beside the content."""
        start = self._start
        return Response(
            choices=choices, usage=self._usage, model=start.model, id=start.id, extras=start.extras
        )

    def _choice_finish(self, event: ChoiceFinish) -> bytes:
        self._finish = event
        return self._message_start()

    def _response_end(self, _event: ResponseEnd) -> bytes:
        written = self._message_start() + self._queue.finish() + self._message_delta()
        self._is_over = True
        return written + frames.MESSAGE_STOP

    def _message_delta(self) -> bytes:
        encoded = encode_response(self._response((self._choice(),)))
        self._context.losses += encoded.losses
        self._context.repairs += encoded.repairs
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
        return frames.event("message_delta", delta=delta, usage=usage, **beside)

    def _choice(self) -> Choice:
        """The choice without its content; the words of a refusal stand beside that here."""
        refusals = tuple(Refusal("".join(words)) for words in self._refusals.values())
        message = make_message(Role.ASSISTANT, refusals, origin=self._start.origin)
        end = self._finish
        if end is None:
            return Choice(0, message)
        finish: FinishReason | None = end.finish
        if end.finish_raw is None or not is_ours(self._start.origin):
            finish = told_finish(finish, self._has_calls)
        return Choice(0, message, finish, end.finish_raw, end.logprobs)

    # --- its parts

    def _part_start(self, event: PartStart) -> bytes:
        begun = self._message_start()
        if isinstance(event.part, Refusal):
            self._refusals[event.index] = [event.part.text]
            self._queue.skip()
            return begun
        self._has_calls = self._has_calls or isinstance(event.part, ToolCall)
        return begun + self._queue.start(event.index, event.part)

    def _part_delta(self, event: PartDelta) -> bytes:
        begun = b"" if self._begun is not None else self._message_start()
        if event.index in self._refusals:
            self._refusals[event.index].append(event.text or "")
            return begun
        return begun + self._queue.grow(event.index, event)

    def _part_stop(self, event: PartStop) -> bytes:
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

    # --- what else there is

    def _stream_error(self, event: StreamError) -> bytes:
        self._is_over = True
        return frames.event("error", **encode_stream_error(event))

    def _opaque_event(self, event: OpaqueEvent) -> bytes:
        payload = event.payload
        kind = payload.get("type") if isinstance(payload, dict) else None
        if event.dialect == NAME and type(kind) is str and is_event_name(kind):
            index = self._queue.open_index
            if kind not in _GRAMMAR:
                return self._message_start() + frames.event(**payload)
            if kind == "content_block_delta" and index is not None and _is_unknown(payload):
                return frames.event(kind, index=index, delta=payload["delta"])
        self._lose_once("events", "an event that has no place here is left out")
        return b""

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], bytes]]] = {
        ResponseStart: _response_start,
        PartStart: _part_start,
        PartDelta: _part_delta,
        PartStop: _part_stop,
        ToolCallDelta: _tool_call_delta,
        UsageUpdate: _usage_update,
        ChoiceFinish: _choice_finish,
        StreamError: _stream_error,
        OpaqueEvent: _opaque_event,
        ResponseEnd: _response_end,
    }


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
    return usage if decode_usage(usage) is not None else encode_usage(Usage())


def _is_unknown(payload: Block) -> bool:
    """Whether a delta is of a type that nobody knows, or says only what nobody knows.

    The others come where they fit.
    """
    delta = payload.get("delta")
    kind = delta.get("type") if isinstance(delta, dict) else None
    if not isinstance(delta, dict) or type(kind) is not str:
        return False
    return kind not in KNOWN_DELTAS or delta.get(TEXT_DELTAS.get(kind, "")) == ""
