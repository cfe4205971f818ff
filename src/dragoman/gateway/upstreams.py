"""The upstreams that the gateway calls: providers over HTTP, and models in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping

from dragoman.errors import DragomanError, ProviderError, TransportError
from dragoman.gateway.config.settings import Place
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.endpoints import USUAL
from dragoman.tracing.switch import propagated
from dragoman.transport.client import Client, accepted
from dragoman.transport.deployments import Deployment
from dragoman.transport.model import Model, ModelStream, open_model
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport
from dragoman.transport.retries import Retries, repeated
from dragoman.wire.dialect import Dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.key_masking import masked, without_addresses
from dragoman.wire.target import Target

_MAX_CACHED = 256


class Upstream:
    """A provider reached over HTTP (`is_wire`), or a model in this process.

    URLs, keys and headers are assembled once per model and cached.
    """

    def __init__(
        self, place: Place, transport: Transport, secrets: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`secrets` are those of the whole configuration, which errors must not show."""
        self.place = place
        self._secrets = secrets
        self.name = place.name
        self.is_wire = place.provider is not None
        self._transport = transport
        self._retries = Retries(attempts=place.retries + 1)
        self._deployments: dict[str | None, Deployment] = {}
        self._heads: dict[tuple[str, str | None, str], HttpRequest] = {}
        self._model: Model | None = None
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"<upstream {self.name}>"

    async def close(self) -> None:
        """Close the local model and the client."""
        if self._model is not None:
            await self._model.close()
        if self._client is not None:
            await self._client.close()

    # --- facts

    @property
    def provider_name(self) -> str:
        """The provider's name, for prices, metrics and the origin of responses."""
        provider = self.place.provider
        return self.name if provider is None else provider.name

    def deployment(self, model: str | None) -> Deployment:
        """The deployment of a model: its URL, key and dialect."""
        found = self._deployments.get(model)
        if found is None:
            if len(self._deployments) >= _MAX_CACHED:
                self._deployments.clear()
            found = self._deployments[model] = self._deployed().reaching(model)
        return found

    def _deployed(self) -> Deployment:
        place = self.place
        return Deployment(
            place.provider or "openai-compatible:",
            key=place.key(os.environ),
            base_url=place.base_url,
            headers=place.headers,
            parameters=place.parameters,
            dialect_name=place.dialect,
        )

    def dialect(self, model: str | None) -> Dialect:
        """The dialect that this upstream uses for a model."""
        return self.deployment(model).dialect

    def target(self, model: str | None) -> Target:
        """What is known about a model's capabilities at this upstream."""
        return self.deployment(model).target(model)

    def needs_name(self) -> bool:
        """Whether requests need a model name because the URL contains it."""
        provider = self.place.provider
        if provider is None:
            return False
        spoken = self.dialect(None).name
        paths = provider.endpoints.get(spoken) or USUAL.get(spoken)
        return paths is not None and "{model}" in paths.generate

    @property
    def client(self) -> Client:
        """A client for everything but chats: embeddings, model lists, token counts."""
        if self._client is None:
            place = self.place
            assert place.provider is not None  # noqa: S101 - only called where `is_wire`
            self._client = Client(
                place.provider, key=place.key(os.environ), base_url=place.base_url,
                headers=place.headers, parameters=place.parameters, dialect=place.dialect,
                timeouts=place.timeouts, retries=self._retries, transport=self._transport,
            )  # fmt: skip
        return self._client

    # --- over HTTP

    async def open(
        self, endpoint: str, encoded: Encoded, model: str | None, timeouts: Timeouts | None = None
    ) -> Reply:
        """Send a request, with retries; return the reply, or raise the provider's error."""
        deployment = self.deployment(model)
        message = self._message(deployment, endpoint, encoded, model)
        limits = self.limits(timeouts)
        try:
            return await accepted(self._transport, message, limits, deployment.dialect)
        except (TransportError, ProviderError) as error:
            failure = error
        try:
            return await self._again(failure, message, limits, deployment)
        except (TransportError, ProviderError) as error:
            self.locate(error, model)
            raise

    def limits(self, timeouts: Timeouts | None) -> Timeouts:
        """The time limits of a request: its route's, else this provider's."""
        return timeouts or self.place.timeouts

    async def accept(self, message: HttpRequest, limits: Timeouts, model: str | None) -> Reply:
        """Send a prepared request once, without retries; raise the provider's error."""
        deployment = self.deployment(model)
        try:
            return await accepted(self._transport, message, limits, deployment.dialect)
        except (TransportError, ProviderError) as error:
            self.locate(error, model)
            raise

    async def _again(
        self, failure: DragomanError, message: HttpRequest, limits: Timeouts, place: Deployment
    ) -> Reply:
        wait = self._retries.wait(1, failure)
        if wait is None:
            raise failure
        await asyncio.sleep(wait)
        left = Retries(attempts=max(self._retries.attempts - 1, 1))
        return await repeated(
            lambda: accepted(self._transport, message, limits, place.dialect), left, asyncio.sleep
        )

    def _message(
        self, deployment: Deployment, endpoint: str, encoded: Encoded, model: str | None
    ) -> HttpRequest:
        extra_headers = encoded.headers
        key = (endpoint, model, _flat(extra_headers) if extra_headers else "")
        head = self._heads.get(key)
        if head is None:
            head = deployment.request(endpoint, model=model, headers=extra_headers)
            if len(self._heads) >= _MAX_CACHED:
                self._heads.clear()
            self._heads[key] = head
        return HttpRequest(url=head.url, headers=propagated(head.headers), body=encoded.to_bytes())

    def locate(self, error: DragomanError, model: str | None) -> None:
        """Add where it happened to an error in a response, and mask our keys in its text."""
        if self.is_wire:
            self.deployment(model).locate(error, model, self._secrets())

    def mask(self, text: str, model: str | None) -> str:
        """A text of this upstream without keys and internal addresses."""
        if not self.is_wire:
            return text
        found = self.deployment(model)
        return without_addresses(masked(text, (*self._secrets(), *found.secrets())), found.host)

    # --- in this process

    @property
    def is_loaded(self) -> bool:
        """Whether the model in this process is already loaded."""
        return self._model is not None

    def _opened(self) -> Model:
        if self._model is None:
            self._model = open_model(self.place.model_url or "")
        return self._model

    async def send(self, request: Request) -> Response:
        """Generate a response with the model in this process."""
        return await self._opened().send(request)

    def stream(self, request: Request) -> ModelStream:
        """Stream a response of the model in this process."""
        return self._opened().stream(request)


def _flat(headers: Mapping[str, str]) -> str:
    return "\n".join(f"{name}:{value}" for name, value in headers.items())
