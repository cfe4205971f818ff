"""`Silence`: notices a stream that stays open and brings no event."""

from __future__ import annotations

from time import monotonic

from dragoman.errors import StreamSilent
from dragoman.wire.framing import MAX_FRAME


class Silence:
    """Limits the time and the bytes between two events of a stream.

    Servers keep a connection open with comments while a model thinks. A broken one does so for
    ever, and every comment is a chunk that came in time.
    """

    __slots__ = ("_seconds", "_since", "_size")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._size = 0

    def end(self) -> None:
        """An event has come."""
        self._since, self._size = None, 0

    def grown(self, size: int) -> StreamSilent | None:
        """Note that many bytes without an event; returns the error if they were too many."""
        self._size += size
        now = monotonic()
        if self._since is None:
            self._since = now
        if self._size > MAX_FRAME:
            return StreamSilent(f"the stream brought no event in {MAX_FRAME:,} bytes")
        if self._seconds is None or now - self._since < self._seconds:
            return None
        return StreamSilent(
            f"the stream brought no event, only comments or blank lines, for {self._seconds:g}"
            " seconds (between_events)"
        )
