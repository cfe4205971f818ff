"""`FallbackModel`: tries several models in order until one responds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from dragoman.errors import (
    AllFailed,
    ConfigError,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    NotRecorded,
    ProviderError,
    Refused,
    TransportError,
    WireError,
)
from dragoman.interop.reader import read_request
from dragoman.model.events import Event, OpaqueEvent, ResponseStart
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.provider import Provider
from dragoman.transport.blocking import BlockingTwins
from dragoman.transport.client import Client
from dragoman.transport.model import Model, ModelStream, open_model
from dragoman.transport.retries import Retries
from dragoman.transport.streaming import EventStream

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


_NOT_THERE = frozenset({404, 405})  # a wrong address, or a missing endpoint
_ONCE = Retries(attempts=1)


def another_may_answer(error: DragomanError) -> bool:
    """Whether another model may succeed where this one failed.

    True for errors of networks, keys, quotas, overload, unknown models and small context windows.
    False for errors of the caller, and for a refusal, which is an answer.
    """
    if isinstance(error, InvalidRequest):
        return error.retryable or error.status in _NOT_THERE
    if isinstance(error, (Refused, NotRecorded)):
        return False
    return isinstance(error, (ProviderError, TransportError, WireError, ConfigError))


class FallbackModel(BlockingTwins):
    """A list of models, tried in order at each request until one answers.

    ```python
    model = FallbackModel("anthropic:claude-sonnet-4-5", "openai:gpt-5", "ollama:llama3.2")
    response = await model.send("Where is the Old Bridge?")
    ```

    Models are given by name, as providers, or as open models. The request is encoded separately for
    each. Errors of the caller are raised at once (`when` decides); if all models fail, `AllFailed`
    has every cause.

    Models given by name are tried once each: one that times out may have acted on the request, so
    it is not sent there again. `retries` allows more attempts; open models have their own retries.
    A stream falls back to the next model before its first event; with `interrupted` also later, and
    then its events start again from the beginning.
    """

    def __init__(
        self,
        *models: str | Provider | Model,
        retries: Retries | None = None,
        interrupted: bool = False,
        when: Callable[[DragomanError], bool] = another_may_answer,
    ) -> None:
        if not models:
            msg = "a FallbackModel needs at least one model"
            raise InvalidInputError(msg)
        self._models = tuple(_opened(model, retries or _ONCE) for model in models)
        given = zip(models, self._models, strict=True)
        self._own = tuple(made for model, made in given if made is not model)
        self._interrupted = interrupted
        self._when = when

    @property
    def name(self) -> str:
        """The names of the models, in order."""
        return "|".join(model.name for model in self._models)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models, in order."""
        return self._models

    def __repr__(self) -> str:
        return f"FallbackModel({', '.join(model.name for model in self._models)})"

    async def close(self) -> None:
        """Close the models that were given by name. Calling it again has no effect."""
        for model in self._own:
            await model.close()

    async def send(self, request: Request | Any) -> Response:
        """The response of the first model that succeeds."""
        asked = read_request(request)
        causes: list[DragomanError] = []
        for model in self._models:
            try:
                return await model.send(request_for(model, asked))
            except DragomanError as error:
                if not self._when(error):
                    raise
                causes.append(error)
        raise all_failed(self._models, causes)

    def stream(self, request: Request | Any) -> FallbackStream:
        """The stream of the first model that starts one; usable once."""
        asked, goes_on = read_request(request), self._when
        return FallbackStream(self._models, asked, goes_on, interrupted=self._interrupted)


def _opened(model: str | Provider | Model, retries: Retries) -> Model:
    opened = open_model(model)
    if isinstance(opened, Client) and not isinstance(model, Model):
        return Client(model, retries=retries)  # the other kinds have no retries
    return opened
