"""Base class of the stream decoders: frames become events, which add up to a response.

A dialect's decoder defines what one frame means. This module splits bytes into frames, emits events
in order, accumulates the response, numbers the parts, and handles broken streams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import is_
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop, StreamError
from dragoman.model.jsontext import loads
from dragoman.model.responses import Choice, Response
from dragoman.wire.framing import MAX_FRAME, Framing, SteppedFraming
from dragoman.wire.lane import switch
from dragoman.wire.lane.runs import EventList, Run
from dragoman.wire.lane.templates import Growth, Noises, Template, template_of

FrameT = TypeVar("FrameT")
Emit = Callable[[Event], None]
_FAULTS = (InvalidInputError, WireError, RecursionError)
DONE = "[DONE]"
"""The last frame of a Chat stream; gateways send it in other dialects too."""
_MAX_UNREPEATED = 256  # frames to decode one by one while none repeats the one before
_TEMPLATE_COST = 8  # the cost of making a template, in frames


class Passing(NamedTuple):
    """How to recognise the frames with metadata of a stream, such as usage (`lane.passing`)."""

    telling: tuple[bytes, ...]
    """Patterns found in such frames and in hardly any other; fast if they begin with a literal."""
    repeated: bytes | None = None
    """A pattern found in many frames, of which only the last counts."""
    marks: tuple[bytes, ...] = (b"\n\n", b"\n\r\n")
    """Frame terminators."""
    end: re.Pattern[bytes] = re.compile(rb"\n\r?\n")
    """The frame terminators as a pattern."""


class _Fault(NamedTuple):
    """What is wrong with a stream, and where.

    Not the error itself: in a variable of the function that raises it, it would keep that frame.
    """

    problem: str
    path: str


class Emitted:
    """The events of a stream: those not returned yet, and the response that they add up to.

    It is apart from the decoder, so that the decoder's parts can emit events without referring to
    the decoder: such a cycle would keep every stream in memory until the garbage collector runs.
    """

    __slots__ = ("events", "folded")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.folded = MessageAccumulator()

    def add(self, event: Event) -> None:
        """Emit an event."""
        self.folded.add(event)
        self.events.append(event)


class FrameDecoder(Generic[FrameT]):
    """Decodes one response from a stream's bytes, split anywhere.

    Bytes that are not a stream of the dialect raise `WireError`. The next call returns the events
    before them, and nothing more is read.
    """

    _dialect: ClassVar[str]
    PASSING: ClassVar[Passing | None] = None
    """How to find the frames with usage; None: any frame may have it."""
    _noise: ClassVar[Noises] = None
    """Fields of frames that can be ignored when comparing frames; None: templates are not used.

    A dialect that sets this, if only to an empty mapping, has a framing that can be fed one frame
    at a time, and sets `_growth` to describe a frame that can serve as a template for the next.
    """

    def __init__(self, frames: Framing[FrameT]) -> None:
        self._frames = frames
        self._budget = _MAX_UNREPEATED if self._noise is not None and switch.is_on() else 0
        self._template: Template | None = None
        self._ready: Template | None = None  # the same, while no frame is incomplete
        self._growth: Growth | None = None
        self._grown_at: tuple[Any, ...] | None = None  # which part the previous frame extended
        self._emitted = emitted = Emitted()
        self._folded = emitted.folded
        self._emit: Emit = emitted.add
        self._runs: list[Run] = []  # among these events
        self._is_closed = False

    @property
    def response(self) -> Response:
        """The response so far, its parts in the order of a non-streamed body."""
        response = self._folded.response
        choices = tuple([self._arranged(choice) for choice in response.choices])
        is_same = all(map(is_, choices, response.choices))
        return response if is_same else response.replace(choices=choices)

    @property
    def is_complete(self) -> bool:
        """Whether the provider signalled the end; always false for a stream that ends early."""
        return self._folded.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """The events completed by these bytes; raises `WireError` if they are not valid frames."""
        if not self._is_closed:
            ready = self._ready
            if ready is not None and len(data) <= MAX_FRAME:
                start = self._run(ready, data, 0)
                if start == len(data):  # the usual case
                    return self._taken()
                data = data[start:]
            fault = None
            try:
                if self._budget > 0 and len(data) <= MAX_FRAME:
                    self._step(data)
                else:
                    self._ready = None
                    for frame in self._frames.feed(data):
                        self._take(frame)
            except _FAULTS as error:
                fault = self._broken(error)
                with suppress(*_FAULTS):
                    self._end()  # what was held back
            if fault is not None:  # outside the handler: the inner error is not its context
                raise WireError(fault.problem, dialect=self._dialect, path=fault.path)
        return self._taken()

    def _taken(self) -> list[Event]:
        """The events since the last call."""
        emitted = self._emitted
        events, emitted.events = emitted.events, []
        if self._runs:
            events = EventList(events, self._runs)
            self._runs = []
        return events

    def _step(self, data: bytes) -> None:
        """Decode frame by frame; frames that repeat the previous one are handled as bytes."""
        frames: SteppedFraming[FrameT] = self._frames  # type: ignore[assignment]  # see `_noise`
        self._growth = self._ready = None
        single = frames.single(data)
        if single is not None:  # the usual case
            self._take(single)
            self._budget -= 1
            self._remember(data)
            if self._template is not None:
                self._ready = self._template
                self._folded.assemble()  # the texts follow those of the events so far
            return
        position, size, mark = 0, len(data), frames.mark(data)
        while position < size:
            found = data.find(mark, position)
            end = size if found < 0 or self._budget <= 0 else found + len(mark)
            frame = data[position:end] if end - position < size else data
            is_between, position = frames.is_between, end
            self._growth = self._ready = None
            whole = frames.feed(frame)
            for each in whole:
                self._take(each)
            if whole:
                self._budget -= len(whole)
                self._remember(frame if is_between and len(whole) == 1 else None)
            template = self._template
            if template is not None and frames.is_between:
                self._ready = template
                self._folded.assemble()  # the texts follow those of the events so far
                position = self._run(template, data, position)

    def _run(self, template: Template, data: bytes, position: int) -> int:
        """Read frames that repeat the previous one; returns the position where others begin."""
        end = template.run(data, position, self._emitted.events, self._runs)
        if end > position:
            self._budget = _MAX_UNREPEATED
            if template.counts is not None:
                self._take_counts(template.counts)
        return end

    def _remember(self, frame: bytes | None) -> None:
        """Make a template of the frame just read, if it extends the same part as the one before."""
        growth, place = self._growth, self._grown_at
        if growth is None:
            self._grown_at = self._template = None
            return
        self._grown_at = growth.place
        if self._grown_at != place:
            self._template = None
        elif frame is not None:  # otherwise it came in two chunks, and the current template stays
            self._template = self._template_from(frame, growth)

    def _template_from(self, frame: bytes, growth: Growth) -> Template | None:
        frames: SteppedFraming[FrameT] = self._frames  # type: ignore[assignment]  # see `_noise`
        body, texts = frames.body(frame), self._folded.texts_of(growth.delta)
        if body is None or not texts:
            return None
        self._budget -= _TEMPLATE_COST
        return template_of(frame, body, growth, self._noise, texts)

    def close(self) -> list[Event]:
        """The remaining events when the stream ends; see also `is_complete`."""
        if not self._is_closed:
            fault = None
            with suppress(InvalidInputError, WireError):  # the stream ended within a frame
                for frame in self._frames.close():
                    self._take(frame)
            try:
                self._end()
            except _FAULTS as error:
                fault = self._broken(error)
            self._is_closed = True
            if fault is not None:
                raise WireError(fault.problem, dialect=self._dialect, path=fault.path)
        return self._taken()

    def _broken(self, error: Exception) -> _Fault:
        """What to raise when decoding fails: the peer is at fault. Nothing more is read."""
        self._is_closed = True
        is_deep = isinstance(error, RecursionError)
        problem = "the JSON nests too deeply" if is_deep else str(error)
        return _Fault(problem, getattr(error, "path", None) or "$")

    def _arranged(self, choice: Choice) -> Choice:
        parts = self._in_order(choice.message.parts)
        if parts is choice.message.parts:
            return choice
        return choice.replace(message=choice.message.replace_unchecked(parts=parts))

    # --- implemented by dialects

    def _take(self, frame: FrameT) -> None:
        """Decode one frame."""
        raise NotImplementedError

    def _take_counts(self, counts: bytes) -> None:
        """Take the usage of the last of several repeated frames; see `Growth.counts`."""

    def _end(self) -> None:
        """Emit what is left when the stream has ended; `_is_closed` if it broke off.

        What would have come with a finish reason is emitted as an opaque event if there is none.
        """

    def _in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Order parts as in a non-streamed body; returns the same tuple if they already are."""
        return parts


