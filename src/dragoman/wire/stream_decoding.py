"""What the stream decoders of all dialects share: frames become events, which add up to a response.

A dialect's decoder says what one frame means. Here are the bytes cut into frames, the events given
out in order and folded into the response so far, the numbers of the parts, and what happens to a
stream that breaks.
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
from dragoman.wire.lane.templates import Growth, Noises, Template, template_of

FrameT = TypeVar("FrameT")
Emit = Callable[[Event], None]
_FAULTS = (InvalidInputError, WireError, RecursionError)
DONE = "[DONE]"
"""Chat's last frame, which gateways send in other dialects too."""
_PATIENCE = 256  # frames that are read one by one while none of them repeats
_LESSON = 8  # what making a template costs, in frames


class Passing(NamedTuple):
    """How to recognise the frames that tell what a stream says of itself (`lane.passing`)."""

    telling: tuple[bytes, ...]
    """What is in them, and in hardly any other: patterns, which are fast if they begin plainly."""
    repeated: bytes | None = None
    """What is in many frames, of which only the last one counts."""
    marks: tuple[bytes, ...] = (b"\n\n", b"\n\r\n")
    """What frames end with."""
    end: re.Pattern[bytes] = re.compile(rb"\n\r?\n")
    """The same, as a pattern."""


