"""Single requests with whole responses, for the endpoints other than conversations."""

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
    """A complete response."""

    headers: Mapping[str, str]
    body: bytes


class Line(NamedTuple):
    """A way to send requests to a provider."""

    deployment: Deployment
    ask: Callable[[Deployment, HttpRequest], Awaitable[Answer]]
    """Sends a request; handles retries, limits and errors."""

    async def exchange(self, message: HttpRequest) -> Answer:
        """The response to a request."""
        return await self.ask(self.deployment, message)

    @property
    def dialect(self) -> str:
        """The name of its dialect."""
        return self.deployment.dialect.name

    def reaching(self, model: str | None) -> Line:
        """The same in the dialect that a model requires."""
        return Line(self.deployment.reaching(model), self.ask)

    def speaking(self, name: str) -> Line:
        """The same in another of the provider's dialects."""
        return Line(self.deployment.speaking(name), self.ask)

    def needs(self, service: T | None, what: str) -> T:
        """The service; raises if the dialect doesn't have it."""
        if service is None:
            name = self.deployment.provider.name
            msg = f"{name} has no {what} in dialect {self.dialect}"
            raise ConfigError(msg)
        return service


def with_query(message: HttpRequest, query: Mapping[str, str]) -> HttpRequest:
    """The request with additional query parameters."""
    if not query:
        return message
    mark = "&" if "?" in message.url else "?"
    return msgspec.structs.replace(message, url=f"{message.url}{mark}{urlencode(query)}")
