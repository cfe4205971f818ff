"""`EventStream`: iteration over the events of a response, one by one or in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Self

from dragoman.errors import InvalidInputError
from dragoman.model.events import Event
from dragoman.model.responses import Response


class EventStream(ABC):
    """A stream of events, usable once. Subclasses read it (`_advance`) and close it.

    A class, not nested generators: most events are already here, and a dropped stream leaves
    nothing for the loop to finalise.
    """

    def __init__(self) -> None:
        self._ready: deque[Event] = deque()
        self._is_taken = self._is_over = False

    @property
    @abstractmethod
    def response(self) -> Response:
        """The response so far."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the model has marked the response as complete."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, for whatever reason."""
        return self._is_over

    @abstractmethod
    async def _advance(self) -> None:
        """Read what comes next into `_ready`, or set `_is_over`."""

    @abstractmethod
    async def close(self) -> None:
        """Stop reading; the connection is closed. Calling it again has no effect."""

    async def aclose(self) -> None:
        """The same as `close`, for `contextlib.aclosing`."""
        await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def collect(self) -> Response:
        """Read to the end, and return the whole response."""
        aiter(self)  # raises if it is already being iterated
        async with self:
            while await self.batch():
                pass
        return self.response

    def __aiter__(self) -> Self:
        if self._is_taken:
            msg = "a stream can be iterated only once; `response` has what arrived"
            raise InvalidInputError(msg)
        self._is_taken = True
        return self

    async def batch(self) -> list[Event]:
        """The next event and those that came with it; empty at the end."""
        while not self._ready and not self._is_over:
            await self._advance()
        events = list(self._ready)
        self._ready.clear()
        return events

    async def __anext__(self) -> Event:
        ready = self._ready
        while not ready:
            if self._is_over:
                raise StopAsyncIteration
            await self._advance()
        return ready.popleft()
