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
MAX_HELD_BYTES = 1024 * 1024
"""Bytes of an incomplete frame that are held back, at most."""
_LONGEST_END = 3  # bytes of an end that may have come before its last one


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
        self._rest = bytearray()
        self._is_between = True

    @property
    def gap(self) -> bytes:
        """What must be sent before another frame."""
        if self._ends:
            return b"" if self._is_between else self._ends[0]
        return _NO_FRAMES

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on."""
        rest = self._rest
        if not rest and data.endswith(self._end):  # the usual case
            self._is_between = True
            return data
        # Only what is new is searched, and nothing is copied again: a frame may come byte by byte.
        seen = max(0, len(rest) - _LONGEST_END)
        rest += data
        end = self._whole(rest, seen)
        if len(rest) - end > MAX_HELD_BYTES:
            end = len(rest)
            self._is_between = False
        elif end:
            self._is_between = True
        found = bytes(rest[:end])
        del rest[:end]
        return found

    def close(self) -> bytes:
        """The rest, when the stream has ended normally."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    def _whole(self, data: bytearray, start: int) -> int:
        """The position where the last whole frame ends."""
        if not self._ends or data.endswith(self._end):
            return len(data)
        ends = [(data.rfind(mark, start), len(mark)) for mark in self._ends]
        return max([at + size for at, size in ends if at >= 0], default=0)
