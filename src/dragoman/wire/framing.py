"""Streams cut into frames: server-sent events, lines and arrays of JSON, from bytes cut anywhere.

Parsers keep no more than one unfinished frame, and refuse one that grows past their limit. A
frame that the stream's end cuts off is given out by `close`; whether the stream was complete is
for the dialect to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol, TypeVar

from msgspec import Struct

from dragoman.errors import WireError

MAX_FRAME = 64 * 1024 * 1024
"""Bytes in one frame: more than any provider sends, an inline picture included."""

_BOM = b"\xef\xbb\xbf"
# As numbers: to look for bytes in bytes takes ten times as long, for an exception within.
LF, CR = 0x0A, 0x0D
_END = b"\n\n"
_END_OF_CRLF = b"\n\r\n"
_WHOLE_EVENT = re.compile(rb"(?:event:[^\r\n]*(?:\r\n|\n))?data:([^\r\n]*)(?:\r\n\r\n|\n\n)")
_WHOLE_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n)")
_BETWEEN = frozenset({b" ", b"\t", b"\r", b"\n", b","})
_OUTSIDE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
FrameT = TypeVar("FrameT")


class Framing(Protocol[FrameT]):
    """A way of cutting a stream into frames; a binary one would look the same."""

    def feed(self, data: bytes) -> list[FrameT]:
        """The frames that these bytes complete."""
        ...

    def close(self) -> list[FrameT]:
        """What is left when the stream ends."""
        ...


class SteppedFraming(Framing[FrameT], Protocol[FrameT]):
    """One that can be fed frame by frame: it says where frames end, and what is in them."""

    @property
    def is_between(self) -> bool:
        """Whether the stream has begun, and nothing of the next frame has come."""
        ...

    def mark(self, data: bytes) -> bytes:
        """What frames end with in these bytes, if they are like most; a hint, to step by."""
        ...

    def body(self, frame: bytes) -> tuple[int, int] | None:
        """Where the JSON of a whole frame is; None where there is more to the frame."""
        ...


class _Lines:
    """Bytes cut into lines, which end in LF, CR or CRLF; the CR of a CRLF may come alone."""

    __slots__ = ("_limit", "_pieces", "_size", "_skip_lf")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._skip_lf = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        if self._skip_lf and data[:1] == b"\n":
            data = data[1:]
        self._skip_lf = data[-1:] == b"\r"
        # `splitlines` on bytes knows LF, CR and CRLF, and no other.
        for line in data.splitlines(keepends=True):
            bare = line.rstrip(b"\r\n")
            self._keep(bare)
            if len(bare) != len(line):
                yield self.take()

    @property
    def is_open(self) -> bool:
        """Whether a line has begun, or its end is not over yet."""
        return self._skip_lf or bool(self._pieces)

    def take(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return line

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            msg = f"a line of the stream is longer than {self._limit} bytes"
            raise WireError(msg)
        self._pieces.append(piece)


class SseEvent(Struct, frozen=True, gc=False):
    """One server-sent event: its name, if it has one, and its data."""

    event: str | None
    data: str


class SseParser:
    """Server-sent events, as the HTML standard has them, and a little more forgiving.

    Data of several lines is joined, comments and unknown fields are skipped, a byte order mark
    is dropped. An event without its last blank line still counts when the stream ends.
    """

    __slots__ = ("_data", "_event", "_is_open", "_limit", "_lines", "_size", "_started")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._lines = _Lines(limit)
        self._limit = limit
        self._started = False
        self._is_open = False  # whether an event has begun
        self._event: str | None = None
        self._data: list[str] = []
        self._size = 0

    @property
    def is_between(self) -> bool:
        """Whether the stream has begun, and nothing of the next event has come."""
        return self._started and not self._is_open

    def mark(self, data: bytes) -> bytes:
        """The last bytes of an event."""
        return _END_OF_CRLF if CR in data else _END

    def body(self, frame: bytes) -> tuple[int, int] | None:
        """Where the data of a whole event is, if that is one line."""
        found = _WHOLE_EVENT.fullmatch(frame)
        return None if found is None else found.span(1)

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        if self._started and not self._is_open and data[-2:] == _END and CR not in data:
            event = _single(data) if len(data) <= self._limit else None
            return self._whole(data) if event is None else [event]  # most pieces are whole events
        if CR in data and data.count(b"\r") == data.count(b"\r\n"):
            data = data.replace(b"\r\n", b"\n")
        if CR in data or (not self._started and data[:1] == _BOM[:1]):
            return self._slowly(data)
        events: list[SseEvent] = []
        if self._is_open:  # to the end of the event under way
            end = data.find(_END) + len(_END)
            if end < len(_END):
                return self._slowly(data)
            events, data = self._slowly(data[:end]), data[end:]
        # What is left begins with an event: whole ones are cut out in one go.
        end = data.rfind(_END) + len(_END)
        if end < len(_END):
            return events + self._slowly(data)
        events += self._whole(data[:end])
        return events + self._slowly(data[end:]) if end < len(data) else events

    def close(self) -> list[SseEvent]:
        """The last event, if the stream ended without the blank line after it."""
        found = [self._line(line) for line in (self._lines.take(), b"")]
        return [event for event in found if event]

    def _whole(self, data: bytes) -> list[SseEvent]:
        """The events in data that begins with one and ends in a blank line."""
        if len(data) > self._limit:
            return self._slowly(data)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return self._slowly(data)
        self._started = True
        return _events(text)

    def _slowly(self, data: bytes) -> list[SseEvent]:
        self._is_open = True
        events = [event for line in self._lines.feed(data) if (event := self._line(line))]
        self._is_open = bool(self._data or self._event or self._lines.is_open)
        return events

    def _line(self, line: bytes) -> SseEvent | None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._size += len(value)
            if self._size > self._limit:
                msg = f"an event of the stream is larger than {self._limit} bytes"
                raise WireError(msg)
            self._data.append(text)
        elif name == b"event":
            self._event = text or None
        return None

    def _dispatch(self) -> SseEvent | None:
        event, data = self._event, self._data
        self._event, self._data, self._size = None, [], 0
        return SseEvent(event, "\n".join(data)) if data else None


def _single(data: bytes) -> SseEvent | None:
    """The event that these bytes are, if they are one as most are: its name, then one line."""
    start, name = 0, None
    if data[:7] == b"event: ":
        start = data.find(b"\n") + 1
        name = data[7 : start - 1]
    if data[start : start + 6] != b"data: " or data.find(b"\n", start) != len(data) - 2:
        return None
    try:
        return SseEvent(name.decode() if name else None, data[start + 6 : -2].decode())
    except UnicodeDecodeError:
        return None


def _events(text: str) -> list[SseEvent]:
    """As `SseParser` has them line by line, in a third of the time."""
    events: list[SseEvent] = []
    name = body = None
    for line in text.split("\n"):
        if line[:6] == "data: ":
            value = line[6:]
        elif not line:
            if body is not None:
                events.append(SseEvent(name, body))
            name = body = None
            continue
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value or None
            if field != "data":
                continue
        if body is None:
            body = value
        else:
            body += "\n" + value  # in place: there may be many
    return events


class NdjsonParser:
    """Lines of JSON: one frame a line, blank lines skipped."""

    __slots__ = ("_lines", "_started")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._lines = _Lines(limit)
        self._started = False

    @property
    def is_between(self) -> bool:
        """Whether the stream has begun, and nothing of the next line has come."""
        return self._started and not self._lines.is_open

    def mark(self, data: bytes) -> bytes:  # noqa: ARG002 - both kinds of lines end so
        """The last byte of a line."""
        return b"\n"

    def body(self, frame: bytes) -> tuple[int, int] | None:
        """Where the JSON of a whole line is."""
        found = _WHOLE_LINE.fullmatch(frame)
        return None if found is None else found.span(1)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        return [line for found in self._lines.feed(data) if (line := self._line(found))]

    def close(self) -> list[bytes]:
        """The last line, if the stream ended without a newline."""
        line = self._line(self._lines.take())
        return [line] if line else []

    def _line(self, line: bytes) -> bytes:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        return line.strip()


class JsonArrayParser:
    """One JSON array, given out object by object while it comes; or objects without one around.

    The brackets are only counted: whether an object is JSON is for its reader to say. An object
    that the stream's end cuts off is no frame.
    """

    __slots__ = ("_depth", "_has_array", "_in_string", "_is_closed", "_is_escaped", "_limit",
                 "_pieces", "_size")  # fmt: skip

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []  # of the object that is open
        self._size = 0
        self._depth = 0  # inside of the object
        self._in_string = self._is_escaped = self._has_array = self._is_closed = False

    @property
    def is_whole(self) -> bool:
        """Whether no object is open, and no array."""
        return self._depth == 0 and self._is_closed is self._has_array

    def feed(self, data: bytes) -> list[bytes]:
        """The objects that these bytes complete."""
        found: list[bytes] = []
        position, size = 0, len(data)
        while position < size:
            if self._depth == 0:
                position = self._between(data, position)
                continue
            end = self._scan(data, position)
            self._keep(data[position:end])
            position = end
            if self._depth == 0:
                found.append(b"".join(self._pieces))
                self._pieces, self._size = [], 0
        return found

    def close(self) -> list[bytes]:
        """Nothing: what is left is no object."""
        return []

    def _between(self, data: bytes, position: int) -> int:
        """Skip to the next object, and into it."""
        mark = data[position : position + 1]
        if mark == b"{" and not self._is_closed:
            self._depth = 1
            self._keep(mark)
        elif mark == b"[" and not self._has_array:
            self._has_array = True
        elif mark == b"]" and self._has_array and not self._is_closed:
            self._is_closed = True
        elif mark not in _BETWEEN:
            msg = "the stream is no array of JSON objects"
            raise WireError(msg)
        return position + 1

    def _scan(self, data: bytes, position: int) -> int:
        """Where the object ends, or the data."""
        if self._is_escaped:
            self._is_escaped = False
            position += 1
        while found := (_IN_STRING if self._in_string else _OUTSIDE).search(data, position):
            position = found.end()
            mark = found[0]
            if mark == b'"':
                self._in_string = not self._in_string
            elif mark == b"\\":
                self._is_escaped = position == len(data)
                position += 1
            else:
                self._depth += 1 if mark in b"{[" else -1
                if self._depth == 0:
                    return position
        return len(data)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            msg = f"an object of the stream is larger than {self._limit} bytes"
            raise WireError(msg)
        self._pieces.append(piece)


def is_event_name(name: str) -> bool:
    """Whether this may stand in an `event:` line."""
    return name.isascii() and name.isprintable() and bool(name.strip())


def sse(data: bytes, event: str | None = None) -> bytes:
    """A server-sent event, written. The data is JSON on one line, as our encoders make it."""
    if event is None:
        return b"data: %b\n\n" % data
    return b"event: %b\ndata: %b\n\n" % (event.encode("ascii"), data)
