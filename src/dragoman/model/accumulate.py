"""Assembles stream events into a response.

Text is collected in pieces and joined once; arguments are never parsed. A running bracket count
tells whether a tool call's JSON is complete. That distinguishes a new call from a continuation on
servers that send index 0 for every call, or no index at all (W7, W8, W87).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from msgspec import UNSET, structs

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import derived_call_id, response_identity
from dragoman.model.events import (
    NOT_STARTED,
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
from dragoman.model.frozen import EMPTY
from dragoman.model.ids import new_id
from dragoman.model.json_progress import JsonProgress, is_beginning
from dragoman.model.media import Audio
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Citation, Refusal, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call
from dragoman.model.usage import FinishReason, Usage

_MAX_PENDING = 64  # events
_NO_ARGUMENTS = JsonProgress()  # shared by all parts that are not calls, and never fed


def _joined(known: Any, more: Any) -> Any:
    """Merges two mappings; a value that is not a mapping is replaced."""
    are_fields = isinstance(known, Mapping) and isinstance(more, Mapping)
    return {**known, **more} if are_fields else more


class GrowingPart:
    """A part under construction."""

    __slots__ = ("citations", "data", "extras", "is_stopped", "part", "pieces", "place",
                 "progress", "signature", "wire_index")  # fmt: skip

    def __init__(self, part: AnyPart) -> None:
        self.part = part
        self.pieces: list[str] = []
        self.signature: list[str] = []
        self.data: list[str] = []
        self.citations: list[Citation] = []
        self.extras: dict[str, Any] = {}
        self.is_stopped = False
        self.progress = JsonProgress() if isinstance(part, ToolCall) else _NO_ARGUMENTS
        self.wire_index: int | None = None
        self.place = 0  # index among the calls, if it is one

    def grow(self, delta: PartDelta) -> None:
        """Appends a delta."""
        if delta.text:
            self.pieces.append(delta.text)
            if delta.signature is None and delta.data is None and delta.extras is EMPTY:
                if delta.citations:
                    self.citations.extend(delta.citations)
                return
        if delta.signature:
            self.signature.append(delta.signature)
        if delta.data:
            self.data.append(delta.data)
        if delta.citations:
            self.citations.extend(delta.citations)
        for dialect, fields in delta.extras.items():
            self.extras[dialect] = _joined(self.extras.get(dialect), fields)

    @property
    def is_open_thought(self) -> bool:
        """Whether it is a thought that may go on: its seal comes last."""
        part = self.part
        if not isinstance(part, Thinking) or self.is_stopped:
            return False
        return not (part.signature or part.data or self.signature or self.data)

    @property
    def is_cut(self) -> bool:
        """Whether it is a call whose arguments may be incomplete."""
        part = self.part
        if not isinstance(part, ToolCall):
            return False
        written = (part.raw or "") + "".join(self.pieces)
        if part.kind == "custom" or not written or written.isspace():
            return not self.is_stopped  # a free text, or no arguments yet
        return is_beginning(written)

    def _grown(self) -> dict[str, Any]:
        """The text field of the part, with the pieces appended."""
        part, grown = self.part, "".join(self.pieces)
        if isinstance(part, ToolCall):
            return {"raw": (part.raw or "") + grown, "input": None}
        if isinstance(part, (Text, Thinking, Refusal)):
            return {"text": part.text + grown}
        if isinstance(part, Audio):
            return {"transcript": (part.transcript or "") + grown}
        return {}

    def built(self) -> AnyPart:
        """The part with all deltas applied."""
        part = self.part
        if type(part) is Text and not (self.signature or self.citations or self.extras):
            if not self.pieces:
                return part
            # Plain string concatenation: nothing to validate.
            return structs.replace(part, text="".join([part.text, *self.pieces]))
        changes = self._grown() if self.pieces else {}
        if self.signature:
            changes["signature"] = (part.signature or "") + "".join(self.signature)
        if self.data and isinstance(part, Thinking):
            changes["data"] = (part.data or "") + "".join(self.data)
        elif self.data and isinstance(part, Audio):
            data = _joined_base64([part.data or "", *self.data])
            changes |= {"data": data, "url": None, "file_id": None}  # only one may be set
        if self.citations and isinstance(part, Text):
            changes["citations"] = (*part.citations, *self.citations)
        if self.extras:
            late = {name: _joined(part.extras.get(name), self.extras[name])
                    for name in self.extras}  # fmt: skip
            changes["extras"] = {**part.extras, **late}
        return part.replace_unchecked(**changes) if changes else part


def _joined_base64(pieces: list[str]) -> str:
    """Joins pieces of base64; if one ends in padding, decodes all of them and joins the bytes."""
    if not any(piece.endswith("=") for piece in pieces[:-1]):
        return "".join(pieces)
    try:
        return b64encode(b"".join(map(b64decode, pieces))).decode("ascii")
    except ValueError:
        return "".join(pieces)  # not base64: kept as received


class _Growing:
    """A choice under construction."""

    __slots__ = ("by_id", "by_index", "by_wire_index", "calls", "extras", "finish", "finish_raw",
                 "id", "is_first", "logprobs", "message_extras", "slots")  # fmt: skip

    def __init__(self, is_first: bool) -> None:  # noqa: FBT001 - private, one caller
        self.id = ""  # of the message; created on first use and stable across reads
        self.is_first = is_first
        self.slots: list[GrowingPart] = []
        self.by_index: dict[int, GrowingPart] = {}
        self.calls: list[GrowingPart] = []
        self.by_id: dict[str, GrowingPart] = {}  # calls by id, for deltas that repeat it
        self.by_wire_index: dict[int, GrowingPart] = {}
        self.finish: FinishReason | None = None
        self.finish_raw: str | None = None
        self.logprobs: Any = None
        self.extras: Any = None
        self.message_extras: Any = EMPTY

    @property
    def ends_within_part(self) -> bool:
        if self.finish is not None or not self.slots:
            return False
        last = self.slots[-1]
        return last.is_open_thought or any(slot.is_cut for slot in self.calls)

    def start(self, index: int | None, part: AnyPart) -> GrowingPart:
        slot = GrowingPart(part)
        self.slots.append(slot)
        if index is not None:
            self.by_index[index] = slot
        if isinstance(part, ToolCall):
            slot.place = len(self.calls)
            self.calls.append(slot)
            self.by_id[part.id] = slot
        return slot

    def put(self, slot: GrowingPart, wire_index: int | None) -> None:
        """Records the index a server uses for a call; some change it during a call (W7)."""
        if wire_index is not None:
            slot.wire_index = wire_index
            self.by_wire_index[wire_index] = slot

    def at(self, wire_index: int | None) -> GrowingPart | None:
        """The call that currently has this wire index."""
        slot = None if wire_index is None else self.by_wire_index.get(wire_index)
        return slot if slot is not None and slot.wire_index == wire_index else None


class MessageAccumulator:
    """Assembles the events of a stream into a `Response`.

    >>> accumulator = MessageAccumulator()
    >>> for text in ("Hel", "lo"):
    ...     accumulator.add(PartDelta(0, text))
    >>> str(accumulator.message)
    'Hello'

    `response` can be read at any time and holds everything received so far. `is_complete` tells
    whether the provider has signalled the end of the response.

    Events are assembled when something is asked of them: many short streams are only translated.
    """

    def __init__(self) -> None:
        self._pending: list[Event] = []
        self._choices: dict[int, _Growing] = {}
        self._first_id = ""  # created once, so it is the same before and after the first event
        self._start = NOT_STARTED
        self._usage: Usage | None = None
        self._is_complete = False
        self._errors: list[StreamError] = []
        self._opaque: list[OpaqueEvent] = []

    @property
    def is_complete(self) -> bool:
        """Whether the provider has signalled the end of the response."""
        self.assemble()
        return self._is_complete

    @property
    def ends_within_part(self) -> bool:
        """Whether a choice without a finish reason ends within a call or a thought."""
        self.assemble()
        return any(growing.ends_within_part for growing in self._choices.values())

    @property
    def errors(self) -> list[StreamError]:
        """The errors so far."""
        self.assemble()
        return self._errors

    @property
    def opaque(self) -> list[OpaqueEvent]:
        """The events without a canonical equivalent so far."""
        self.assemble()
        return self._opaque

    def add(self, event: Event) -> None:
        """Adds one event."""
        if type(event) not in self._HANDLERS:
            msg = f"expected an event, not {type(event).__name__}"
            raise InvalidInputError(msg)
        pending = self._pending
        pending.append(event)
        if len(pending) > _MAX_PENDING:
            self.assemble()

    def assemble(self) -> None:
        """Assembles the events added so far; everything that needs it does so itself."""
        if self._pending:
            pending, self._pending = self._pending, []
            for event in pending:
                self._HANDLERS[type(event)](self, event)

    def texts_of(self, delta: PartDelta | ToolCallDelta) -> tuple[list[str], ...]:
        """The lists that collect the text of such a delta while its part is open.

        Callers may append the text of many deltas directly, instead of adding each delta; after
        other events, `assemble` must be called first.
        """
        self.assemble()
        growing = self._choices.get(delta.choice)
        if growing is None:
            return ()
        if isinstance(delta, PartDelta):
            slot = growing.by_index.get(delta.index)
            return () if slot is None else (slot.pieces,)
        slot = _slot_of(growing, delta)
        return () if slot is None else (slot.pieces, slot.progress.pending)

    def extend(self, events: Iterable[Event]) -> None:
        """Adds several events."""
        for event in events:
            self.add(event)

    def add_call(self, delta: ToolCallDelta) -> tuple[int, ToolCall]:
        """Adds a tool call delta; returns the call's index and the call so far (id, name, kind)."""
        self.assemble()
        slot = self._tool_call_delta(delta)
        return slot.place, _call(slot)

    def place_of(self, delta: ToolCallDelta) -> int | None:
        """The index of the call that a delta would continue, or `None` if it would start one."""
        self.assemble()
        growing = self._choices.get(delta.choice)
        slot = None if growing is None else _slot_of(growing, delta)
        return None if slot is None else slot.place

    def resolved(self, delta: ToolCallDelta) -> ToolCallDelta:
        """The delta with its `index` replaced by the actual index of its call.

        Call this before adding the delta. Both forms assemble to the same calls.
        """
        self.assemble()
        growing = self._choices.get(delta.choice)
        slot = _slot_of(growing, delta) if growing is not None else None
        calls = growing.calls if growing is not None else ()
        place = len(calls) if slot is None else slot.place
        return delta if delta.index == place else delta.replace(index=place)

    @property
    def message(self) -> Message:
        """The first choice's message so far."""
        self.assemble()
        if not self._choices:
            return make_message(Role.ASSISTANT, id=self._first())
        return self.response.message

    @property
    def response(self) -> Response:
        """The response so far."""
        self.assemble()
        start = self._start
        found = sorted(self._choices.items())
        choices = tuple([self._choice(index, growing) for index, growing in found])
        return Response(
            choices=choices,
            usage=self._usage,
            model=start.model,
            id=start.id,
            created_at=start.created_at,
            extras=start.extras,
        )

    def _choice(self, index: int, growing: _Growing) -> Choice:
        if not growing.id:
            growing.id = self._first() if growing.is_first else new_id()
        message = make_message(
            Role.ASSISTANT,
            tuple([slot.built() for slot in growing.slots]),
            id=growing.id,
            origin=self._start.origin,
            finish=growing.finish,
            extras=growing.message_extras,
            usage=self._usage.counts if self._usage and len(self._choices) == 1 else None,
        )
        return Choice(
            index, message, growing.finish, growing.finish_raw, growing.logprobs, growing.extras
        )

    # --- event handlers

    def _growing(self, choice: int) -> _Growing:
        growing = self._choices.get(choice)
        if growing is None:
            growing = self._choices[choice] = _Growing(not self._choices)
        return growing

    def _first(self) -> str:
        """The id of the first message, created on first use."""
        if not self._first_id:
            self._first_id = new_id()
        return self._first_id

    def _response_start(self, event: ResponseStart) -> None:
        if event.restarts:
            self._choices, self._start, self._usage = {}, NOT_STARTED, None
            self._first_id = ""
            self._errors, self._opaque = [], []
        # A second start (some servers repeat it in each chunk) fills gaps; it does not reset.
        self._start = self._start.filled(event)

    def _part_start(self, event: PartStart) -> None:
        slot = self._growing(event.choice).start(event.index, event.part)
        if isinstance(event.part, ToolCall) and event.part.raw:
            slot.progress.feed(event.part.raw)

    def _part_delta(self, event: PartDelta) -> None:
        growing = self._growing(event.choice)
        slot = growing.by_index.get(event.index)
        if slot is None:  # the server never sent a part start: assume text
            slot = growing.start(event.index, Text(""))
        slot.grow(event)

    def _part_stop(self, event: PartStop) -> None:
        slot = self._growing(event.choice).by_index.get(event.index)
        if slot is None:
            if event.part is None:
                return
            slot = self._growing(event.choice).start(event.index, event.part)
        elif event.part is not None:
            fresh = GrowingPart(event.part)
            slot.part, slot.pieces, slot.signature = fresh.part, fresh.pieces, fresh.signature
            slot.data, slot.citations, slot.extras = fresh.data, fresh.citations, fresh.extras
        slot.is_stopped = True

    def _tool_call_delta(self, event: ToolCallDelta) -> GrowingPart:
        growing = self._growing(event.choice)
        slot = _slot_of(growing, event)
        if slot is None:
            # Ids may be missing, empty or duplicated (I5): such calls get a derived one.
            is_free = bool(event.id) and event.id not in growing.by_id
            call = make_call(
                event.id if event.id and is_free else self._derived_id(growing, event),
                event.name or "",
                raw="",
                kind=event.kind,
                signature=event.signature,
                extras=event.extras,
                wire_id=UNSET if is_free else event.id or None,
            )
            slot = growing.start(None, call)
        else:
            slot.part = call = _completed(slot, event)
            growing.by_id[call.id] = slot
        growing.put(slot, event.index)
        if event.arguments_delta:
            slot.pieces.append(event.arguments_delta)
            slot.progress.feed(event.arguments_delta)
        return slot

    def _derived_id(self, growing: _Growing, delta: ToolCallDelta) -> str:
        start = self._start
        identity = response_identity(start.id, start.created_at, start.model)
        place = (delta.choice, len(growing.calls) + 1)
        said = (delta.name or "", None)  # the arguments have not arrived yet
        return derived_call_id(identity, place, said, growing.by_id.__contains__)

    def _usage_update(self, event: UsageUpdate) -> None:
        self._usage = event.usage

    def _choice_finish(self, event: ChoiceFinish) -> None:
        growing = self._growing(event.choice)
        growing.finish, growing.finish_raw = event.finish, event.finish_raw
        growing.logprobs, growing.extras = event.logprobs, event.extras
        growing.message_extras = event.message_extras

    def _stream_error(self, event: StreamError) -> None:
        self._errors.append(event)

    def _opaque_event(self, event: OpaqueEvent) -> None:
        self._opaque.append(event)

    def _response_end(self, _event: ResponseEnd) -> None:
        self._is_complete = True

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], object]]] = {
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


def _slot_of(growing: _Growing, delta: ToolCallDelta) -> GrowingPart | None:
    """The call that a delta continues, or `None` if it starts a new one."""
    calls = growing.calls
    if not calls:
        return None
    if delta.id and (known := growing.by_id.get(delta.id)) is not None:
        return None if _starts_new_call(known, delta) else known
    place = growing.at(delta.index)
    return _named(calls, place, delta) if delta.name else _nameless(calls, place, delta)


def _nameless(
    calls: list[GrowingPart], slot: GrowingPart | None, delta: ToolCallDelta
) -> GrowingPart | None:
    if not delta.id:
        return slot or calls[-1]  # arguments alone never start a call, whatever the index
    if slot is None and delta.index is not None:
        return None  # a new id at a new index; the name follows later
    slot = slot or calls[-1]
    # An id that arrives late, or changes before the arguments are complete, starts no new call.
    return None if slot.progress.is_complete and _call(slot).wire_id is UNSET else slot


def _named(
    calls: list[GrowingPart], slot: GrowingPart | None, delta: ToolCallDelta
) -> GrowingPart | None:
    if delta.index is None and not delta.id:
        last = calls[-1]
        return last if _call(last).name == delta.name and not last.progress.is_complete else None
    if slot is None or slot.progress.is_complete:
        return None
    if delta.id and _call(slot).wire_id is UNSET:
        return None  # a different id and name at the same index: a different call
    if _call(slot).name == delta.name or not slot.progress.is_started:
        return slot  # the name repeated, or its next piece
    return None


def _starts_new_call(slot: GrowingPart, delta: ToolCallDelta) -> bool:
    """Whether a delta with a known id starts a new call.

    True if the known call is complete and the delta has a name and arguments again. Servers that
    repeat id and name in every delta also do so in a final delta without arguments.
    """
    return bool(delta.name and delta.arguments_delta) and slot.progress.is_complete


def _completed(slot: GrowingPart, delta: ToolCallDelta) -> ToolCall:
    """The call with what a later delta adds: an id, a piece of the name, a signature, extras."""
    call = _call(slot)
    changes: dict[str, Any] = {}
    if delta.id and call.wire_id is None:
        changes = {"id": delta.id, "wire_id": UNSET}
    if delta.name and delta.name != call.name and not slot.progress.is_started:
        changes["name"] = call.name + delta.name
    if delta.signature:
        changes["signature"] = delta.signature
    if delta.extras:
        changes["extras"] = {**call.extras, **delta.extras}
    return call.replace_unchecked(**changes) if changes else call


def _call(slot: GrowingPart) -> ToolCall:
    assert isinstance(slot.part, ToolCall)  # noqa: S101 - only calls are in `calls`
    return slot.part
