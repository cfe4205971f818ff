"""Forwards the chunks of a stream that is passed through to the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.gateway.delivered import StreamSize
from dragoman.gateway.error_texts import Shown, shown_body, shown_texts
from dragoman.gateway.http import Call
from dragoman.gateway.upstream_task import Sink
from dragoman.model.events import StreamError
from dragoman.model.jsontext import loads
from dragoman.transport.direct.response import DirectReply
from dragoman.transport.protocol import too_much
from dragoman.transport.stream_attempt import Silence
from dragoman.wire.front import PassingFilter
from dragoman.wire.lane.passing import PassingStream

MAX_RESPONSE_BYTES = 256 * 1024 * 1024


class _EndHereError(Exception):
    """The rest of the stream must not be passed on."""

    def __init__(self, before: bytes) -> None:
        super().__init__()
        self.before = before


class Passage:
    """One stream: reads its metadata and filters its frames on the way."""

    failure: DragomanError | None = None
    """The error that the provider reported in mid-stream, which the client was told."""

    def __init__(
        self, sink: Sink, passing: PassingStream, keep: PassingFilter, counted: StreamSize,
        silence: float | None, refused: Callable[[StreamError], DragomanError], mask: Shown,
    ) -> None:  # fmt: skip
        """`silence` limits the seconds without an event; `refused` is the error of an event.

        `mask` removes keys and addresses from a text.
        """
        self._sink = sink
        self._read = passing.feed
        self._errors = passing.errors
        self._refused = refused
        self._mask = mask
        self._keep = keep
        self._filter = keep.feed
        self._count = counted.feed
        self._silence = Silence(silence)
        self._left = MAX_RESPONSE_BYTES
        """Bytes that may still come."""

    @property
    def size(self) -> int:
        """Bytes so far."""
        return MAX_RESPONSE_BYTES - self._left

    async def forward(self, first: bytes, pieces: AsyncIterator[bytes]) -> DragomanError | None:
        """Forward a stream, given its first chunk; return the error if it was interrupted."""
        sink = self._sink
        try:
            data = self._passed(first)
            if data:
                await sink.write(data)
            if isinstance(pieces, DirectReply) and isinstance(sink, Call) and sink.is_direct:
                await self._deliver(pieces, sink)
                return None
            async for piece in pieces:
                data = self._passed(piece)
                if data:
                    await sink.write(data)
        except _EndHereError as end:
            if end.before:
                await sink.write(end.before)
            failure, self.failure = self.failure, None
            return failure
        except DragomanError as error:
            return None if self.failure is not None else error
        return None

    def rest(self) -> tuple[bytes, DragomanError | None]:
        """What is left when the stream has ended; or the error with which to end it."""
        try:
            return self._told(self._keep.close()), None
        except _EndHereError as end:
            failure, self.failure = self.failure, None
            return end.before, failure

    async def _deliver(self, reply: DirectReply, sink: Call) -> None:
        """Forward the rest without waking this task for every chunk."""
        passed, write = self._passed, sink.write_now

        def take(piece: bytes) -> bool:
            data = passed(piece)
            return not data or write(data)

        while not await reply.deliver(take):
            await sink.drain()

    def _passed(self, piece: bytes) -> bytes:
        """The part of the stream to send after a chunk of it has arrived."""
        self._left -= len(piece)
        if self._left < 0:
            raise too_much(MAX_RESPONSE_BYTES)
        if b"{" in piece:  # a comment has none
            self._silence.end()
        elif silent := self._silence.grown(len(piece)):
            raise silent
        self._count(piece)
        self._read(piece)
        data = self._filter(piece)
        return self._told(data) if self._errors else data

    def _told(self, data: bytes) -> bytes:
        """Whole frames, in which errors say only what the client may read."""
        while self._errors:
            event, frame = self._errors.pop(0)
            error = self._refused(event)
            self.failure = self.failure or error
            before, found, after = data.partition(frame)
            told = _frame_with(frame, error, self._mask) if found else None
            if told is None:
                raise _EndHereError(before)
            data = before + told + after
        return data


def _frame_with(frame: bytes, error: DragomanError, mask: Shown) -> bytes | None:
    """The frame of an error with the provider's sentence as clients may read it.

    None if it is not a single JSON object: then the error has to be written anew.
    """
    start, end = frame.find(b"{"), frame.rfind(b"}") + 1
    try:
        told = shown_body(frame[start:end], shown_texts(error, mask))
        is_same = loads(told) == loads(frame[start:end])
    except InvalidInputError:
        return None
    return frame if is_same else frame[:start] + told + frame[end:]
