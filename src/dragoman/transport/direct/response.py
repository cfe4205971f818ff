"""A response while it is received, and the reply that its reader holds."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol, Self

from multidict import CIMultiDict

from dragoman.transport import failures

_GZIP = 16 + zlib.MAX_WBITS
_WINDOW_BITS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
_STEP = 256 * 1024
"""Bytes that are decompressed at a time, so that a reader with a limit can stop in between."""


class Inflater:
    """Decompresses a body that the server compressed without being asked to."""

    def __init__(self, encoding: str) -> None:
        if encoding not in _WINDOW_BITS:
            raise Unreadable
        self._bits = _WINDOW_BITS[encoding]
        self._zlib: Any = None
        self._waiting = b""

    def feed(self, data: bytes) -> None:
        """Take the next compressed bytes."""
        if self._zlib is None:
            # Some servers send deflate without its zlib header.
            is_raw = self._bits == zlib.MAX_WBITS and data[0] & 0xF != zlib.DEFLATED
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else self._bits)
        self._waiting += data

    def unpacked(self) -> bytes:
        """The next decompressed bytes; empty: more input is needed."""
        if not self._waiting or self._zlib.eof:
            return b""
        try:
            found: bytes = self._zlib.decompress(self._waiting, _STEP)
        except zlib.error:
            problem = failures.incomplete()
        else:
            self._waiting = self._zlib.unconsumed_tail
            return found
        raise problem

    def expect_end(self) -> None:
        """Raise if the compressed body is incomplete."""
        if self._zlib is not None and not self._zlib.eof:
            raise failures.incomplete()


class Unreadable(Exception):  # noqa: N818 - control flow: the connection turns it into an error
    """The response is not HTTP, or exceeds a limit."""


_MAX_HEADERS = 256
_MAX_HEADER_VALUE = 64 * 1024
_MAX_HEAD = 256 * 1024
Take = Callable[[bytes], bool]
"""Takes a chunk of a body; returns whether the next one may follow at once."""


class Source(Protocol):
    """The connection that a response comes from."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that it belongs to."""
        ...

    def resume(self) -> None:
        """Receive again."""

    def fail(self, error: Exception, /) -> None:
        """Give up the connection and its response."""

    def abort(self) -> None:
        """Close the connection."""


