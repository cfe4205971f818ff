"""Streams, from events to chunks: each a response of its own, with what is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

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
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import Usage
from dragoman.wire.gemini.response import encode_head
from dragoman.wire.gemini.stream_errors import INTERRUPTED, encode_stream_error
from dragoman.wire.gemini.stream_frames import ChunkWriter, Form
from dragoman.wire.gemini.stream_writer import CandidateWriter, Parts
from dragoman.wire.gemini.trace import NAME, as_it_came, is_object
from dragoman.wire.gemini.usage import encode_usage
from dragoman.wire.gemini.writing import Writing
from dragoman.wire.losses import Loss, Repair

_CHUNK = b'{"candidates":[{"content":{"parts":%b,"role":"model"}%b}]%b'


class StreamEncoder:
    """Writes one response as a stream; `feed` gives the bytes to send now.

    Why the candidates ended, and what it cost, is in the last chunk, which is written when the
    response has come to its end and not before: clients take it for the end (G1).
    """

    def __init__(self, *, form: Form = "sse") -> None:
        self._chunks = ChunkWriter(form)
        self._writing = Writing("choices[{}].message", is_response=True)
        self._start = ResponseStart()
        self._tail = b"}"  # what each chunk ends with: model and id
        self._candidates: dict[int, CandidateWriter] = {}
        self._usage: Usage | None = None
        self._is_over = False

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        return list(dict.fromkeys(self._writing.repairs))

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far, each thing once."""
        found = {(loss.path, loss.reason): loss for loss in self._writing.losses}
        return list(found.values())

    def feed(self, event: Event) -> bytes:
        """What to send for an event; nothing, where more has to come first."""
        if self._is_over:
            self._lose_once("what comes after the end of a response is left out")
            return b""
        return self._HANDLERS[type(event)](self, event)

    def close(self) -> bytes:
        """What to send when no more events come: an error, if the answer is not complete (G1)."""
        return b"" if self._is_over else self._stream_error(INTERRUPTED)

    # --- the response

    def _response_start(self, event: ResponseStart) -> bytes:
        self._start = self._start.filled(event)
        self._writing.origin = self._start.origin
        head = as_it_came(self._head(), self._start.extras)
        self._tail = b"," + dumps(head)[1:] if head else b"}"
        return b""

    def _head(self) -> dict[str, Any]:
        start = self._start
        return encode_head(Response(model=start.model, id=start.id, created_at=start.created_at))

    def _usage_update(self, event: UsageUpdate) -> bytes:
        self._usage = event.usage
        return b""

    def _response_end(self, _event: ResponseEnd) -> bytes:
        if not self._candidates:
            self._candidate(0)  # nobody said anything; but that it has ended
        written = b"".join(
            [self._chunk(number, writer.rest()) for number, writer in self._candidates.items()]
        )
        body: dict[str, Any] = {}
        ordered = sorted(self._candidates.items())
        if candidates := [w.verdict() for _, w in ordered if not w.is_blocked]:
            body["candidates"] = candidates
        if self._usage is not None:
            body["usageMetadata"] = encode_usage(self._usage)
        last = as_it_came({**body, **self._head()}, self._start.extras)
        self._is_over = True
        return written + self._chunks.write(dumps(last)) + self._chunks.end()

    def _stream_error(self, event: StreamError) -> bytes:
        self._is_over = True
        return self._chunks.write(dumps(encode_stream_error(event))) + self._chunks.end()

    def _opaque_event(self, event: OpaqueEvent) -> bytes:
        if event.dialect == NAME and is_object(event.payload):
            return self._chunks.write(dumps(event.payload))
        self._lose_once("an event that has no place here is left out")
        return b""

    def _lose_once(self, reason: str) -> None:
        if Loss("events", reason) not in self._writing.losses:
            self._writing.lose("events", reason)

    # --- candidates

    def _part_start(self, event: PartStart) -> bytes:
        writer = self._candidate(event.choice)
        return self._chunk(event.choice, writer.start(event.index, event.part))

    def _part_delta(self, event: PartDelta) -> bytes:
        return self._chunk(event.choice, self._candidate(event.choice).grow(event))

    def _part_stop(self, event: PartStop) -> bytes:
        writer = self._candidate(event.choice)
        return self._chunk(event.choice, writer.stop(event.index, event.part))

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        return self._chunk(event.choice, self._candidate(event.choice).call(event))

    def _choice_finish(self, event: ChoiceFinish) -> bytes:
        return self._chunk(event.choice, self._candidate(event.choice).finish(event))

    def _candidate(self, number: int) -> CandidateWriter:
        writer = self._candidates.get(number)
        if writer is None:
            writer = self._candidates[number] = CandidateWriter(number, self._writing)
        return writer

    def _chunk(self, number: int, parts: Parts) -> bytes:
        if not parts:
            return b""
        # Vertex AI leaves out a zero; the last chunk has it, unless it came without.
        index = b',"index":%d' % number if number else b""
        return self._chunks.write(_CHUNK % (dumps(parts), index, self._tail))

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
