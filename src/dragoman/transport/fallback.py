"""`FallbackModel`: tries several models in order until one responds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.errors import (
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
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.provider import Provider
from dragoman.transport.blocking import BlockingTwins
from dragoman.transport.client import Client
from dragoman.transport.fallback_stream import FallbackStream, all_failed, request_for
from dragoman.transport.model import Model, open_model
from dragoman.transport.retries import Retries

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
