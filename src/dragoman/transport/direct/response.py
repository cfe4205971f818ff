"""A response while it is received, and the reply that its reader holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol, Self

from multidict import CIMultiDict

from dragoman.transport import failures
from dragoman.transport.direct.inflating import Inflater
from dragoman.transport.direct.unreadable import Unreadable

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

    def __init__(self, connection: Source, seconds: float | None) -> None:
        self.connection: Source | None = connection
        """None once the response is complete or has failed."""
        self.status = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.has_head = False
        self.ends_with_connection = False
        """Whether only the end of the connection marks the end of the body."""
        self.failure: Exception | None = None
        self._loop = connection.loop
        self._waiting: asyncio.Future[None] | None = self._loop.create_future()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._too_late)
        self._raw: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._inflater: Inflater | None = None
        self._since: float | None = None
        self._between: float | None = None
        self._take: Take | None = None
        self._refusal: Exception | None = None

    # --- the connection's side

    def count_head(self, size: int) -> None:
        """Limit the head, whether it ends or not."""
        self._head_bytes += size
        if self._head_bytes > _MAX_HEAD:
            raise Unreadable

    def add_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers are ignored."""
        if not self.has_head:
            self._raw.append((name, value))
            if len(self._raw) > _MAX_HEADERS or len(value) > _MAX_HEADER_VALUE:
                raise Unreadable

    def begin(self, status: int) -> None:
        """The head is complete."""
        self.status = status
        self.headers = headers = CIMultiDict([
            (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
            for name, value in self._raw
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

    def add(self, data: bytes) -> int:
        """Add a chunk of the body; returns the number of unread bytes."""
        self._pieces.append(data)
        self._size += len(data)
        return self._size

    def flush(self) -> None:
        """Pass on what was added: once for all chunks that arrived together."""
        if not self._pieces:
            return
        take = self._take
        if take is not None:
            self._since = monotonic()
            data = self._taken()
            if self.connection is not None:
                self.connection.resume()
            try:
                if take(data):
                    return
            except Exception as error:  # noqa: BLE001 - raised in `deliver`: here, the loop would log it
                self._refusal = error
            self._take = None
        self._wake()

    def _taken(self) -> bytes:
        """All chunks that were added."""
        pieces, self._pieces, self._size = self._pieces, [], 0
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
        if not self._pieces and self.connection is not None:
            await self._wait(between)
        if self._pieces:
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
                self._timer = self._loop.call_later(between, self._look)
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = self._since = None

    async def deliver(self, take: Take, between: float | None) -> bool:
        """Pass the body on as it arrives, from within the event loop's callback.

        Waking a task for every chunk would cost more than everything else that is done with it.
        Returns False after `take` did, True at the end. Raises if the body or `take` failed.
        """
        while self._pieces or self.connection is None or self._inflater is not None:
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
            self._timer = self._loop.call_later(left, self._look)
        elif self.connection is not None:
            self.connection.fail(failures.stalled())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DirectReply:
    """A reply, and the iterator of its body."""

    __slots__ = ("_between", "_loop", "_response", "headers", "status")

    def __init__(self, response: Response, between: float | None) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._between = between
        self._loop = asyncio.get_running_loop()

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
                self._loop.call_soon_threadsafe(connection.abort)
