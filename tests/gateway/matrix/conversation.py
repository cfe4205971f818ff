"""A conversation through one SDK, written as its users would; the scenarios use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel


class Called(NamedTuple):
    """A tool call of the model, as the SDK returns it."""

    id: str | None
    name: str
    arguments: Mapping[str, Any]


class Counted(NamedTuple):
    """Token counts as the SDK returns them; None if its types have no such field."""

    input: int | None
    output: int | None
    cached: int | None = None
    reasoning: int | None = None


class Seen(NamedTuple):
    """An answer, as a user of the SDK sees it."""

    text: str
    thinking: str = ""
    calls: tuple[Called, ...] = ()
    usage: Counted = Counted(None, None)


class Offered(NamedTuple):
    """A function that the model may call."""

    name: str
    parameters: Mapping[str, Any]
    description: str = "Looks it up."


class Conversation(ABC):
    """One conversation with a model behind the gateway."""

    name: ClassVar[str]
    """The client's name in tests and tables."""
    module: ClassVar[str]
    """The package that must be installed."""
    front: ClassVar[str]
    """The dialect that it speaks."""
    embeds: ClassVar[bool] = True
    """Whether the SDK supports embeddings."""

    def __init__(self, url: str, model: str) -> None:
        self.url = url
        self.model = model
        self.tools: list[Offered] = []
        self.thinks = False
        """Whether visible thinking is requested."""

    @abstractmethod
    def say(self, text: str, image: bytes | None = None) -> None:
        """Add a user message, optionally with a PNG."""

    @abstractmethod
    def answer(self, *, stream: bool) -> Seen:
        """Request the response, and keep it for the next request as users of the SDK do."""

    @abstractmethod
    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""

    @abstractmethod
    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output, parsed by the SDK's own helper if it has one."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The embeddings of texts."""
        raise NotImplementedError

    @abstractmethod
    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by the provider's status."""

    @abstractmethod
    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that the SDK raises if a stream breaks off."""

    @abstractmethod
    def status(self, error: Any) -> int | None:
        """The HTTP status of an error."""

    def retry_after(self, error: Any) -> str | None:
        """The `Retry-After` of an error; None if the SDK doesn't return headers."""
        found: str | None = error.response.headers.get("retry-after")
        return found
