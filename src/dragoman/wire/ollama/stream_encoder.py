"""Streams of `/api/chat`, written: events become lines of JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
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
from dragoman.model.jsontext import dumps
from dragoman.model.messages import Message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire import overlay
from dragoman.wire.losses import Loss
from dragoman.wire.ollama.assistant import encode_assistant
from dragoman.wire.ollama.exchange import Outgoing
from dragoman.wire.ollama.response import NOTHING, encode_end
from dragoman.wire.ollama.spelling import NAME, is_own, laid
from dragoman.wire.ollama.times import encode_time
from dragoman.wire.ollama.usage import encode_usage

_ASSISTANT = Role.ASSISTANT
_INTERRUPTED = "the stream from the model was interrupted before its end"
_FAILED = "the model failed while it answered"
_MESSAGE = "choices[0].message"


class StreamEncoder:
    """Writes events as lines, text and thinking as they come.

    Calls are whole here (W104), so they wait for the end of their choice. What it cost stands in
    the last line, with the reason for the end.
    """

    def __init__(self) -> None:
        self._start = ResponseStart()
        self._head: dict[str, Any] = {"model": "", "created_at": encode_time(None)}
        self._parts: dict[int, AnyPart] = {}
        self._sent: dict[int, list[str]] = {}
        self._thinking: int | None = None
        self._calls = MessageAccumulator()
        self._has_calls = False
        self._finish: ChoiceFinish | None = None
        self._usage: Usage | None = None
        self._losses: dict[Loss, None] = {}
        self._is_over = False

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far."""
        return list(self._losses)

    def feed(self, event: Event) -> bytes:
        """The bytes to send for an event; empty where there is nothing to send."""
        if self._is_over:
            return b""
        number = getattr(event, "choice", 0)
        if number:
            self._lose(f"choices[{number}]", "there is one choice only")
            return b""
        return _WRITERS[type(event)](self, event)

    def close(self) -> bytes:
        """The bytes to send at the end: none after a proper one, else an error (G1)."""
        if self._is_over:
            return b""
        self._is_over = True
        return _line({"error": _INTERRUPTED})

    # --- one event each

    def write_start(self, event: Any) -> bytes:
        """Nothing yet: what every line begins with."""
        known = self._start
        self._start = known = ResponseStart(
            id=known.id or event.id,
            model=known.model or event.model,
            created_at=known.created_at or event.created_at,
            origin=event.origin or known.origin,
            extras={**known.extras, **event.extras},
        )
        head = {"model": known.model or "", "created_at": encode_time(known.created_at)}
        self._head = laid(head, known.extras)
        if known.id is not None:
            self._lose("id", "responses have no ids here")
        return b""

    def write_part_start(self, event: Any) -> bytes:
        """The beginning of a part."""
        part = event.part
        self._parts[event.index] = part
        if isinstance(part, ToolCall):
            return self._keep(event)
        if isinstance(part, (Text, Thinking)) and part.is_empty:
            return b""
        return self._piece(event.index, part)

    def write_part_delta(self, event: Any) -> bytes:
        """More of a part."""
        part = self._parts.get(event.index)
        if part is None:
            part = self._parts[event.index] = Text("")
        if isinstance(part, ToolCall):
            return self._keep(event)
        grown = _grown(part, event)
        return b"" if grown is None else self._piece(event.index, grown)

    def write_part_stop(self, event: Any) -> bytes:
        """The end of a part, and all of it where nothing of it was seen before."""
        if isinstance(self._parts.get(event.index), ToolCall) or isinstance(event.part, ToolCall):
            return self._keep(event)
        if event.part is None:
            return b""
        if event.index not in self._parts:
            return self.write_part_start(PartStart(event.index, event.part))
        return self._rest(event.index, event.part)

    def write_call(self, event: Any) -> bytes:
        """Nothing yet: a piece of a call waits for the others."""
        return self._keep(event)

    def write_usage(self, event: Any) -> bytes:
        """Nothing yet: the last count is written at the end."""
        self._usage = event.usage
        return b""

    def write_finish(self, event: Any) -> bytes:
        """The calls; the reason waits for the end."""
        self._finish = event
        return self._write_calls()

    def write_error(self, event: Any) -> bytes:
        """An error is the last thing to be said."""
        self._is_over = True
        mine = overlay.overlay(event.extras, NAME)
        return _line(dict(mine) if mine else {"error": event.message or _FAILED})

    def write_opaque(self, _event: Any) -> bytes:
        """No event is opaque here: it is of another dialect."""
        self._lose("events", "an event of another dialect is left out")
        return b""

    def write_end(self, _event: Any) -> bytes:
        """The last line: why it ended, and what it cost."""
        written = self._write_calls()
        self._is_over = True
        finish = self._finish or ChoiceFinish(FinishReason.STOP)
        out = Outgoing(is_response=True)
        is_ours = is_own(self._start.origin)
        message = dict(NOTHING)
        if is_ours:
            message = laid(message, finish.message_extras)
        body = {**self._head, "message": message, "done": True}
        body |= encode_end(finish, out, is_ours=is_ours)
        if self._usage is not None:
            body |= encode_usage(self._usage)
        self._take_losses(out)
        return written + _line(body)

    # --- lines

    def _keep(self, event: Event) -> bytes:
        self._calls.add(event)
        self._has_calls = True
        return b""

    def _write_calls(self) -> bytes:
        if not self._has_calls:
            return b""
        calls, self._calls, self._has_calls = self._calls, MessageAccumulator(), False
        finish = self._finish
        is_cut_off = finish is not None and finish.finish.is_cut_off
        return self._said(calls.message.tool_calls, is_cut_off=is_cut_off)

    def _piece(self, index: int, part: AnyPart) -> bytes:
        """A piece of a part; another provider's thoughts stand on lines of their own."""
        if type(part) is Text:
            self._sent.setdefault(index, []).append(part.text)
        if type(part) is Text and not (part.citations or part.cache or part.signature):
            return self._message({"role": "assistant", "content": part.text})
        if isinstance(part, Thinking) and part.text and self._thinking != index:
            is_first, self._thinking = self._thinking is None, index
            if not is_first and not is_own(part.origin or self._start.origin):
                part = part.replace(text=f"\n{part.text}")
        return self._said((part,), index)

    def _rest(self, index: int, final: AnyPart) -> bytes:
        """What the final word on a text adds to its pieces (W26); it can't take any back."""
        if type(final) is not Text:
            return b""
        sent = "".join(self._sent.get(index, ()))
        if final.text.startswith(sent):
            rest = final.text[len(sent) :]
            return self._piece(index, Text(rest)) if rest else b""
        self._lose(f"{_MESSAGE}.parts[{index}]", "what was corrected at the end had been sent")
        return b""

    def _said(
        self, parts: tuple[AnyPart, ...], index: int = 0, *, is_cut_off: bool = False
    ) -> bytes:
        """Parts as a message of their own would have them."""
        out = Outgoing(is_response=True, is_cut_off=is_cut_off)
        message = Message(_ASSISTANT, parts, origin=self._start.origin)
        body = encode_assistant(message, out, _MESSAGE)
        self._take_losses(out, index)
        return b"" if body is None else self._message(body)

    def _message(self, message: dict[str, Any]) -> bytes:
        return _line({**self._head, "message": message, "done": False})

    def _take_losses(self, out: Outgoing, index: int = 0) -> None:
        for loss in out.losses:
            self._lose(loss.path.replace(".parts[0]", f".parts[{index}]"), loss.reason)

    def _lose(self, path: str, reason: str) -> None:
        self._losses.setdefault(Loss(path, reason))


