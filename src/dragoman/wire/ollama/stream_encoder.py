"""Streams of `/api/chat`, written: events become lines of JSON."""

from __future__ import annotations

import re
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
from dragoman.model.messages import make_message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire import overlay
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.ollama.assistant import encode_assistant
from dragoman.wire.ollama.exchange import Outgoing
from dragoman.wire.ollama.response import NOTHING, encode_end
from dragoman.wire.ollama.spelling import NAME, is_object, is_own, laid
from dragoman.wire.ollama.times import encode_time
from dragoman.wire.ollama.usage import encode_usage
from dragoman.wire.streams import CORRECTED, unsent

_ASSISTANT = Role.ASSISTANT
_PART = re.compile(r"(?<=\.parts\[)\d+")
_INTERRUPTED = "the stream from the model was interrupted before its end"
_FAILED = "the model failed while it answered"
_MESSAGE = "choices[0].message"
_TOLD = (Text, Thinking, Refusal)


class _Growing:
    """A part on its way: its number in the message, and what was said of it."""

    __slots__ = ("cited", "is_sealed", "number", "part", "pieces")

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.pieces: list[str] = []
        self.cited = 0
        self.is_sealed = False


class StreamEncoder:
    """Writes events as lines, text and thinking as they come.

    Calls are whole here (W104), so they wait for the end. What it cost stands in the last line,
    with the reason for the end.
    """

    def __init__(self) -> None:
        self._start = ResponseStart()
        self._head: dict[str, Any] = {"model": "", "created_at": encode_time(None)}
        self._parts: dict[int, _Growing] = {}
        self._count = 0  # the parts so far
        self._thinking: int | None = None
        self._calls = MessageAccumulator()
        self._call_numbers: list[int] = []
        self._finish: ChoiceFinish | None = None
        self._usage: Usage | None = None
        self._losses: dict[Loss, None] = {}
        self._repairs: dict[Repair, None] = {}
        self._is_over = False

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        return list(self._repairs)

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
        self._start = known = self._start.filled(event)
        self._calls.add(event)
        head = {"model": known.model or "", "created_at": encode_time(known.created_at)}
        self._head = laid(head, known.extras)
        if known.id is not None:
            self._lose("id", "responses have no ids here")
        return b""

    def write_part_start(self, event: Any) -> bytes:
        """The beginning of a part."""
        part = event.part
        growing = self._begun(event.index, part)
        if isinstance(part, ToolCall):
            self._call_numbers.append(growing.number)
            return self._keep(event)
        return self._piece(growing, part)

    def _begun(self, index: int, part: AnyPart) -> _Growing:
        growing = self._parts[index] = _Growing(self._numbered(), part)
        return growing

    def _numbered(self) -> int:
        self._count += 1
        return self._count - 1

    def write_part_delta(self, event: Any) -> bytes:
        """More of a part."""
        growing = self._parts.get(event.index)
        if growing is None:
            growing = self._begun(event.index, Text(""))
        if isinstance(growing.part, ToolCall):
            return self._keep(event)
        grown = _grown(growing.part, event)
        return b"" if grown is None else self._piece(growing, grown)

    def write_part_stop(self, event: Any) -> bytes:
        """The end of a part, and all of it where nothing of it was seen before."""
        growing, final = self._parts.get(event.index), event.part
        if growing is None:
            return b"" if final is None else self.write_part_start(PartStart(event.index, final))
        if final is not None and type(final) is not type(growing.part):
            self._lose(f"{_MESSAGE}.parts[{growing.number}]", CORRECTED)
            return b""
        if isinstance(growing.part, ToolCall):
            return self._keep(event)
        return b"" if final is None else self._rest(growing, final)

    def write_call(self, event: Any) -> bytes:
        """Nothing yet: a piece of a call waits for the others."""
        if self._calls.resolved(event).index == len(self._call_numbers):
            self._call_numbers.append(self._numbered())
        return self._keep(event)

    def write_usage(self, event: Any) -> bytes:
        """Nothing yet: the last count is written at the end."""
        self._usage = event.usage
        return b""

    def write_finish(self, event: Any) -> bytes:
        """Nothing yet: the reason waits for the end."""
        self._finish = event
        return b""

    def write_error(self, event: Any) -> bytes:
        """An error is the last thing to be said."""
        self._is_over = True
        mine = overlay.overlay(event.extras, NAME)
        return _line(dict(mine) if mine else {"error": event.message or _FAILED})

    def write_opaque(self, event: Any) -> bytes:
        """A line that nobody could read; events of other dialects have no place here."""
        if event.dialect == NAME and is_object(event.payload):
            return _line(event.payload)
        self._lose("events", "an event of another dialect is left out")
        return b""

    def write_end(self, _event: Any) -> bytes:
        """The last line: why it ended, and what it cost."""
        written = self._write_calls()
        self._settle_thoughts()
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
        for loss in out.losses:
            self._lose(loss.path, loss.reason)
        return written + _line(body)

    # --- lines

    def _keep(self, event: Event) -> bytes:
        self._calls.add(event)
        return b""

    def _write_calls(self) -> bytes:
        if not self._call_numbers:
            return b""
        finish = self._finish
        is_cut_off = finish is not None and finish.finish.is_cut_off
        calls = self._calls.message.tool_calls
        return self._said(calls, self._call_numbers, is_cut_off=is_cut_off)

    def _settle_thoughts(self) -> None:
        """What of thinking was not shown is known at the end: its text may come after its seal."""
        for growing in self._parts.values():
            part = growing.part
            if isinstance(part, Thinking) and (growing.is_sealed or not growing.pieces):
                text = "".join(growing.pieces)
                signature = "" if growing.is_sealed else None
                whole = Thinking(text, signature=signature, origin=part.origin)
                self._said((whole,), [growing.number])

    def _piece(self, growing: _Growing, part: AnyPart) -> bytes:
        """A piece of a part; another provider's thoughts stand on lines of their own."""
        number = [growing.number]
        if isinstance(part, Text):
            growing.pieces.append(part.text)
            growing.cited += len(part.citations)
            if part.citations or part.cache or part.signature:
                written = self._said((part,), number)
                return written if part.text else b""
            return self._message({"role": "assistant", "content": part.text}) if part.text else b""
        if isinstance(part, Thinking):
            growing.is_sealed |= part.signature is not None or part.data is not None
            return self._thought(growing, part) if part.text else b""
        if isinstance(part, Refusal):
            growing.pieces.append(part.text)
        return self._said((part,), number)

    def _thought(self, growing: _Growing, part: Thinking) -> bytes:
        growing.pieces.append(part.text)
        text, number = part.text, growing.number
        if self._thinking != number:
            is_first, self._thinking = self._thinking is None, number
            if not is_first and not is_own(part.origin or self._start.origin):
                text = f"\n{text}"
        return self._message({"role": "assistant", "content": "", "thinking": text})

    def _rest(self, growing: _Growing, final: AnyPart) -> bytes:
        """What the final word on a part adds to its pieces (W26); it can't take any back."""
        if not isinstance(final, _TOLD):
            return b""
        more = unsent(growing.pieces, final.text)
        if more is None:
            self._lose(f"{_MESSAGE}.parts[{growing.number}]", CORRECTED)
        rest = final.replace(text=more or "")
        if isinstance(rest, Text):
            rest = rest.replace(citations=rest.citations[growing.cited :])
        return b"" if isinstance(rest, Refusal) and not rest.text else self._piece(growing, rest)

    def _said(
        self, parts: tuple[AnyPart, ...], numbers: list[int], *, is_cut_off: bool = False
    ) -> bytes:
        """Parts as a message of their own would have them; `numbers` are theirs in the answer."""
        out = Outgoing(is_response=True, is_cut_off=is_cut_off)
        message = make_message(_ASSISTANT, parts, origin=self._start.origin)
        body = encode_assistant(message, out, _MESSAGE)
        for loss in out.losses:
            self._lose(_placed(loss.path, numbers), loss.reason)
        for repair in out.repairs:
            self._repairs.setdefault(repair.replace(path=_placed(repair.path, numbers)))
        return b"" if body is None else self._message(body)

    def _message(self, message: dict[str, Any]) -> bytes:
        return _line({**self._head, "message": message, "done": False})

    def _lose(self, path: str, reason: str) -> None:
        self._losses.setdefault(Loss(path, reason))


def _placed(path: str, numbers: list[int]) -> str:
    return _PART.sub(lambda found: str(numbers[int(found[0])]), path)


def _line(body: dict[str, Any]) -> bytes:
    return dumps(body) + b"\n"


def _grown(part: AnyPart, event: PartDelta) -> AnyPart | None:
    """What a part grows by, as a part; None where that is nothing that could be said."""
    if isinstance(part, Text):
        piece = Text(event.text or "", event.citations, signature=event.signature)
        return piece if piece.text or piece.citations or piece.signature else None
    if isinstance(part, Thinking):
        return Thinking(
            event.text or "", event.data, part.form, signature=event.signature, origin=part.origin
        )
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
