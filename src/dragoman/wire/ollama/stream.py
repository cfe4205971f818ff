"""Streams of `/api/chat`: newline-delimited JSON (W101)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, response_identity
from dragoman.model.events import PartDelta
from dragoman.model.frozen import freeze_mapping
from dragoman.model.jsontext import dumps
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import finish_beside
from dragoman.wire.framing import NdjsonParser
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.lane.flows import MARK, NO_BYTES, Flow, around_mark
from dragoman.wire.lane.templates import ASCII_TEXT, Growth, Noises
from dragoman.wire.losses import Loss
from dragoman.wire.ollama.content import decode_images, encode_assistant, note_written
from dragoman.wire.ollama.dialect import NAME, OllamaReading, OllamaWriting, is_own
from dragoman.wire.ollama.response import (
    EMPTY_MESSAGE,
    METRICS,
    NO_IDS,
    decode_finish,
    decode_time,
    decode_usage,
    encode_end,
    encode_usage,
)
from dragoman.wire.ollama.tools import decode_call
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.stream_decoding import (
    FrameDecoder,
    PartEvents,
    Passing,
    object_in,
    stream_error,
)
from dragoman.wire.stream_encoding import (
    HELD_BACK,
    EventEncoder,
    SentPart,
    is_carrier,
    piece_of,
)
from dragoman.wire.times import encode_time
from dragoman.wire.tolerance import plain_text

_KNOWN = frozenset({"model", "created_at", "message", "done", "done_reason", "logprobs", *METRICS})
_READ = frozenset({"role", "content", "thinking", "tool_calls"})
_PLAIN = frozenset({"model", "created_at", "message", "done"})
_FAILED = "the model failed during its response"
_MESSAGE = "choices[0].message"
_NO_HEAD = {"model": "", "created_at": encode_time(None)}


class StreamDecoder(FrameDecoder[bytes]):
    """Decodes lines, each with a piece of the message.

    The stream is complete after a line with `done`. Thinking ends when the text begins, the text
    ends with the stream. Each line has its own time; that of the first is the response's.
    """

    _dialect = NAME
    _noise: ClassVar[Noises] = {"created_at": ASCII_TEXT}
    PASSING = Passing(
        (rb'"done"\s*:\s*true', b'"tool_calls"', b'"error"'), None, (b"\n",), re.compile(rb"\n")
    )

    def __init__(self) -> None:
        super().__init__(NdjsonParser())
        self._reading = OllamaReading(None, CallIds(UNKNOWN_RESPONSE))
        self._parts = PartEvents(self._emit)
        self._text: int | None = None
        self._thinking: int | None = None
        self._has_calls = False
        self._start: events.ResponseStart | None = None
        self._unknown: dict[str, Any] = {}
        self._unknown_of_message: dict[str, Any] = {}
        self._logprobs: list[Any] | None = None
        self._is_over = False

    def _in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Thinking first, joined if it came in several parts, then text, media and calls."""
        if self._parts.count < 2:  # noqa: PLR2004 - nothing could be out of order
            return parts
        thinking = [part for part in parts if isinstance(part, Thinking)]
        texts = [part for part in parts if isinstance(part, Text)]
        if len(thinking) > 1:
            thinking = [thinking[0].replace(text="".join(part.text for part in thinking))]
        rest = [part for part in parts if not isinstance(part, (Thinking, Text))]
        return (*thinking, *texts, *rest)

    # --- lines

    def _take(self, frame: bytes) -> None:
        if self._is_over:
            return
        chunk = object_in(frame)
        if "error" in chunk and not is_object(chunk.get("message")):
            self._take_error(chunk)
            return
        if not _KNOWN.issuperset(chunk):
            self._unknown.update((key, value) for key, value in chunk.items() if key not in _KNOWN)
        if self._start is None:
            self._begin(chunk)
        message = chunk.get("message")
        if is_object(message):
            self._take_message(message)
        elif message is not None:
            self._emit(events.OpaqueEvent(NAME, {"message": message}))
        if is_list(logprobs := chunk.get("logprobs")):
            self._logprobs = self._logprobs or []
            self._logprobs += logprobs
        if chunk.get("done") is True:
            self._finish(chunk)
        elif _PLAIN.issuperset(chunk) and type(message) is dict and _READ.issuperset(message):
            self._growth = self._grown(message)

    def _grown(self, message: dict[str, Any]) -> Growth | None:
        """The growth of a part, if the line was only a piece of one text."""
        content, thinking = message.get("content"), message.get("thinking")
        if message.get("tool_calls"):
            return None
        if content and type(content) is str and not thinking and self._text is not None:
            return Growth(PartDelta(self._text, content), ("message", "content"))
        if thinking and type(thinking) is str and not content and self._thinking is not None:
            return Growth(PartDelta(self._thinking, thinking), ("message", "thinking"))
        return None

    def _begin(self, chunk: dict[str, Any]) -> None:
        model = chunk.get("model")
        model = model if isinstance(model, str) else None
        created = decode_time(chunk.get("created_at"))
        written: dict[str, Any] = {}
        note_written("created_at", encode_time(created), chunk, set(), written)
        known = _KNOWN - {"created_at"} if written else _KNOWN
        self._start = events.ResponseStart(
            model=model,
            created_at=created,
            origin=Origin(dialect=NAME, model=model),
            extras=overlay_of(chunk, known, NAME, written),
        )
        self._emit(self._start)
        self._reading.calls.identity = response_identity(None, created, model)

    def _take_error(self, chunk: dict[str, Any]) -> None:
        """Decode a mid-stream error, which ends the stream (G1)."""
        self._end()
        extras = freeze_mapping({NAME: chunk}, "the wire")
        self._emit(stream_error(chunk["error"], None, chunk.get("status"), extras))

    # --- the message

    def _take_message(self, message: dict[str, Any]) -> None:
        if thinking := plain_text(message.get("thinking")):
            if self._thinking is None:
                self._thinking = self._parts.start(Thinking(""))
            self._emit(PartDelta(self._thinking, thinking))
        if content := plain_text(message.get("content")):
            self._stop_thinking()
            if self._text is None:
                self._text = self._parts.start(Text(""))
            self._emit(PartDelta(self._text, content))
        if not _READ.issuperset(message):
            self._take_rest(message)
        calls = message.get("tool_calls")
        if is_list(calls):
            for call in calls:
                self._stop_thinking()
                part = decode_call(call, self._reading)
                self._has_calls = self._has_calls or isinstance(part, ToolCall)
                self._parts.whole(part)

    def _take_rest(self, message: dict[str, Any]) -> None:
        images = decode_images(message.get("images"))
        for image in images or ():
            self._parts.whole(image)
        read = _READ | {"images"} if images else _READ
        self._unknown_of_message.update((k, v) for k, v in message.items() if k not in read)

    def _stop_thinking(self) -> None:
        if self._thinking is not None:
            self._parts.stop(self._thinking)
            self._thinking = None

    # --- the end

    def _end(self) -> None:
        if not self._is_over:
            self._stop()
            self._settle_start(self._unknown)
            held: dict[str, Any] = {}
            if self._unknown_of_message:
                held["message"] = {**EMPTY_MESSAGE, **self._unknown_of_message}
            if self._logprobs:
                held["logprobs"] = self._logprobs
            if held:
                self._emit(events.OpaqueEvent(NAME, held))

    def _stop(self) -> None:
        self._is_over = True
        self._stop_thinking()
        self._parts.stop_all()

    def _settle_start(self, unknown: dict[str, Any]) -> None:
        """Emit the unknown fields of the response that came late."""
        start = self._start
        if start is not None and not unknown.items() <= fields_of(start.extras, NAME).items():
            self._emit(start.replace(extras={**start.extras, NAME: unknown}))

    def _finish(self, chunk: dict[str, Any]) -> None:
        self._stop()
        unknown = self._unknown
        usage = decode_usage(chunk, set())
        if usage is None:  # then durations belong to the response itself
            unknown |= {key: chunk[key] for key in METRICS if key in chunk}
        self._settle_start(unknown)
        if usage is not None:
            self._emit(events.UsageUpdate(usage))
        raw = chunk.get("done_reason")
        raw = raw if isinstance(raw, str) and raw else None
        finish = decode_finish(raw, is_done=True, has_calls=self._has_calls)
        assert finish is not None  # noqa: S101 - it is done
        extras = overlay_of(self._unknown_of_message, (), NAME)
        self._emit(events.ChoiceFinish(finish, raw, 0, self._logprobs, message_extras=extras))
        self._emit(events.ResponseEnd())


