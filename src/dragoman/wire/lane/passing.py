"""Reads usage and other metadata from a stream that is passed through, without decoding the rest.

A stream that goes to the client in the dialect in which it came needs no translation. Only frames
with usage, model, and finish reason are decoded; each dialect's decoder declares how to recognise
them in `PASSING`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import Any

from dragoman.errors import DragomanError
from dragoman.model.events import ChoiceFinish, ResponseStart, StreamError
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.answer_errors import error_in
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.framing import CR, MAX_FRAME
from dragoman.wire.stream_decoding import Passing

Literals = tuple[bytes, ...]
Patterns = tuple[re.Pattern[bytes], ...]

_HOLDERS = (ResponseStart, ChoiceFinish)
_LONGEST_END = 3  # bytes


class PassingStream:
    """Finds the usage in a stream that is passed through, split anywhere; never raises.

    >>> passing = PassingStream("anthropic")
    >>> passing.feed(b'data: {"type":"message_delta","usage":{"output_tokens":3}}')
    >>> passing.usage is None
    True
    """

    def __init__(self, name: str | Dialect) -> None:
        speaker = dialect(name) if isinstance(name, str) else name
        self._decoder: Any = speaker.stream_decoder()
        self._passing: Passing | None = getattr(self._decoder, "PASSING", None)
        self._literals, self._patterns, self._repeated = _compiled(self._passing)
        self._rest = bytearray()  # of the incomplete frame
        self._last: bytes | None = None
        self._has_begun = self._is_over = False
        self.errors: list[tuple[StreamError, bytes]] = []
        """The errors that the provider reported so far, each with its frame."""

    @property
    def has_begun(self) -> bool:
        """Whether a frame came that is no comment."""
        return self._has_begun

    @property
    def usage(self) -> Usage | None:
        """The usage so far; complete after `close`."""
        return self.response.usage

    @property
    def model(self) -> str | None:
        """The model that responded."""
        return self.response.model

    @property
    def id(self) -> str | None:
        """The response's id."""
        return self.response.id

    @property
    def finish(self) -> FinishReason | None:
        """The finish reason of the first choice, if it has finished."""
        return self.response.finish

    @property
    def is_complete(self) -> bool:
        """Whether the provider signalled the end; known after `close`."""
        return bool(self._decoder.is_complete)

    @property
    def response(self) -> Response:
        """The decoded response, without its content."""
        response: Response = self._decoder.response
        return response

    def feed(self, data: bytes) -> None:
        """Process bytes that are passed through."""
        passing, rest = self._passing, self._rest
        if self._is_over:
            return
        if passing is None:
            self._read(data)
            return
        if not rest and data.endswith(passing.marks):  # the usual case: whole frames
            if not self._has_begun or self._repeated or self._is_telling(data):
                self._look(data, passing)
            return
        seen = max(0, len(rest) - _LONGEST_END)
        rest += data
        found = _last_end(rest, seen, passing)
        if found:
            whole = bytes(rest[:found])
            del rest[:found]
            self._look(whole, passing)
        elif len(rest) > MAX_FRAME:
            self._is_over = True

    def close(self) -> None:
        """Process the end of the stream."""
        if not self._is_over and self._passing is not None:
            self._read_last()  # what is left may be cut off, and then replaces nothing
            self._look(bytes(self._rest), self._passing)
            self._read_last()
        self._is_over = True
        with suppress(DragomanError):  # reported by whoever reads the stream itself
            self._decoder.close()

    def _look(self, whole: bytes, passing: Passing) -> None:
        """Decode the frames with metadata."""
        is_telling = self._is_telling(whole)
        repeated = self._repeated
        if self._has_begun and not is_telling and not (repeated and repeated.search(whole)):
            return
        done = 0
        while not self._has_begun and not self._is_over and done < len(whole):
            start, done = done, _frame(whole, done, done, passing)[1]
            # The first frame, apart from comments, has id and model.
            self._has_begun = self._read(whole[start:done])
        for place in self._places(whole, done) if is_telling else ():
            if place >= done:
                start, end = _frame(whole, done, place, passing)
                self._note_last(whole, done, start, passing)
                self._read_last()
                self._read(whole[start:end])
                done = end
        self._note_last(whole, done, len(whole), passing)

    def _is_telling(self, whole: bytes) -> bool:
        for literal in self._literals:
            if literal in whole:
                return True
        for pattern in self._patterns:  # noqa: SIM110 - a generator would take twice as long
            if pattern.search(whole) is not None:
                return True
        return False

    def _places(self, whole: bytes, start: int) -> list[int]:
        """Where something tells of metadata, in order."""
        places: list[int] = []
        for literal in self._literals:
            place = whole.find(literal, start)
            while place >= 0:
                places.append(place)
                place = whole.find(literal, place + 1)
        for pattern in self._patterns:
            places += [found.start() for found in pattern.finditer(whole, start)]
        return sorted(places)

    def _note_last(self, whole: bytes, start: int, end: int, passing: Passing) -> None:
        """Keep the last of the repeated frames."""
        place = None
        for found in self._repeated.finditer(whole, start, end) if self._repeated else ():
            place = found.start()
        if place is not None:
            self._last = whole[slice(*_frame(whole, start, place, passing))]

    def _read_last(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            self._read(last)

    def _read(self, frames: bytes) -> bool:
        """Decode frames; returns whether they had any meaning."""
        try:
            found = self._decoder.feed(frames)
        except DragomanError:
            self._is_over = True  # not a stream of this dialect
            return False
        errors = [event for event in found if type(event) is StreamError]
        if not errors:  # it may stand inside an event that doesn't end the stream
            held = [error_in(event.extras) for event in found if isinstance(event, _HOLDERS)]
            errors = [told.event for told in held if told is not None]
        self.errors += [(event, frames) for event in errors]
        return bool(found)


@cache
def _compiled(passing: Passing | None) -> tuple[Literals, Patterns, re.Pattern[bytes] | None]:
    """The patterns that are plain bytes, the others, and that of repeated frames.

    Searching for each on its own takes a tenth of the time of a combined pattern.
    """
    telling, repeated = ((), None) if passing is None else passing[:2]
    plain = {each: each.replace(b"\\", b"") for each in telling}
    literals = tuple([plain[each] for each in telling if re.escape(plain[each]) == each])
    patterns = tuple([re.compile(each) for each in telling if plain[each] not in literals])
    return literals, patterns, None if repeated is None else re.compile(repeated)


def _last_end(data: bytearray, start: int, passing: Passing) -> int:
    """The position where the last whole frame ends; 0 if there is none."""
    ends = [(data.rfind(mark, start), len(mark)) for mark in passing.marks]
    return max([at + size for at, size in ends if at >= 0], default=0)


def _frame(whole: bytes, done: int, place: int, passing: Passing) -> tuple[int, int]:
    """The span of the frame around a position; not before `done`."""
    marks = [mark for mark in passing.marks if CR not in mark or CR in whole]
    starts = [(whole.rfind(mark, done, place), len(mark)) for mark in marks]
    start = max([at + size for at, size in starts if at >= 0], default=done)
    end = passing.end.search(whole, place)
    return start, len(whole) if end is None else end.end()
