"""A stream from the first of several models that starts one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Self

from dragoman.errors import (
    AllFailed,
    DragomanError,
    InvalidInputError,
    ProviderError,
    TransportError,
)
from dragoman.model.events import Event, OpaqueEvent, ResponseStart
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.transport.model import Model, ModelStream


class FallbackStream:
    """A response stream from one of several models, usable once."""

    def __init__(
        self,
        models: Sequence[Model],
        request: Request,
        when: Callable[[DragomanError], bool],
        *,
        interrupted: bool,
    ) -> None:
        self._models, self._request = models, request
        self._when, self._interrupted = when, interrupted
        self._causes: list[DragomanError] = []
        self._stream: ModelStream | None = None
        self._events: AsyncIterator[Event] | None = None
        self._is_taken = self._has_begun = self._is_over = False
        self._has_answered = self._is_again = False
        self._held: Event | None = None

    @property
    def name(self) -> str:
        """The name of the current model."""
        return self._models[min(len(self._causes), len(self._models) - 1)].name

    @property
    def response(self) -> Response:
        """The response so far, of the current model."""
        return Response() if self._stream is None else self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether the model has marked the response as complete."""
        return self._stream is not None and self._stream.is_complete

    @property
    def has_started(self) -> bool:
        """Whether a request was sent."""
        return self._stream is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, for whatever reason."""
        return self._is_over

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop reading; the connection is closed. Calling it again has no effect."""
        self._is_taken = self._is_over = True
        if self._stream is not None:
            await self._stream.close()

    aclose = close  # for `contextlib.aclosing`

    async def collect(self) -> Response:
        """Read to the end, and return the whole response."""
        async with self:
            async for _ in self:
                pass
        return self.response

    def __aiter__(self) -> Self:
        if self._is_taken:
            msg = "a stream can be iterated only once; `response` has what arrived"
            raise InvalidInputError(msg)
        self._is_taken = True
        return self

    async def __anext__(self) -> Event:
        if self._held is not None:
            held, self._held = self._held, None
            return self._told(held)
        while not self._is_over:
            try:
                event = await anext(self._coming())
            except StopAsyncIteration:
                break
            except DragomanError as error:
                failure = error
            except BaseException:  # cancelled: nothing stays open
                await self.close()
                raise
            else:
                return self._told(event)
            await self._leave(failure)
        self._is_over = True
        raise StopAsyncIteration

    def _told(self, event: Event) -> Event:
        """The event for the caller; the first one after a fallback is marked as a restart."""
        self._has_begun = True
        if self._is_again:
            self._is_again = self._has_answered = False
            start = event if isinstance(event, ResponseStart) else ResponseStart()
            if start is not event:
                self._held = event
            return start.replace(restarts=True)
        if not isinstance(event, (ResponseStart, OpaqueEvent)):
            self._has_answered = True
        return event

    async def batch(self) -> list[Event]:
        """The next event; empty at the end."""
        try:
            return [await self.__anext__()]
        except StopAsyncIteration:
            return []

    def _coming(self) -> AsyncIterator[Event]:
        """The events of the current model."""
        if self._events is None:
            model = self._models[len(self._causes)]
            self._stream = model.stream(request_for(model, self._request))
            self._events = aiter(self._stream)
        return self._events

    async def _leave(self, error: DragomanError) -> None:
        """Fall back to the next model; raises if there is none, or if it wouldn't help."""
        if self._stream is not None:
            await self._stream.close()
        self._events = None
        is_late = self._has_begun and not self._interrupted
        if is_late or not self._when(error):
            self._is_over = True
            raise error
        self._causes.append(error)
        self._is_again = self._is_again or self._has_answered
        if len(self._causes) == len(self._models):
            self._is_over = True
            raise all_failed(self._models, self._causes)


def all_failed(models: Sequence[Model], causes: Sequence[DragomanError]) -> AllFailed:
    """The error if no model responded."""
    for model, cause in zip(models, causes, strict=True):
        if isinstance(cause, (TransportError, ProviderError)):
            provider, _, name = model.name.partition(":")
            cause.add_request_info(provider=provider, host=None, model=name or None)
    return AllFailed(f"all {len(causes)} models failed", causes=causes)


def request_for(model: Model, request: Request) -> Request:
    """The request for one of the models, without its model name if the model has its own."""
    has_own = bool(model.name.partition(":")[2])
    return request.replace(model=None) if has_own and request.model is not None else request
