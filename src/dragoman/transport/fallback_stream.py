"""A stream from the first of several models that starts one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from dragoman.errors import (
    AllFailed,
    DragomanError,
    ProviderError,
    TransportError,
)
from dragoman.model.events import Event, OpaqueEvent, ResponseStart
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.transport.event_stream import EventStream
from dragoman.transport.model import Model, ModelStream

_BEFORE_ANSWER = (ResponseStart, OpaqueEvent)


class FallbackStream(EventStream):
    """A response stream from one of several models, usable once."""

    def __init__(
        self,
        models: Sequence[Model],
        request: Request,
        when: Callable[[DragomanError], bool],
        *,
        interrupted: bool,
    ) -> None:
        super().__init__()
        self._models, self._request = models, request
        self._when, self._interrupted = when, interrupted
        self._causes: list[DragomanError] = []
        self._stream: ModelStream | None = None
        self._events: AsyncIterator[Event] | None = None
        self._has_begun = self._has_answered = self._is_again = False

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

    async def close(self) -> None:
        """Stop reading; the connection is closed. Calling it again has no effect."""
        self._is_taken = self._is_over = True
        self._ready.clear()
        if self._stream is not None:
            await self._stream.close()

    async def _advance(self) -> None:
        """Read what comes next, or fall back to the next model."""
        try:
            events = await self._coming()
        except DragomanError as error:
            failure = error
        except BaseException:  # cancelled: nothing stays open
            await self.close()
            raise
        else:
            self._take(events)
            return
        await self._leave(failure)

    async def _coming(self) -> list[Event]:
        """The next events of the current model; none at its end."""
        if self._events is None:
            model = self._models[len(self._causes)]
            self._stream = model.stream(request_for(model, self._request))
            self._events = aiter(self._stream)
        if isinstance(self._stream, EventStream):
            return await self._stream.batch()  # together: each coroutine costs time
        try:
            return [await anext(self._events)]
        except StopAsyncIteration:
            return []

    def _take(self, events: list[Event]) -> None:
        if not events:
            self._is_over = True
            return
        self._has_begun = True
        if self._is_again:
            self._is_again = self._has_answered = False
            events = _restarted(events)
        if not self._has_answered:
            self._has_answered = any(not isinstance(event, _BEFORE_ANSWER) for event in events)
        self._ready.extend(events)

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


def _restarted(events: list[Event]) -> list[Event]:
    """The first events after a fallback, marked as a restart."""
    first = events[0]
    if isinstance(first, ResponseStart):
        return [first.replace(restarts=True), *events[1:]]
    return [ResponseStart(restarts=True), *events]


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
