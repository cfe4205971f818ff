"""Passes streams through in whole frames.

Part of a frame is of no use to a client, and would break its parser if an error followed. It is
held back until the rest arrives, and dropped if none does. Very long frames are not held back.
"""

from __future__ import annotations

_ENDS: dict[str, tuple[bytes, ...]] = {
    "text/event-stream": (b"\n\n", b"\r\n\r\n", b"\r\r"),
    "application/x-ndjson": (b"\n",),
}
_NO_FRAMES = b"\n"
_NO_END: tuple[bytes, ...] = ()  # nothing ends with one of none
_MAX_HELD_BYTES = 1024 * 1024


class WholeFrames:
    r"""Passes on whole frames of a stream, whose bytes may be split anywhere.

    >>> passing = WholeFrames("application/x-ndjson")
    >>> passing.feed(b"half a line"), passing.close()
    (b'', b'half a line')
    """

    def __init__(self, kind: str = "text/event-stream") -> None:
        """For streams of a content type; unknown types have no frames."""
        self._ends = _ENDS.get(kind, ())
        self._end = self._ends[0] if self._ends else _NO_END
        self._rest = b""
        self._is_between = True

    @property
    def gap(self) -> bytes:
        """What must be sent before another frame."""
        if self._ends:
            return b"" if self._is_between else self._ends[0]
        return _NO_FRAMES

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on."""
        if not self._rest and data.endswith(self._end):  # the usual case
            self._is_between = True
            return data
        if self._rest:
            data = self._rest + data
            self._rest = b""
        end = self._whole(data)
        if end < len(data):
            if len(data) - end > _MAX_HELD_BYTES:
                self._is_between = False
                return data
            data, self._rest = data[:end], data[end:]
        self._is_between = self._is_between or bool(data)
        return data

    def close(self) -> bytes:
        """The rest, when the stream has ended normally."""
        rest, self._rest = self._rest, b""
        return rest

    def _whole(self, data: bytes) -> int:
        """The position where the last whole frame ends."""
        if not self._ends or data.endswith(self._ends[0]):
            return len(data)
        ends = [data.rfind(mark) + len(mark) for mark in self._ends if mark in data]
        return max(ends, default=0)
