"""Models without `await`: the twins of `send`, `stream` and `close`, in scripts and threads."""

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
    """A stream that gives events as many at a time as there are."""

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done."""
        ...

    @property
    def has_started(self) -> bool:
        """Whether a request was made."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, for whatever reason."""
        ...

    async def batch(self) -> list[Event]:
        """The next event, and those that came with it; none when all have been."""
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


class BlockingTwins(ABC):
    """What a model has besides `send`, `stream` and `close`: `async with`, and all without `await`.

    The twin of `x` is `x_sync`; it runs on a loop in the background.
    """

    @abstractmethod
    async def send(self, request: Request | Any) -> Response:
        """The model's answer. Takes a `Request`, or whatever `Messages.from_any` takes."""

    @abstractmethod
    def stream(self, request: Request | Any) -> Batched:
        """The model's answer as it comes; to be gone through once."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections. Calling it again does nothing."""

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
        """See `stream`; `for` and `with` go where `async for` and `async with` would."""
        return BlockingStream(self.stream(request))

    def close_sync(self) -> None:
        """See `close`, for connections that the blocking methods made."""
        portal.run(self.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close_sync()


class BlockingStream:
    """A `ResponseStream` without `await`, for scripts, notebooks and threads.

    ```python
    with client.stream_sync("Tell me more.") as stream:
        for event in stream:
            ...
    response = stream.response
    ```

    It runs on a loop in the background. An interrupt (ctrl-C) closes the connection.
    """

    def __init__(self, stream: Batched) -> None:
        self._stream = stream
        self._ready: deque[Event] = deque()
        self._is_taken = False

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        return self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done."""
        return self._stream.is_complete

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Stop listening; the connection is closed. Calling it again does nothing."""
        self._is_taken = True
        self._ready.clear()
        portal.run(self._stream.close())

    def collect(self) -> Response:
        """The whole response, when it is there."""
        iter(self)  # whoever goes through it already is not disturbed
        with self:
            while portal.run(self._batch()):
                pass
        return self.response

    def __iter__(self) -> Self:
        if self._is_taken:
            msg = "a stream can be gone through once; `response` has what arrived"
            raise InvalidInputError(msg)
        self._is_taken = True
        return self

    def __next__(self) -> Event:
        # All that is there at once: a change of threads costs more than an event.
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
    """Close a stream that somebody left half way, on the loop where it is."""
    if not stream.is_over and loop.is_running():
        closing = stream.close()
        try:
            asyncio.run_coroutine_threadsafe(closing, loop)
        except RuntimeError:  # the loop ended this moment
            closing.close()
