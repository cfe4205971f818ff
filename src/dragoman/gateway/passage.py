"""Forwards the chunks of a stream that is passed through to the client."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dragoman.errors import DragomanError
from dragoman.gateway.delivered import StreamSize
from dragoman.gateway.http import Call
from dragoman.gateway.upstream_task import Sink
from dragoman.transport.direct.response import DirectReply
from dragoman.transport.protocol import too_much
from dragoman.transport.stream_attempt import Silence
from dragoman.wire.front import PassingFilter
from dragoman.wire.lane.passing import PassingStream

MAX_RESPONSE_BYTES = 256 * 1024 * 1024


class Passage:
    """One stream: reads its metadata and filters its frames on the way."""

    def __init__(
        self, sink: Sink, passing: PassingStream, keep: PassingFilter, counted: StreamSize,
        silence: float | None,
    ) -> None:  # fmt: skip
        """`silence` limits the seconds without an event."""
        self._sink = sink
        self._read = passing.feed
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
        except DragomanError as error:
            return error
        return None

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
        return self._filter(piece)
