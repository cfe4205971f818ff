"""One request and its whole answer: what the endpoints besides conversations need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from dragoman.errors import ConfigError
from dragoman.transport.deployments import Deployment
from dragoman.transport.protocol import HttpRequest

T = TypeVar("T")


class Answer(NamedTuple):
    """An answer that has come in whole."""

    headers: Mapping[str, str]
    body: bytes


class Line(NamedTuple):
    """A way to a provider, and back."""

    deployment: Deployment
    ask: Callable[[Deployment, HttpRequest], Awaitable[Answer]]
    """Sends a request to a place; retries, limits and errors are its business."""

    async def exchange(self, message: HttpRequest) -> Answer:
        """The answer to a request."""
        return await self.ask(self.deployment, message)

    @property
    def dialect(self) -> str:
        """The dialect spoken on it."""
        return self.deployment.dialect.name

    def reaching(self, model: str | None) -> Line:
        """The same, in the dialect that a model speaks."""
        return Line(self.deployment.reaching(model), self.ask)

    def speaking(self, name: str) -> Line:
        """The same, in another of the provider's dialects."""
        return Line(self.deployment.speaking(name), self.ask)

    def needs(self, service: T | None, what: str) -> T:
        """A service that the dialect must have."""
        if service is None:
            name = self.deployment.provider.name
            msg = f"{name} has no {what} in the dialect {self.dialect}"
            raise ConfigError(msg)
        return service


def with_query(message: HttpRequest, query: Mapping[str, str]) -> HttpRequest:
    """A request with more in its query."""
    if not query:
        return message
    mark = "&" if "?" in message.url else "?"
    return msgspec.structs.replace(message, url=f"{message.url}{mark}{urlencode(query)}")
