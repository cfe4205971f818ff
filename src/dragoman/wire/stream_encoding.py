"""Base class of the stream encoders: events become bytes.

A dialect's encoder has a method for each type of event that it writes. This module has the dispatch
to these methods, the state that every encoder keeps, the end of a stream, errors, and the reports
of losses and repairs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Protocol

from dragoman.errors import InvalidInputError
from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import loads
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import Usage
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder
from dragoman.wire.losses import Loss, Losses, Repair

CORRECTED = "content that was already sent was corrected at the end"
"""The loss if the final form of a part contradicts what was sent of it before (W26)."""
INTERRUPTED = events.StreamError(
    "the response was interrupted before it was complete", "stream_interrupted"
)
"""The error for clients of a stream that ended early (G1)."""
HELD_BACK = "it was held back until the end of the response, which failed"
"""The loss for what was received, but could only have been sent by a complete response."""
NO_USAGE = "a failed response can't report usage"
TEXTS = (Text, Thinking, Refusal)
"""The parts that consist of text only."""

_METHODS = {
    events.ResponseStart: "_response_start",
    events.PartStart: "_part_start",
    events.PartDelta: "_part_delta",
    events.PartStop: "_part_stop",
    ToolCallDelta: "_tool_call_delta",
    events.UsageUpdate: "_usage_update",
    events.ChoiceFinish: "_choice_finish",
    events.StreamError: "_stream_error",
    events.OpaqueEvent: "_opaque_event",
    events.ResponseEnd: "_response_end",
}
_CONTENT = frozenset({events.PartStart, events.PartDelta, ToolCallDelta})


class EventHandler:
    """Dispatches events to methods named after the event type; types without one are absent."""

    _handlers: ClassVar[dict[type, Callable[[Any, Any], Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = {kind: getattr(cls, name, None) for kind, name in _METHODS.items()}
        cls._handlers = {kind: method for kind, method in named.items() if method is not None}


def is_carrier(index: Hashable) -> bool:
    """Whether a part only carries an envelope, and is no content: see `SealingEncoder`."""
    return type(index) is int and index < 0


class Reports(Protocol):
    """Collects the losses and repairs of the functions that write one body."""

    losses: list[Loss]
    repairs: list[Repair]


class EventEncoder(FlowingEncoder, EventHandler):
    """Encodes one response as a stream; `feed` returns the bytes to send."""

    _dialect: ClassVar[str]
    _has_one_choice: ClassVar[bool] = True
    _reports_late_events: ClassVar[bool] = True
    """Whether any event after the end is reported, or only content."""

    def __init__(self, reports: Reports | None = None) -> None:
        self._reports = reports
        self._losses = Losses()
        self._start = events.NOT_STARTED
        self._usage: Usage | None = None
        self._finish: events.ChoiceFinish | None = None
        self._is_over = False

    @property
    def losses(self) -> list[Loss]:
        """What could not be expressed so far, without duplicates."""
        self._collect()
        return self._losses.all

    @property
    def repairs(self) -> list[Repair]:
        """What was repaired so far."""
        self._collect()
        return self._losses.repairs

    def write(self, event: events.Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        if self._is_over:
            self._report_late(event)
            return b""
        if self._has_one_choice and (choice := getattr(event, "choice", None)):
            self._lose(f"choices[{choice}]", "only one choice is supported")
            return b""
        written: bytes = self._handlers[type(event)](self, event)
        return written

    def flow_after(self, event: Delta) -> Flow | None:
        """How to write deltas like the plain one that was just written."""
        if self._is_over or (self._has_one_choice and event.choice):
            return None
        return self._part_flow(event) if isinstance(event, PartDelta) else self._call_flow(event)

    def _close(self) -> bytes:
        """The last bytes: an error if the response is incomplete (G1)."""
        return b"" if self._is_over else self._stream_error(INTERRUPTED)

    # --- shared by all dialects

    def _report_late(self, event: events.Event) -> None:
        if self._reports_late_events or type(event) in _CONTENT:
            self._lose("events", "events after the end of a response are left out")

    def _response_start(self, event: events.ResponseStart) -> bytes:
        if event.restarts:  # what was sent can't be retracted, nor continued by another response
            return self._stream_error(INTERRUPTED)
        self._start = self._start.filled(event)
        return self._started(event)

    def _usage_update(self, event: events.UsageUpdate) -> bytes:
        self._usage = event.usage
        return b""

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        self._finish = event
        return b""

    def _stream_error(self, event: events.StreamError) -> bytes:
        """Encode an error and end the stream."""
        self._is_over = True
        self._note(self._held_back())
        return self._error(event)

    def _opaque_event(self, event: events.OpaqueEvent) -> bytes:
        """Encode an unknown event of this dialect; other dialects' events are dropped."""
        payload = event.payload
        if event.dialect == self._dialect and isinstance(payload, dict):
            written = self._opaque(payload)
            if written is not None:
                return written
        if not event.is_progress:
            self._lose("events", "an unsupported event is left out")
        return b""

    def _response_end(self, _event: events.ResponseEnd) -> bytes:
        written = self._end()
        self._is_over = True
        return written

    # --- implemented by dialects

    def _nothing(self, _event: Any) -> bytes:
        return b""

    _part_start = _part_delta = _part_stop = _tool_call_delta = _nothing
    """Send nothing; a dialect that keeps this default must write or report the part at the end."""

    def _part_flow(self, event: PartDelta) -> Flow | None:  # noqa: ARG002 - for subclasses
        """The fast path for the next text of a part, after this one."""
        return None

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:  # noqa: ARG002 - for subclasses
        """The fast path for the next arguments of a call, after these."""
        return None

    def _held_back(self) -> Iterable[Loss]:
        """What a failed response leaves out although it was received: by default the usage."""
        return () if self._usage is None else (Loss("usage", NO_USAGE),)

    def _started(self, event: events.ResponseStart) -> bytes:  # noqa: ARG002 - for subclasses
        """Handle new metadata of the response."""
        return b""

    def _error(self, error: events.StreamError) -> bytes:
        """Encode an error as a frame."""
        raise NotImplementedError

    def _opaque(self, payload: dict[str, Any]) -> bytes | None:  # noqa: ARG002 - for subclasses
        """Encode an unknown event of this dialect; None if it can't be sent."""
        return None

    def _end(self) -> bytes:
        """The last frames of a complete response."""
        raise NotImplementedError

    # --- reports

    def _lose(self, path: str, reason: str) -> None:
        self._note([Loss(path, reason)])

    def _note(self, losses: Iterable[Loss], repairs: Iterable[Repair] = ()) -> None:
        self._collect()
        self._losses.extend(losses)
        self._losses.repair(repairs)

    def _collect(self) -> None:
        """Take over the reports collected meanwhile, to keep their order and remove duplicates."""
        reports = self._reports
        if reports is not None:
            self._losses.extend(reports.losses)
            self._losses.repair(reports.repairs)
            reports.losses.clear()
            reports.repairs.clear()