def _line(body: dict[str, Any]) -> bytes:
    return dumps(body) + b"\n"


def _grown(part: AnyPart, event: PartDelta) -> AnyPart | None:
    """What a part grows by, as a part; None where that is nothing that could be said."""
    if isinstance(part, Text):
        piece = Text(event.text or "", event.citations, signature=event.signature)
        return piece if piece.text or piece.citations or piece.signature else None
    if isinstance(part, Thinking):
        piece_of = Thinking(
            event.text or "", event.data, part.form, signature=event.signature, origin=part.origin
        )
        return None if piece_of.is_empty else piece_of
    if isinstance(part, Refusal) and event.text:
        return Refusal(event.text, origin=part.origin)
    return None


_WRITERS: dict[type, Callable[[StreamEncoder, Any], bytes]] = {
    ResponseStart: StreamEncoder.write_start,
    PartStart: StreamEncoder.write_part_start,
    PartDelta: StreamEncoder.write_part_delta,
    PartStop: StreamEncoder.write_part_stop,
    ToolCallDelta: StreamEncoder.write_call,
    UsageUpdate: StreamEncoder.write_usage,
    ChoiceFinish: StreamEncoder.write_finish,
    StreamError: StreamEncoder.write_error,
    OpaqueEvent: StreamEncoder.write_opaque,
    ResponseEnd: StreamEncoder.write_end,
}