class StreamEncoder(EventEncoder):
    """Encodes events as lines; text and thinking are written as they come.

    Calls can only be sent whole (W104), so they wait for the end. The last line has the token
    counts and the finish reason.
    """

    _dialect = NAME
    _reports_late_events = False

    def __init__(self) -> None:
        self._writing = OllamaWriting.of_response()
        super().__init__(self._writing)
        self._head: dict[str, Any] = _NO_HEAD
        self._parts: dict[int, SentPart] = {}
        self._count = 0  # parts so far
        self._thinking: int | None = None
        self._calls = MessageAccumulator()
        self._call_numbers: list[int] = []

    def _started(self, event: events.ResponseStart) -> bytes:
        """Keep the fields that every line begins with; nothing is sent yet."""
        start = self._start
        self._calls.add(event)
        head = {"model": start.model or "", "created_at": encode_time(start.created_at)}
        self._head = with_overlay(head, start.extras, NAME)
        if start.id is not None:
            self._writing.losses.append(NO_IDS)
        return b""

    def _part_start(self, event: events.PartStart) -> bytes:
        part = event.part
        sent = self._begun(event.index, part)
        if isinstance(part, ToolCall):
            self._call_numbers.append(sent.number)
            return self._keep(event)
        return self._piece(sent, part)

    def _begun(self, index: int, part: AnyPart) -> SentPart:
        sent = self._parts[index] = SentPart(self._numbered(), part)
        return sent

    def _numbered(self) -> int:
        self._count += 1
        return self._count - 1

    def _part_delta(self, event: PartDelta) -> bytes:
        sent = self._parts.get(event.index)
        if sent is None:
            sent = self._begun(event.index, Text(""))
        part = sent.part
        if isinstance(part, ToolCall):
            return self._keep(event)
        if isinstance(part, Text):
            if event.text and event.signature is None and not event.citations:
                sent.pieces.append(event.text)
                return self._text(event.text)
            piece = Text(event.text or "", event.citations, signature=event.signature)
            return self._piece(sent, piece)
        return self._more(sent, piece_of(part, event))

    def _part_flow(self, event: PartDelta) -> Flow | None:
        sent = self._parts.get(event.index)
        part = None if sent is None else sent.part
        if sent is None or isinstance(part, ToolCall):
            kept = self._calls.texts_of(event)
            return Flow(event, NO_BYTES, *kept) if kept else None
        message: dict[str, Any] = {"role": "assistant", "content": MARK}
        if type(part) is Thinking and self._thinking == sent.number:
            message = {"role": "assistant", "content": "", "thinking": MARK}
        elif type(part) is not Text:
            return None
        encode = around_mark(self._message(message))
        return None if encode is None else Flow(event, encode, sent.pieces)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        kept = self._calls.texts_of(event)
        return Flow(event, NO_BYTES, *kept) if kept else None

    def _part_stop(self, event: events.PartStop) -> bytes:
        """End a part; write all of it if it was not announced before."""
        sent, final = self._parts.get(event.index), event.part
        if sent is None:
            return b"" if final is None else self._part_start(events.PartStart(event.index, final))
        if isinstance(sent.part, ToolCall) and (final is None or isinstance(final, ToolCall)):
            return self._keep(event)
        if final is None:
            return b""
        path = f"{_MESSAGE}.parts[{sent.number}]"
        return self._more(sent, sent.rest(final, lambda why: self._lose(path, why)))

    def _more(self, sent: SentPart, piece: Text | Thinking | Refusal | None) -> bytes:
        """Write the growth of a part, if any; a refusal that has not grown is not repeated."""
        if piece is None or (isinstance(piece, Refusal) and not piece.text):
            return b""
        return self._piece(sent, piece)

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        if self._calls.resolved(event).index == len(self._call_numbers):
            self._call_numbers.append(self._numbered())
        return self._keep(event)

    def _keep(self, event: events.Event) -> bytes:
        self._calls.add(event)
        return b""

    def _error(self, error: events.StreamError) -> bytes:
        mine = fields_of(error.extras, NAME)
        return _line(dict(mine) if mine else {"error": error.message or _FAILED})

    def _held_back(self) -> Iterable[Loss]:
        calls = [Loss(f"{_MESSAGE}.parts[{n}]", HELD_BACK) for n in self._call_numbers]
        return [*super()._held_back(), *calls]

    def _opaque(self, payload: dict[str, Any]) -> bytes:
        return _line(payload)

    def _end(self) -> bytes:
        """The last line, with the finish reason and the token counts."""
        written = self._write_calls()
        self._report_thinking()
        finish = self._finish or events.ChoiceFinish(FinishReason.STOP)
        if (cut := finish_beside(finish.finish, self._writing)) is not finish.finish:
            finish = finish.replace(finish=cut)
        is_ours = is_own(self._start.origin)
        message = dict(EMPTY_MESSAGE)
        if is_ours:
            message = with_overlay(message, finish.message_extras, NAME)
        body = {**self._head, **self._message_fields(message), "done": True}
        body |= encode_end(finish, self._writing, is_ours=is_ours)
        if self._usage is not None:
            body |= encode_usage(self._usage)
        return written + _line({**self._last(), **body})

    def _last(self) -> dict[str, Any]:
        """Additional fields of the last line."""
        return {}

    # --- lines

    def _write_calls(self) -> bytes:
        if not self._call_numbers:
            return b""
        self._writing.is_cut_off = self._finish is not None and self._finish.finish.is_cut_off
        self._writing.last = max(
            (sent.number for index, sent in self._parts.items() if not is_carrier(index)),
            default=-1,
        )
        self._writing.last = max(self._writing.last, *self._call_numbers)
        return self._written(self._calls.message.tool_calls, self._call_numbers)

    def _report_thinking(self) -> None:
        """Report losses of thinking: what was shown of it is known only at the end."""
        for sent in self._parts.values():
            part = sent.part
            if isinstance(part, Thinking) and (sent.is_sealed or not any(sent.pieces)):
                signature = "" if sent.is_sealed else None
                whole = Thinking("".join(sent.pieces), signature=signature, origin=part.origin)
                self._written((whole,), [sent.number])

    def _piece(self, sent: SentPart, part: AnyPart) -> bytes:
        """Write a piece of a part; thinking parts of other providers are separated by newlines."""
        sent.note(part)
        if isinstance(part, Text):
            if part.citations or part.cache or part.signature:
                written = self._written((part,), [sent.number])
                return written if part.text else b""
            return self._text(part.text) if part.text else b""
        if isinstance(part, Thinking):
            return self._thinking_piece(sent.number, part) if part.text else b""
        return self._written((part,), [sent.number])

    def _text(self, text: str) -> bytes:
        return self._message({"role": "assistant", "content": text})

    def _thinking_piece(self, number: int, part: Thinking) -> bytes:
        text = part.text
        if self._thinking != number:
            is_first, self._thinking = self._thinking is None, number
            if not is_first and not is_own(part.origin or self._start.origin):
                text = f"\n{text}"
        return self._message({"role": "assistant", "content": "", "thinking": text})

    def _written(self, parts: tuple[AnyPart, ...], numbers: list[int]) -> bytes:
        """Encode parts as a separate message; `numbers` are their indexes in the response."""
        message = make_message(Role.ASSISTANT, parts, origin=self._start.origin)
        body = encode_assistant(message, self._writing, numbers)
        return b"" if body is None else self._message(body)

    def _message(self, message: dict[str, Any]) -> bytes:
        return _line({**self._head, **self._message_fields(message), "done": False})

    def _message_fields(self, message: dict[str, Any]) -> dict[str, Any]:
        """The fields of a line that hold a message; `/api/generate` overrides this."""
        return {"message": message}


def _line(body: dict[str, Any]) -> bytes:
    return dumps(body) + b"\n"
