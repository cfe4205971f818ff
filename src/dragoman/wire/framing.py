"""Streams cut into frames: server-sent events and lines of JSON, from bytes cut anywhere.

Parsers keep no more than one unfinished frame, and refuse one that grows past their limit. A
frame that the stream's end cuts off is given out by `close`; whether the stream was complete is
for the dialect to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

from dragoman.errors import WireError

MAX_FRAME = 64 * 1024 * 1024
"""Bytes in one frame: more than any provider sends, an inline picture included."""

_BOM = b"\xef\xbb\xbf"
FrameT = TypeVar("FrameT")


class Framing(Protocol[FrameT]):
    """A way of cutting a stream into frames; a binary one would look the same."""

    def feed(self, data: bytes) -> list[FrameT]:
        """The frames that these bytes complete."""
        ...

    def close(self) -> list[FrameT]:
        """What is left when the stream ends."""
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


class SseEvent(NamedTuple):
    """One server-sent event: its name, if it has one, and its data."""

    event: str | None
    data: str


class SseParser:
    """Server-sent events, as the HTML standard has them, and a little more forgiving.

    Data of several lines is joined, comments and unknown fields are skipped, a byte order mark
    is dropped. An event without its last blank line still counts when the stream ends.
    """

    __slots__ = ("_data", "_event", "_limit", "_lines", "_size", "_started")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._lines = _Lines(limit)
        self._limit = limit
        self._started = False
        self._event: str | None = None
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        return [event for line in self._lines.feed(data) if (event := self._line(line))]

    def close(self) -> list[SseEvent]:
        """The last event, if the stream ended without the blank line after it."""
        found = [self._line(line) for line in (self._lines.take(), b"")]
        return [event for event in found if event]

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


class NdjsonParser:
    """Lines of JSON: one frame a line, blank lines skipped."""

    __slots__ = ("_lines", "_started")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._lines = _Lines(limit)
        self._started = False

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


def sse(data: bytes, event: str | None = None) -> bytes:
    """A server-sent event, written. The data is JSON on one line, as our encoders make it."""
    if event is None:
        return b"data: %b\n\n" % data
    return b"event: %b\ndata: %b\n\n" % (event.encode("ascii"), data)
