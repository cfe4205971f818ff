"""What a stream says of itself while it passes: its usage, found without decoding the rest.

A stream that goes to the client in the dialect in which it came needs no translation. Of its bytes
only those frames are decoded that tell what it cost, who answered and why it ended; each dialect's
decoder says how to recognise them, in `PASSING`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from dragoman.errors import DragomanError
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.framing import MAX_FRAME
from dragoman.wire.stream_decoding import Passing

Searches = tuple[Callable[[bytes, int], "re.Match[bytes] | None"], ...]
_LONGEST_END = 3  # bytes


class PassingStream:
    """Finds the usage in a stream whose bytes pass, cut anywhere; raises for none of them.

    >>> passing = PassingStream("anthropic")
    >>> passing.feed(b'data: {"type":"message_delta","usage":{"output_tokens":3}}')
    >>> passing.usage is None
    True
    """

    def __init__(self, name: str | Dialect) -> None:
        speaker = dialect(name) if isinstance(name, str) else name
        self._decoder: Any = speaker.stream_decoder()
        self._passing: Passing | None = getattr(self._decoder, "PASSING", None)
        self._searches, self._telling, self._repeated = _compiled(self._passing)
        self._rest = bytearray()  # of the frame that is under way
        self._last: bytes | None = None
        self._has_begun = self._is_over = False

    @property
    def usage(self) -> Usage | None:
        """What it has cost; all of it is known after `close`."""
        return self.response.usage

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self.response.model

    @property
    def id(self) -> str | None:
        """The response's id."""
        return self.response.id

    @property
    def finish(self) -> FinishReason | None:
        """Why the first choice ended, if it has."""
        return self.response.finish

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done; known after `close`."""
        return bool(self._decoder.is_complete)

    @property
    def response(self) -> Response:
        """What was decoded: all but the content."""
        response: Response = self._decoder.response
        return response

    def feed(self, data: bytes) -> None:
        """Look at some bytes that pass."""
        passing = self._passing
        if self._is_over:
            return
        if passing is None:
            self._read(data)
            return
        rest = self._rest
        if not rest and data.endswith(passing.marks):  # most pieces are whole frames
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
        """The stream has ended."""
        if not self._is_over and self._passing is not None:
            self._look(bytes(self._rest), self._passing)
            self._read_last()
        self._is_over = True
        with suppress(DragomanError):  # whoever reads the stream itself will see
            self._decoder.close()

    def _look(self, whole: bytes, passing: Passing) -> None:
        """Decode those of these frames that tell something."""
        done = 0
        if not self._has_begun and whole.strip():
            self._has_begun = True  # the first frame says who answers
            _, done = _frame(whole, 0, 0, passing)
            self._read(whole[:done])
        is_telling = False
        for search in self._searches:
            is_telling = is_telling or search(whole, done) is not None
        for found in self._telling.finditer(whole, done) if is_telling else ():
            if found.start() >= done:
                start, end = _frame(whole, done, found.start(), passing)
                self._note_last(whole, done, start, passing)
                self._read_last()
                self._read(whole[start:end])
                done = end
        self._note_last(whole, done, len(whole), passing)

    def _note_last(self, whole: bytes, start: int, end: int, passing: Passing) -> None:
        """Keep the last of the frames that say the same again and again."""
        place = None
        for found in self._repeated.finditer(whole, start, end) if self._repeated else ():
            place = found.start()
        if place is not None:
            self._last = whole[slice(*_frame(whole, start, place, passing))]

    def _read_last(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            self._read(last)

    def _read(self, frames: bytes) -> None:
        try:
            self._decoder.feed(frames)
        except DragomanError:
            self._is_over = True  # it is no such stream


@cache
def _compiled(passing: Passing | None) -> tuple[Searches, re.Pattern[bytes], Any]:
    """The patterns: each of those that tell something, all of them, and what is repeated.

    One by one they are searched for in a tenth of the time that it takes for all at once.
    """
    telling, repeated = ((), None) if passing is None else passing[:2]
    searches = tuple([re.compile(each).search for each in telling])
    return searches, re.compile(b"|".join(telling)), repeated and re.compile(repeated)


def _last_end(data: bytearray, start: int, passing: Passing) -> int:
    """Where the last whole frame ends; 0 where there is none."""
    ends = [(data.rfind(mark, start), len(mark)) for mark in passing.marks]
    return max([at + size for at, size in ends if at >= 0], default=0)


def _frame(whole: bytes, done: int, place: int, passing: Passing) -> tuple[int, int]:
    """Where the frame begins and ends that has this place in it; not before `done`."""
    starts = [(whole.rfind(mark, done, place), len(mark)) for mark in passing.marks]
    start = max([at + size for at, size in starts if at >= 0], default=done)
    end = passing.end.search(whole, place)
    return start, len(whole) if end is None else end.end()
