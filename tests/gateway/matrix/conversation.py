"""A conversation that one SDK leads, as its users write it; the scenarios speak through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel


class Called(NamedTuple):
    """A call that the model asks for, as the SDK shows it."""

    id: str | None
    name: str
    arguments: Mapping[str, Any]


class Counted(NamedTuple):
    """Token counts as the SDK shows them; None: its types have no place for that one."""

    input: int | None
    output: int | None
    cached: int | None = None
    reasoning: int | None = None


class Seen(NamedTuple):
    """An answer, as a user of the SDK reads it."""

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
    """The client, in tests and tables."""
    module: ClassVar[str]
    """What has to be installed."""
    front: ClassVar[str]
    """The dialect that it speaks."""
    embeds: ClassVar[bool] = True
    """Whether the SDK asks for embeddings."""

    def __init__(self, url: str, model: str) -> None:
        self.url = url
        self.model = model
        self.tools: list[Offered] = []
        self.thinks = False
        """Whether the model is asked to think, and to show it."""

    @abstractmethod
    def say(self, text: str, image: bytes | None = None) -> None:
        """The user's turn, a PNG with it."""

    @abstractmethod
    def answer(self, *, stream: bool) -> Seen:
        """The model's turn; it is kept for the next request, as users of the SDK keep it."""

    @abstractmethod
    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """The results of calls."""

    @abstractmethod
    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """The model's turn in a form, read by the SDK's own helper where it has one."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts."""
        raise NotImplementedError

    @abstractmethod
    def failures(self) -> Mapping[int, type[Exception]]:
        """By the provider's status: the SDK's own class for it."""

    @abstractmethod
    def broken(self) -> tuple[type[Exception], ...]:
        """What the SDK raises when a stream breaks off."""

    @abstractmethod
    def status(self, error: Any) -> int | None:
        """The status that an error tells."""

    def retry_after(self, error: Any) -> str | None:
        """The seconds to wait that an error tells; None: the SDK shows no headers."""
        found: str | None = error.response.headers.get("retry-after")
        return found