class FrameDecoder(Generic[FrameT]):
    """Reads one response out of a stream's bytes, cut anywhere.

    Bytes that are no stream of the dialect raise `WireError`. The events before them are given out
    by the next call, and nothing more is read.
    """

    _dialect: ClassVar[str]
    PASSING: ClassVar[Passing | None] = None
    """The frames that tell what the answer cost; None: every frame may."""
    _noise: ClassVar[Noises] = None
    """Fields that frames have and that mean nothing beyond them; None: no frame is a repetition.

    A dialect that has some, or an empty mapping, has a framing that can be stepped through, and
    says in `_growth` what a frame was that can be read as the template of the next ones.
    """

    def __init__(self, frames: Framing[FrameT]) -> None:
        self._frames = frames
        self._patience = _PATIENCE if self._noise is not None and switch.is_on() else 0
        self._template: Template | None = None
        self._ready: Template | None = None  # the same, while no frame is under way
        self._growth: Growth | None = None
        self._grown_at: tuple[Any, ...] | None = None  # where the frame before grew
        self._folded = MessageAccumulator()
        self._events: list[Event] = []
        self._is_closed = False

    @property
    def response(self) -> Response:
        """What has arrived so far, its parts in the order in which a plain body has them."""
        response = self._folded.response
        choices = tuple([self._arranged(choice) for choice in response.choices])
        is_same = all(map(is_, choices, response.choices))
        return response if is_same else response.replace(choices=choices)

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done; a stream that ends early never is."""
        return self._folded.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete; raises `WireError` where they are no frames."""
        if not self._is_closed:
            ready = self._ready
            if ready is not None and len(data) <= MAX_FRAME:
                start = self._run(ready, data, 0)
                if start == len(data):  # nearly always
                    events, self._events = self._events, []
                    return events
                data = data[start:]
            fault = None
            try:
                if self._patience > 0 and len(data) <= MAX_FRAME:
                    self._step(data)
                else:
                    self._ready = None
                    for frame in self._frames.feed(data):
                        self._take(frame)
            except _FAULTS as error:
                fault = self._broken(error)
            if fault is not None:
                raise fault  # outside the handler: the error behind it is not its context
        events, self._events = self._events, []
        return events

    def _step(self, data: bytes) -> None:
        """Read frame by frame, those that repeat the one before as bytes."""
        frames: SteppedFraming[FrameT] = self._frames  # type: ignore[assignment]  # see `_noise`
        position, size, mark = 0, len(data), b""
        while position < size:
            mark = mark or frames.mark(data)
            end = data.find(mark, position) + len(mark)
            if end < len(mark) or self._patience <= 0:
                end = size
            frame = data[position:end] if end - position < size else data
            is_between = frames.is_between
            self._growth, self._ready, position = None, None, end
            found = frames.feed(frame)
            for each in found:
                self._take(each)
            if found:
                self._patience -= len(found)
                self._remember(frame if is_between and len(found) == 1 else None)
            template = self._template
            if template is not None and frames.is_between:
                self._ready = template
                position = self._run(template, data, position)

    def _run(self, template: Template, data: bytes, position: int) -> int:
        """Read the frames that repeat the one before; returns where others begin."""
        end = template.run(data, position, self._events)
        if end > position:
            self._patience = _PATIENCE
            if template.counts is not None:
                self._take_counts(template.counts)
        return end

    def _remember(self, frame: bytes | None) -> None:
        """Make the template of a frame that was just read, if it repeats the one before."""
        growth, place = self._growth, self._grown_at
        self._grown_at = None if growth is None else growth.place
        if growth is None or self._grown_at != place:
            self._template = None
        elif frame is not None:  # else it came in two pieces, and repeats what is known
            self._template = self._template_from(frame, growth)

    def _template_from(self, frame: bytes, growth: Growth) -> Template | None:
        frames: SteppedFraming[FrameT] = self._frames  # type: ignore[assignment]  # see `_noise`
        body, texts = frames.body(frame), self._folded.texts_of(growth.delta)
        if body is None or not texts:
            return None
        self._patience -= _LESSON
        return template_of(frame, body, growth, self._noise, texts)

    def close(self) -> list[Event]:
        """What is left when the stream ends; whether it was complete, `is_complete` tells."""
        if not self._is_closed:
            fault = None
            with suppress(InvalidInputError, WireError):  # it ended in the middle of a frame
                for frame in self._frames.close():
                    self._take(frame)
            try:
                self._end()
            except _FAULTS as error:
                fault = self._broken(error)
            self._is_closed = True
            if fault is not None:
                raise fault
        events, self._events = self._events, []
        return events

    def _broken(self, error: Exception) -> WireError:
        """What to raise where reading fails: the peer is at fault. Nothing more is read."""
        self._is_closed = True
        is_deep = isinstance(error, RecursionError)
        problem = "the JSON nests too deeply" if is_deep else str(error)
        path = getattr(error, "path", None)
        return WireError(problem, dialect=self._dialect, path=path or "$")

    def _emit(self, event: Event) -> None:
        self._folded.add(event)
        self._events.append(event)

    def _emit_delta(self, delta: PartDelta) -> None:
        """As `_emit`, faster, for what most events are."""
        self._folded.grow(delta)
        self._events.append(delta)

    def _arranged(self, choice: Choice) -> Choice:
        parts = self._in_order(choice.message.parts)
        if parts is choice.message.parts:
            return choice
        return choice.replace(message=choice.message.replace_unchecked(parts=parts))

    # --- what dialects say for themselves

    def _take(self, frame: FrameT) -> None:
        """Read one frame."""
        raise NotImplementedError

    def _take_counts(self, counts: bytes) -> None:
        """What it has cost so far, as the last of several frames has it; see `Growth.counts`."""

    def _end(self) -> None:
        """The stream has ended: emit what is left."""

    def _in_order(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """The parts of a message as a plain body has them; the same where they are so already."""
        return parts


class PartEvents:
    """The parts of one choice: gives them their numbers, and emits their events."""

    __slots__ = ("_choice", "_emit", "count", "open")

    def __init__(self, emit: Emit, choice: int = 0) -> None:
        self._emit = emit
        self._choice = choice
        self.count = 0
        """How many parts have started."""
        self.open: list[int] = []
        """The indices of those that have not stopped."""

    def start(self, part: AnyPart) -> int:
        """Start a part; returns its index."""
        index = self.count
        self.count += 1
        self.open.append(index)
        self._emit(PartStart(index, part, self._choice))
        return index

    def grow(self, index: int, text: str | None = None, **growth: Any) -> None:
        """Let a part grow."""
        self._emit(PartDelta(index, text, choice=self._choice, **growth))

    def stop(self, index: int, final: AnyPart | None = None) -> None:
        """Stop a part; `final` is the whole of it, where the wire repeats it."""
        if index in self.open:
            self.open.remove(index)
        self._emit(PartStop(index, final, self._choice))

    def whole(self, part: AnyPart) -> int:
        """A part that comes in one piece; returns its index."""
        index = self.start(part)
        self.stop(index)
        return index

    def stop_all(self) -> None:
        """Stop all parts that are open."""
        for index in list(self.open):
            self.stop(index)


def object_in(data: str | bytes) -> dict[str, Any]:
    """The JSON object that a frame holds."""
    wire = loads(data)
    if type(wire) is dict:
        return wire
    msg = "a frame of the stream is not a JSON object"
    raise WireError(msg)


def stream_error(message: Any, code: Any, status: Any, extras: Mapping[str, Any]) -> StreamError:
    """An error in mid-stream; what is not of the type that it should be is left to the extras."""
    return StreamError(
        message if type(message) is str else "",
        code if type(code) is str else None,
        status if type(status) is int else None,
        extras,
    )
