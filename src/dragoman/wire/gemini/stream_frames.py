"""The chunks of a stream, in either of its two forms: server-sent events, or one JSON array."""

from __future__ import annotations

from typing import Literal

from dragoman.errors import WireError
from dragoman.wire.framing import JsonArrayParser, SseParser, sse
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
_DONE = "[DONE]"  # OpenAI's last word, which gateways send here too


class ChunkReader:
    """Cuts a stream into the JSON of its chunks; the first byte tells the form."""

    __slots__ = ("_array", "_events")

    def __init__(self) -> None:
        self._events: SseParser | None = None
        self._array: JsonArrayParser | None = None

    @property
    def is_closed(self) -> bool:
        """Whether nothing more has to come: an array needs its bracket, events need nothing."""
        return self._array is None or self._array.is_whole

    def feed(self, data: bytes) -> list[str | bytes]:
        """The chunks that these bytes complete."""
        if self._events is None and self._array is None:
            data = data.lstrip(_BEFORE)
            if not data:
                return []
            if data[:1] in {b"[", b"{"}:
                self._array = JsonArrayParser()
            else:
                self._events = SseParser()
        try:
            return self._read(data)
        except WireError as error:
            problem = str(error)
        raise WireError(problem, dialect=NAME, path="$")

    def close(self) -> list[str | bytes]:
        """The last chunk, if only its blank line is missing."""
        frames = [] if self._events is None else self._events.close()
        return [frame.data for frame in frames if frame.data and frame.data != _DONE]

    def _read(self, data: bytes) -> list[str | bytes]:
        if self._events is None:
            return [] if self._array is None else [*self._array.feed(data)]
        frames = self._events.feed(data)
        return [frame.data for frame in frames if frame.data and frame.data != _DONE]


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
