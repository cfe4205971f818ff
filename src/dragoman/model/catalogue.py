"""Results of endpoints other than chat: model lists, token counts and embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, overload

from dragoman.model.frozen import EMPTY
from dragoman.model.responses import Embedding
from dragoman.model.usage import Usage
from dragoman.model.value import (
    Value,
    expect,
    expect_fields,
    expect_number,
    name_shown,
    own_mapping,
    own_tuple,
)


class ModelInfo(Value, frozen=True):
    """A model that a provider offers, as described by its model list."""

    id: str
    """The name to use in a request."""
    name: str | None = None
    """The display name."""
    context_window: int | None = None
    """Maximum number of tokens; `None` if the provider does not report it."""
    created: float | None = None
    """Unix time, in seconds."""
    extras: Mapping[str, Any] = EMPTY
    """Further fields of the provider, keyed by dialect."""

    def __post_init__(self) -> None:
        expect(self.id, str, "ModelInfo.id")
        expect_fields(self, name=str, context_window=int)
        expect_number(self.created, "ModelInfo.created")
        own_mapping(self, "extras")

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.id, self.name, self.context_window, self.created)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.id)
        if self.context_window is not None:
            yield f"{self.context_window} tokens"


class TokenCount(Value, frozen=True):
    """The number of tokens in a prompt."""

    tokens: int
    is_estimate: bool = False
    """Whether this is our estimate rather than the provider's count."""

    def __post_init__(self) -> None:
        expect(self.tokens, int, "TokenCount.tokens")
        expect(self.is_estimate, bool, "TokenCount.is_estimate")

    def __int__(self) -> int:
        return self.tokens

    def _sizes(self) -> Iterator[str]:
        yield f"{self.tokens} tokens"
        if self.is_estimate:
            yield "estimated"


class Embeddings(Value, frozen=True):
    """The embeddings of several texts, in the order of the texts."""

    items: tuple[Embedding, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    """Usage of the whole request; `None` if the provider did not report it."""

    def __post_init__(self) -> None:
        own_tuple(self, "items", Embedding)
        expect_fields(self, model=str, usage=Usage)

    @property
    def vectors(self) -> tuple[tuple[float, ...], ...]:
        """The embedding vectors, as tuples of floats."""
        return tuple(item.vector for item in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Embedding]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Embedding: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Embedding | Self:
        if isinstance(index, slice):
            return self.replace(items=self.items[index])
        if not -len(self.items) <= index < len(self.items):
            msg = f"embedding index out of range; there are {len(self.items)}"
            raise IndexError(msg)
        return self.items[index]

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.items,)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.items)} texts"
