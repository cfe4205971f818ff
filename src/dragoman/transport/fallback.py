"""Several models for one: where the first can't answer, the next is asked."""

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
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.provider import Provider
from dragoman.transport.blocking import BlockingTwins
from dragoman.transport.client import Client
from dragoman.transport.fallback_stream import FallbackStream, all_failed, request_for
from dragoman.transport.model import Model, open_model
from dragoman.transport.retries import Retries
from dragoman.wire.inputs.reader import read_request

_NOT_THERE = frozenset({404, 405})  # a wrong address, or a server that lacks the endpoint
_ONCE = Retries(attempts=1)


def another_may_answer(error: DragomanError) -> bool:
    """Whether the failure may be this model's alone.

    Networks, keys, quotas, overload, unknown models and windows that are too small are. What
    callers got wrong is not; nor is a refusal, which is an answer.
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

    Models are given by name, as providers, or open. The request is encoded anew for each of them.
    What failed for a reason of the caller's own is raised at once (`when` decides); where all of
    them fail, `AllFailed` has every cause.

    Those given by name are asked once each: one that is silent may have acted on the request, and
    gets it no second time. `retries` asks for more; open models have retries of their own. A stream
    goes on to the next model until its first event; with `interrupted` later, too, and then its
    events begin again from the start.
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
        """The models' names, in their order."""
        return "|".join(model.name for model in self._models)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models, in their order."""
        return self._models

    def __repr__(self) -> str:
        return f"FallbackModel({', '.join(model.name for model in self._models)})"

    async def close(self) -> None:
        """Close the models that were given by name. Calling it again does nothing."""
        for model in self._own:
            await model.close()

    async def send(self, request: Request | Any) -> Response:
        """The answer of the first model that gives one."""
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
        """The answer of the first model that begins one, as it comes; to be gone through once."""
        asked, goes_on = read_request(request), self._when
        return FallbackStream(self._models, asked, goes_on, interrupted=self._interrupted)


def _opened(model: str | Provider | Model, retries: Retries) -> Model:
    opened = open_model(model)
    if isinstance(opened, Client) and not isinstance(model, Model):
        return Client(model, retries=retries)  # the other kinds ask nobody twice
    return opened