class SentPart:
    """A part in progress: its number in the message, and what was sent of it."""

    __slots__ = ("cited", "is_sealed", "number", "part", "pieces")

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.pieces: list[str] = []
        self.cited = 0
        self.is_sealed = False

    def note(self, sent: AnyPart) -> None:
        """Record what is being sent of it."""
        if isinstance(sent, ToolCall):
            self.pieces.append(arguments_of(sent))
        elif isinstance(sent, TEXTS):
            self.pieces.append(sent.text)
            if isinstance(sent, Text):
                self.cited += len(sent.citations)
            elif isinstance(sent, Thinking) and (sent.signature, sent.data) != (None, None):
                self.is_sealed = True

    def rest(self, final: AnyPart, lose: Callable[[str], None]) -> Text | Thinking | Refusal | None:
        """What the final form of a text adds to what was sent (W26); it can't retract anything.

        None if it is not a text, or another kind of text.
        """
        if not isinstance(final, TEXTS) or type(final) is not type(self.part):
            if type(final) is not type(self.part):
                lose(CORRECTED)
            return None
        more = unsent(self.pieces, final.text)
        if more is None:
            lose(CORRECTED)
        if isinstance(final, Text):
            citations = final.citations[self.cited :]
            return final.replace_unchecked(text=more or "", citations=citations)
        return final.replace_unchecked(text=more or "")


def piece_of(part: AnyPart, delta: events.PartDelta) -> Thinking | Refusal | None:
    """The increment of thinking or a refusal as a part of its own; None for other parts."""
    fields: dict[str, Any] = {"origin": part.origin, "extras": part.extras}
    if isinstance(part, Thinking):
        fields["signature"] = delta.signature
        return Thinking(delta.text or "", delta.data, part.form, **fields)
    return Refusal(delta.text or "", **fields) if isinstance(part, Refusal) else None


def arguments_of(call: ToolCall) -> str:
    """The arguments that a call starts with; an empty object counts as none."""
    return call.raw if call.raw is not None else call.raw_arguments if call.input else ""


def unsent(sent: Iterable[str], whole: str) -> str | None:
    """The rest of a text after the chunks already sent; None if they differ from it (W26)."""
    said = "".join(sent)
    return whole[len(said) :] if whole.startswith(said) else None


def unsent_arguments(sent: Sequence[str], whole: str) -> str | None:
    """Like `unsent`, for a call's arguments; empty if they are equal as JSON."""
    more = unsent(sent, whole)
    if more is not None or not _is_same_json("".join(sent), whole):
        return more
    return ""


def _is_same_json(one: str, other: str) -> bool:
    try:
        return bool(loads(one) == loads(other))
    except InvalidInputError:
        return False
