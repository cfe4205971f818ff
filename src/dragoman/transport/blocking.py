"""Blocking variants of `send`, `stream` and `close`, for scripts and threads."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from types import TracebackType
from typing import Any, Protocol, Self
from weakref import finalize

from dragoman.errors import InvalidInputError
from dragoman.model import portal
from dragoman.model.events import Event
from dragoman.model.requests import Request
from dragoman.model.responses import Response


class Batched(Protocol):
    """A stream that returns all available events at a time."""

    @property
    def response(self) -> Response:
        """The response so far."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the provider has marked the response as complete."""
        ...

    @property
    def has_started(self) -> bool:
        """Whether a request was sent."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, for whatever reason."""
        ...

    async def batch(self) -> list[Event]:
        """The next event and those that came with it; empty at the end."""
        ...

    async def close(self) -> None:
        """Stop reading."""
        ...


class BlockingTwins(ABC):
    """Adds `async with` and blocking variants to a model's `send`, `stream` and `close`.

    The blocking variant of `x` is `x_sync`; it runs on an event loop in the background.
    """

    @abstractmethod
    async def send(self, request: Request | Any) -> Response:
        """The model's response. Takes a `Request`, or whatever `Messages.from_any` takes."""

    @abstractmethod
    def stream(self, request: Request | Any) -> Batched:
        """The model's response as a stream, usable once."""

    @abstractmethod
    async def close(self) -> None:
        """Close connections. Calling it again has no effect."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        await self.close()

    def send_sync(self, request: Request | Any) -> Response:
        """See `send`."""
        return portal.run(self.send(request))

    def stream_sync(self, request: Request | Any) -> BlockingStream:
        """See `stream`; use `for` and `with` instead of `async for` and `async with`."""
        return BlockingStream(self.stream(request))

    def close_sync(self) -> None:
        """See `close`, for connections of the blocking methods."""
        portal.run(self.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close_sync()


class BlockingStream:
    """A blocking `ResponseStream`, for scripts, notebooks and threads.

    ```python
    with client.stream_sync("Tell me more.") as stream:
        for event in stream:
            ...
    response = stream.response
    ```

    It runs on an event loop in the background. An interrupt (Ctrl-C) closes the connection.
    """

    def __init__(self, stream: Batched) -> None:
        self._stream = stream
        self._ready: deque[Event] = deque()
        self._is_taken = False

    @property
    def response(self) -> Response:
        """The response so far."""
        return self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether the provider has marked the response as complete."""
        return self._stream.is_complete

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Stop reading; the connection is closed. Calling it again has no effect."""
        self._is_taken = True
        self._ready.clear()
        portal.run(self._stream.close())

    def collect(self) -> Response:
        """Read to the end, and return the whole response."""
        iter(self)  # raises if it is already being iterated
        with self:
            while portal.run(self._batch()):
                pass
        return self.response

    def __iter__(self) -> Self:
        if self._is_taken:
            msg = "a stream can be iterated only once; `response` has what arrived"
            raise InvalidInputError(msg)
        self._is_taken = True
        return self

    def __next__(self) -> Event:
        # All available events at once: switching threads costs more than an event.
        if not self._ready:
            self._ready.extend(portal.run(self._batch()))
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    async def _batch(self) -> list[Event]:
        if not self._stream.has_started:
            finalize(self, _dropped, self._stream, asyncio.get_running_loop())
        return await self._stream.batch()


def _dropped(stream: Batched, loop: asyncio.AbstractEventLoop) -> None:
    """Close a stream that was dropped before its end, on its own loop."""
    if not stream.is_over and loop.is_running():
        closing = stream.close()
        try:
            asyncio.run_coroutine_threadsafe(closing, loop)
        except RuntimeError:  # the loop ended at this moment
            closing.close()
