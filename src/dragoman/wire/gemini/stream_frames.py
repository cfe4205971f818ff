"""The chunks of a stream, in either of its two forms: server-sent events, or one JSON array."""

from __future__ import annotations

from typing import Literal

from dragoman.errors import WireError
from dragoman.wire.framing import MAX_FRAME, JsonArrayParser, SseEvent, SseParser, sse
from dragoman.wire.gemini.trace import NAME

Form = Literal["sse", "array"]
"""With `alt=sse` in the address, events; without, an array (W120)."""

_BEFORE = b" \t\r\n\xef\xbb\xbf"  # blanks, and the byte order mark
# Google's SDK cuts lines at these too, in the middle of a text; Google escapes them.
_SEPARATORS = (
    (b"\xc2\x85", rb"\u0085"),
    (b"\xe2\x80\xa8", rb"\u2028"),
    (b"\xe2\x80\xa9", rb"\u2029"),
)
_END = b"\r\n\r\n"  # of an event, where Google itself writes it
_DONE = "[DONE]"  # OpenAI's last word, which gateways send here too


class ChunkReader:
    """Cuts a stream into the JSON of its chunks; the first byte tells the form."""

    __slots__ = ("_array", "_events", "_form", "_is_between")

    def __init__(self) -> None:
        self._form: Form | None = None
        self._array: JsonArrayParser | None = None
        self._events: SseParser | None = None
        self._is_between = True  # events: nothing of the next one has come

    @property
    def is_closed(self) -> bool:
        """Whether nothing more has to come: an array needs its bracket, events need nothing."""
        return self._array is None or self._array.is_whole

    def feed(self, data: bytes) -> list[str | bytes]:
        """The chunks that these bytes complete."""
        if self._form is None:
            data = data.lstrip(_BEFORE)
            if not data:
                return []
            self._form = "array" if data[:1] in {b"[", b"{"} else "sse"
        try:
            return self._read_array(data) if self._form == "array" else self._read_events(data)
        except WireError as error:
            problem = str(error)
        raise WireError(problem, dialect=NAME, path="$")

    def close(self) -> list[str | bytes]:
        """The last chunk, if only its blank line is missing."""
        if self._events is None or self._is_between:
            return []
        return _data_of(self._events.close())

    def _read_array(self, data: bytes) -> list[str | bytes]:
        if self._array is None:
            self._array = JsonArrayParser()
        return [*self._array.feed(data)]

    def _read_events(self, data: bytes) -> list[str | bytes]:
        if self._is_between and (found := _whole_events(data)) is not None:
            return found
        if self._events is None:
            self._events = SseParser()
            self._events.feed(b"\n")  # the stream has begun: it has no byte order mark any more
        self._is_between = data.endswith((b"\n\n", _END))
        return _data_of(self._events.feed(data))


def _whole_events(data: bytes) -> list[str | bytes] | None:
    """The chunks in events as Google sends them: whole ones, of one line; None where any is not.

    `SseParser` comes to the same in three times the time: it has to look for all kinds of line
    ends before it can cut at one.
    """
    *events, rest = data.split(_END)
    if rest or len(data) > MAX_FRAME:
        return None
    found: list[str | bytes] = []
    for event in events:
        if event[:6] != b"data: " or b"\n" in event or b"\r" in event:
            return None
        chunk = event[6:].decode("utf-8", "replace")
        if chunk and chunk != _DONE:
            found.append(chunk)
    return found


def _data_of(events: list[SseEvent]) -> list[str | bytes]:
    return [event.data for event in events if event.data and event.data != _DONE]


class ChunkWriter:
    """Writes chunks one after the other, each ready to be sent at once."""

    __slots__ = ("_before", "_form")

    def __init__(self, form: Form) -> None:
        self._form = form
        self._before = b"["

    def write(self, chunk: bytes) -> bytes:
        """One more chunk."""
        if not chunk.isascii():
            for separator, escape in _SEPARATORS:
                chunk = chunk.replace(separator, escape)
        if self._form == "sse":
            return sse(chunk)
        before, self._before = self._before, b",\r\n"
        return before + chunk

    def end(self) -> bytes:
        """What comes after the last one."""
        return b"" if self._form == "sse" else b"]"