class PartEvents:
    """Numbers the parts of one choice, and emits their events."""

    __slots__ = ("_choice", "_emit", "count", "open")

    def __init__(self, emit: Emit, choice: int = 0) -> None:
        self._emit = emit
        self._choice = choice
        self.count = 0
        """How many parts have started."""
        self.open: list[int] = []
        """The indices of parts that have not stopped."""

    def start(self, part: AnyPart) -> int:
        """Start a part; returns its index."""
        index = self.count
        self.count += 1
        self.open.append(index)
        self._emit(PartStart(index, part, self._choice))
        return index

    def grow(self, index: int, text: str | None = None, **growth: Any) -> None:
        """Extend a part."""
        self._emit(PartDelta(index, text, choice=self._choice, **growth))

    def stop(self, index: int, final: AnyPart | None = None) -> None:
        """Stop a part; `final` is the complete part, if the wire repeats it."""
        if index in self.open:
            self.open.remove(index)
        self._emit(PartStop(index, final, self._choice))

    def whole(self, part: AnyPart) -> int:
        """Emit a part that arrives complete; returns its index."""
        index = self.start(part)
        self.stop(index)
        return index

    def stop_all(self) -> None:
        """Stop all open parts."""
        for index in list(self.open):
            self.stop(index)


def object_in(data: str | bytes) -> dict[str, Any]:
    """The JSON object in a frame."""
    wire = loads(data)
    if type(wire) is dict:
        return wire
    msg = "a frame in the stream is not a JSON object"
    raise WireError(msg)


def stream_error(message: Any, code: Any, status: Any, extras: Mapping[str, Any]) -> StreamError:
    """A mid-stream error; values of unexpected types are left to the extras."""
    return StreamError(
        message if type(message) is str else "",
        code if type(code) is str else None,
        status if type(status) is int else None,
        extras,
    )
