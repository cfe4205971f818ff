"""Streams: a JSON object on each line, with a bit of text, a whole piece, or the end."""

from __future__ import annotations

from typing import Any

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason
from dragoman.wire import overlay
from dragoman.wire.framing import NdjsonParser
from dragoman.wire.stream_decoding import FrameDecoder, PartEvents, object_in, stream_error
from dragoman.wire.stream_encoding import EventEncoder, SentPart
from dragoman_courier.content import Report, decode_piece, encode_piece
from dragoman_courier.description import NAME, OWN
from dragoman_courier.response import decode_finish, decode_usage, encode_head, encode_response

_GROWING: dict[str, type[Text | Thinking]] = {"text": Text, "thought": Thinking}
_FIELDS: dict[type, str] = {kind: field for field, kind in _GROWING.items()}

_LAST = frozenset({"ended", "spent"})


class StreamDecoder(FrameDecoder[bytes]):
    """Reads lines; what is common to all streams is in `FrameDecoder`."""

    _dialect = NAME

    def __init__(self) -> None:
        super().__init__(NdjsonParser())
        self._parts = PartEvents(self._emit)
        self._growing: tuple[str, int] | None = None
        self._has_begun = False
        self._is_over = False

    def _take(self, frame: bytes) -> None:
        if self._is_over:
            return
        line = object_in(frame)
        if "error" in line:
            self._end()
            error = line["error"] if isinstance(line["error"], dict) else {}
            self._emit(stream_error(error.get("message"), error.get("code"), None, {NAME: line}))
            return
        if not self._has_begun:
            self._begin(line)
        for field in _GROWING:
            if isinstance(line.get(field), str):
                self._grow(field, line[field])
        if "piece" in line:
            self._growing = None
            self._parts.stop_all()
            self._parts.whole(decode_piece(line["piece"], "piece"))
        if "ended" in line:
            self._finish(line)

    def _begin(self, line: dict[str, Any]) -> None:
        self._has_begun = True
        model = line["model"] if isinstance(line.get("model"), str) else None
        self._emit(
            ResponseStart(
                id=line["id"] if isinstance(line.get("id"), str) else None,
                model=model,
                created_at=line["at"] if type(line.get("at")) is float else None,
                origin=Origin(dialect=NAME, model=model),
            )
        )

    def _grow(self, field: str, text: str) -> None:
        if self._growing is None or self._growing[0] != field:
            self._parts.stop_all()
            self._growing = field, self._parts.start(_GROWING[field]("", origin=OWN))
        self._emit(PartDelta(self._growing[1], text))

    def _finish(self, line: dict[str, Any]) -> None:
        self._end()
        if (usage := decode_usage(line.get("spent"))) is not None:
            self._emit(UsageUpdate(usage))
        raw = line["ended"] if isinstance(line["ended"], str) else None
        self._emit(ChoiceFinish(decode_finish(raw) or FinishReason.OTHER, raw))
        self._emit(ResponseEnd())

    def _end(self) -> None:
        self._is_over = True
        self._parts.stop_all()


class StreamEncoder(EventEncoder):
    """Writes lines: texts and thoughts as they come, anything else when it is whole.

    What could not be said is what the plain answer can't say either.
    """

    _dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._folded = MessageAccumulator()
        self._growing: dict[int, SentPart] = {}
        """The texts and thoughts, with what was sent of them."""
        self._places: dict[int, int] = {}
        """The positions of the parts by index: calls that come in pieces have no index."""
        self._sent: set[int] = set()
        """The positions of the parts that were sent."""

    def feed(self, event: Event) -> bytes:
        """The bytes to send for an event."""
        if not self._is_over and not getattr(event, "choice", 0):
            self._place(event)
        return super().feed(event)

    def _place(self, event: Event) -> None:
        index = getattr(event, "index", None)
        if not isinstance(event, PartStart | PartStop) or index is None:
            return self._folded.add(event)
        count = len(self._folded.message.parts)
        self._folded.add(event)
        if len(self._folded.message.parts) > count:
            self._places[index] = count
        return None

    def _part_start(self, event: PartStart) -> bytes:
        if type(event.part) not in _FIELDS:
            return b""
        sent = self._growing[event.index] = SentPart(event.index, event.part)
        self._sent.add(self._places[event.index])
        return self._grown(sent, event.part)

    def _part_delta(self, event: PartDelta) -> bytes:
        sent = self._growing.get(event.index)
        if sent is None or not event.text:
            return b""
        return self._grown(sent, sent.part.replace(text=event.text))

    def _tool_call_delta(self, _event: ToolCallDelta) -> bytes:
        return b""

    def _part_stop(self, event: PartStop) -> bytes:
        sent = self._growing.get(event.index)
        if sent is None:
            place = self._places.get(event.index)
            return b"" if place is None else self._piece(place)
        if event.part is None:
            return b""
        path = f"choices[0].message.parts[{self._places[event.index]}]"
        rest = sent.rest(event.part, lambda reason: self._lose(path, reason))
        return b"" if rest is None else self._grown(sent, rest)

    def _grown(self, sent: SentPart, more: Any) -> bytes:
        sent.note(more)
        return self._line({_FIELDS[type(sent.part)]: more.text}) if more.text else b""

    def _piece(self, place: int) -> bytes:
        """A part that does not grow on the wire."""
        self._sent.add(place)
        piece = encode_piece(self._folded.message.parts[place], "", Report())
        return b"" if piece is None else self._line({"piece": piece})

    def _error(self, error: StreamError) -> bytes:
        ours = overlay.fields_of(error.extras, NAME)
        return self._line(dict(ours) if ours else {"error": {"message": error.message}})

    def _end(self) -> bytes:
        rest = [i for i in range(len(self._folded.message.parts)) if i not in self._sent]
        pieces = [self._piece(place) for place in rest]
        plain = encode_response(self._folded.response)
        self._note(plain.losses, plain.repairs)
        end = {key: value for key, value in plain.body.items() if key in _LAST}
        return b"".join([*pieces, self._line({"ended": "done", **end})])

    def _line(self, body: dict[str, Any]) -> bytes:
        return dumps({**encode_head(self._start), **body}) + b"\n"