class Response:
    """A response while it is received. It outlives its turn on the connection."""

    status = 0
    headers: CIMultiDict[str] = CIMultiDict()
    has_head = False
    ends_with_connection = False
    """Whether only the end of the connection marks the end of the body."""
    failure: Exception | None = None
    _head_bytes = 0
    _size = 0
    _inflater: Inflater | None = None
    _since: float | None = None
    _between: float | None = None
    _take: Take | None = None
    _refusal: Exception | None = None

    def __init__(self, connection: Source, seconds: float | None) -> None:
        self.connection: Source | None = connection
        """None once the response is complete or has failed."""
        self.loop = connection.loop
        self.raw_headers: list[tuple[bytes, bytes]] = []
        """What arrived before the end of the head."""
        self._waiting: asyncio.Future[None] | None = self.loop.create_future()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._too_late)
        self.pieces: list[bytes] = []
        """Chunks of the body that were not read."""

    # --- the connection's side

    def count_head(self, size: int) -> None:
        """Limit the head, whether it ends or not."""
        self._head_bytes += size
        if self._head_bytes > _MAX_HEAD:
            raise Unreadable

    def begin(self, status: int) -> None:
        """The head is complete."""
        if len(self.raw_headers) > _MAX_HEADERS or (
            self._head_bytes > _MAX_HEADER_VALUE
            and any(len(value) > _MAX_HEADER_VALUE for _, value in self.raw_headers)
        ):
            raise Unreadable
        self.status = status
        self.headers = headers = CIMultiDict([
            (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
            for name, value in self.raw_headers
        ])  # fmt: skip
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            self._inflater = Inflater(encoding)
        self.ends_with_connection = "content-length" not in headers and (
            "chunked" not in headers.get("transfer-encoding", "").lower()
        )
        self.has_head = True
        self._stop_timer()
        self._wake()

    def flush(self, size: int) -> int:
        """Pass on the chunks that arrived together, in so many bytes; returns how many wait."""
        pieces, take = self.pieces, self._take
        if take is None:
            self._size += size
            if pieces:
                self._wake()
            return self._size
        if not pieces:
            return 0
        self._since = monotonic()
        data = pieces.pop() if len(pieces) == 1 else self._taken()
        try:
            if take(data):
                return 0
        except Exception as error:  # noqa: BLE001 - raised in `deliver`: here, the loop would log it
            self._refusal = error
        self._take = None
        self._wake()
        return 0

    def _taken(self) -> bytes:
        """All chunks that were added."""
        pieces, self.pieces, self._size = self.pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def end(self) -> None:
        """The body is complete."""
        self.connection = None
        self._stop_timer()
        self._wake()

    def fail(self, error: Exception) -> None:
        """Nothing more will come."""
        self.connection = None
        self.failure = error
        self._stop_timer()
        self._wake()

    def _too_late(self) -> None:
        self._timer = None
        if self.connection is not None:
            self.connection.fail(failures.response_timeout())

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # --- the reader's side

    async def head(self) -> None:
        """Wait for the head."""
        assert self._waiting is not None  # noqa: S101 - it was made for this
        await self._waiting
        self._waiting = None
        if self.failure is not None and not self.has_head:
            raise self.failure

    def whole(self) -> bytes | None:
        """The body, if all of it has arrived and none was read; None: use `read`."""
        is_here = self.connection is None and self.failure is None and self._inflater is None
        return self._taken() if is_here else None

    def read(self, between: float | None) -> Coroutine[Any, Any, bytes]:
        """The next decompressed bytes of the body; empty at the end. Raises if it failed."""
        if self._inflater is None:
            return self._received(between)
        return self._unpacked(self._inflater, between)

    async def _unpacked(self, inflater: Inflater, between: float | None) -> bytes:
        while not (data := inflater.unpacked()):
            packed = await self._received(between)
            if not packed:
                inflater.expect_end()
                return b""
            inflater.feed(packed)
        return data

    async def _received(self, between: float | None) -> bytes:
        """The bytes received since the last call; empty at the end."""
        if not self.pieces and self.connection is not None:
            await self._wait(between)
        if self.pieces:
            found = self._taken()
            if self.connection is not None:
                self.connection.resume()
            return found
        if self.failure is not None:
            raise self.failure
        return b""

    async def _wait(self, between: float | None) -> None:
        if between is not None:
            self._since, self._between = monotonic(), between
            if self._timer is None:
                self._timer = self.loop.call_later(between, self._look)
        self._waiting = self.loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = self._since = None

    async def deliver(self, take: Take, between: float | None) -> bool:
        """Pass the body on as it arrives, from within the event loop's callback.

        Waking a task for every chunk would cost more than everything else that is done with it.
        Returns False after `take` did, True at the end. Raises if the body or `take` failed.
        """
        while self.pieces or self.connection is None or self._inflater is not None:
            piece = await self.read(between)
            if not piece:
                return True
            if not take(piece):
                return False
        self._take = take
        try:
            await self._wait(between)
        finally:
            is_wanted, self._take = self._take is not None, None
        if self._refusal is not None:
            raise self._refusal
        if is_wanted and self.failure is not None:
            raise self.failure
        return is_wanted

    def _look(self) -> None:
        """Check for a stall. One timer for all chunks; only time spent waiting counts."""
        self._timer = None
        most = self._between or 0.0
        left = most if self._since is None else self._since + most - monotonic()
        if left > 0:
            self._timer = self.loop.call_later(left, self._look)
        elif self.connection is not None:
            self.connection.fail(failures.stalled())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DirectReply:
    """A reply, and the iterator of its body."""

    __slots__ = ("_between", "_response", "headers", "status")

    def __init__(self, response: Response, between: float | None) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._between = between

    def chunks(self) -> Self:
        """Iterate over the body as it arrives."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._response.read(self._between)
        if not piece:
            raise StopAsyncIteration
        return piece

    def whole(self) -> bytes | None:
        """The body, if all of it arrived with the head; None: read the chunks."""
        return self._response.whole()

    def deliver(self, take: Take) -> Coroutine[Any, Any, bool]:
        """Pass the rest of the body on as it arrives, as `Response.deliver` does."""
        return self._response.deliver(take, self._between)

    async def close(self) -> None:
        """Release the reply; closes the connection if the body is incomplete."""
        connection = self._response.connection
        if connection is not None:
            connection.abort()

    def __del__(self) -> None:
        # A stream that was abandoned without `async with`.
        connection = self._response.connection
        if connection is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._response.loop.call_soon_threadsafe(connection.abort)
