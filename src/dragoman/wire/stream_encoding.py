"""What the stream encoders of all dialects share: events become bytes.

A dialect's encoder has a method for each type of event that it writes. Here are the dispatch to
these methods, what every encoder remembers, the end, errors, and the reports of what could not be
said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

CORRECTED = "what was corrected at the end had been sent"
"""What is lost where the final form of a part takes back what was sent of it before (W26)."""
INTERRUPTED = events.StreamError(
    "the answer broke off before it was complete", "stream_interrupted"
)
"""What a client is told of a stream that ended early (G1)."""
TEXTS = (Text, Thinking, Refusal)
"""The parts that are nothing but their text."""

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


class EventHandler:
    """Has a method for each type of event that it cares about, named after the type."""

    _handlers: ClassVar[dict[type, Callable[[Any, Any], Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = {kind: getattr(cls, name, None) for kind, name in _METHODS.items()}
        cls._handlers = {kind: method for kind, method in named.items() if method is not None}


class Reports(Protocol):
    """Where the functions that write one body note what they could not say, or put right."""

    losses: list[Loss]
    repairs: list[Repair]


class EventEncoder(FlowingEncoder, EventHandler):
    """Writes one response as a stream; `feed` gives the bytes to send now."""

    _dialect: ClassVar[str]
    _has_one_choice: ClassVar[bool] = True
    _reports_late_events: ClassVar[bool] = True

    def __init__(self, reports: Reports | None = None) -> None:
        self._reports = reports
        self._losses = Losses()
        self._start = events.NOT_STARTED
        self._usage: Usage | None = None
        self._finish: events.ChoiceFinish | None = None
        self._is_over = False

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far, each thing once."""
        self._collect()
        return self._losses.all

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        self._collect()
        return self._losses.repairs

    def _feed(self, event: events.Event) -> bytes:
        if self._is_over:
            if self._reports_late_events:
                self._lose("events", "what comes after the end of a response is left out")
            return b""
        if self._has_one_choice and (choice := getattr(event, "choice", None)):
            self._lose(f"choices[{choice}]", "there is one choice only")
            return b""
        written: bytes = self._handlers[type(event)](self, event)
        return written

    def _flow_after(self, event: Delta) -> Flow | None:
        if self._is_over or (self._has_one_choice and event.choice):
            return None
        return self._part_flow(event) if isinstance(event, PartDelta) else self._call_flow(event)

    def _close(self) -> bytes:
        """The bytes to send when no more events come: an error, if it is not complete (G1)."""
        return b"" if self._is_over else self._stream_error(INTERRUPTED)

    # --- what is the same for all dialects

    def _response_start(self, event: events.ResponseStart) -> bytes:
        if event.restarts:  # what was sent can't be taken back, nor another answer joined to it
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
        """An error is the last thing to be said."""
        self._is_over = True
        return self._error(event)

    def _opaque_event(self, event: events.OpaqueEvent) -> bytes:
        """An event of this dialect that nobody knows; those of others have no place here."""
        payload = event.payload
        if event.dialect == self._dialect and isinstance(payload, dict):
            written = self._opaque(payload)
            if written is not None:
                return written
        if not event.is_progress:
            self._lose("events", "an event that has no place here is left out")
        return b""

    def _response_end(self, _event: events.ResponseEnd) -> bytes:
        written = self._end()
        self._is_over = True
        return written

    # --- what dialects say for themselves

    def _nothing(self, _event: Any) -> bytes:
        return b""

    _part_start = _part_delta = _part_stop = _tool_call_delta = _nothing
    """Nothing to send; whoever leaves it so has to report at the end what was not written."""

    def _part_flow(self, event: PartDelta) -> Flow | None:  # noqa: ARG002 - derived ones need it
        """How the next text of a part is written, after this one."""
        return None

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:  # noqa: ARG002 - as above
        """How the next arguments of a call are written, after these."""
        return None

    def _started(self, event: events.ResponseStart) -> bytes:  # noqa: ARG002 - some look at the event
        """More is known of the response."""
        return b""

    def _error(self, error: events.StreamError) -> bytes:
        """The frame of an error."""
        raise NotImplementedError

    def _opaque(self, payload: dict[str, Any]) -> bytes | None:  # noqa: ARG002 - most do
        """The frame of an event of this dialect that nobody knows; None where it has no place."""
        return None

    def _end(self) -> bytes:
        """The last frames of a response that is complete."""
        raise NotImplementedError

    # --- reports

    def _lose(self, path: str, reason: str) -> None:
        self._note([Loss(path, reason)])

    def _note(self, losses: Iterable[Loss], repairs: Iterable[Repair] = ()) -> None:
        self._collect()
        self._losses.extend(losses)
        self._losses.repair(repairs)

    def _collect(self) -> None:
        """Take what was noted in the meantime, so that each thing is told once, in order."""
        reports = self._reports
        if reports is not None:
            self._losses.extend(reports.losses)
            self._losses.repair(reports.repairs)
            reports.losses.clear()
            reports.repairs.clear()


class SentPart:
    """A part that is being written: its number in the message, and what was sent of it."""

    __slots__ = ("cited", "is_sealed", "number", "part", "pieces")

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.pieces: list[str] = []
        self.cited = 0
        self.is_sealed = False

    def note(self, sent: AnyPart) -> None:
        """Note what is sent of it now."""
        if isinstance(sent, ToolCall):
            self.pieces.append(arguments_of(sent))
        elif isinstance(sent, TEXTS):
            self.pieces.append(sent.text)
            if isinstance(sent, Text):
                self.cited += len(sent.citations)
            elif isinstance(sent, Thinking) and (sent.signature, sent.data) != (None, None):
                self.is_sealed = True

    def rest(self, final: AnyPart, lose: Callable[[str], None]) -> Text | Thinking | Refusal | None:
        """What the final form of a text adds to what was sent (W26); it can't take any back.

        None where it is no text, or another kind of text.
        """
        if not isinstance(final, TEXTS) or type(final) is not type(self.part):
            if type(final) is not type(self.part):
                lose(CORRECTED)
            return None
        more = unsent(self.pieces, final.text)
        if more is None:
            lose(CORRECTED)
        if isinstance(final, Text):
            return final.replace(text=more or "", citations=final.citations[self.cited :])
        return final.replace(text=more or "")


def piece_of(part: AnyPart, delta: events.PartDelta) -> Thinking | Refusal | None:
    """What thinking or a refusal grows by, as a part of its own; None for other parts."""
    fields: dict[str, Any] = {"origin": part.origin, "extras": part.extras}
    if isinstance(part, Thinking):
        fields["signature"] = delta.signature
        return Thinking(delta.text or "", delta.data, part.form, **fields)
    return Refusal(delta.text or "", **fields) if isinstance(part, Refusal) else None


def arguments_of(call: ToolCall) -> str:
    """The arguments that a call starts with: an empty object is none yet."""
    return call.raw if call.raw is not None else call.raw_arguments if call.input else ""


def unsent(sent: Iterable[str], whole: str) -> str | None:
    """What pieces have not said of a whole text; None where they said something else (W26)."""
    said = "".join(sent)
    return whole[len(said) :] if whole.startswith(said) else None


def unsent_arguments(sent: Sequence[str], whole: str) -> str | None:
    """As `unsent`, of a call's arguments: nothing where they are the same in other words."""
    more = unsent(sent, whole)
    if more is not None or not _is_same_json("".join(sent), whole):
        return more
    return ""


def _is_same_json(one: str, other: str) -> bool:
    try:
        return bool(loads(one) == loads(other))
    except InvalidInputError:
        return False
