"""What providers say besides conversations: models they have, tokens they count, embeddings."""

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
    """A model that a provider has, as far as it tells."""

    id: str
    """What to name in a request."""
    name: str | None = None
    """What to call it before people."""
    context_window: int | None = None
    """The tokens it takes; None where the provider does not say."""
    created: float | None = None
    """In seconds since 1970."""
    extras: Mapping[str, Any] = EMPTY
    """By dialect: what else the provider says."""

    def __post_init__(self) -> None:
        expect(self.id, str, "ModelInfo.id")
        expect_fields(self, name=str, context_window=int)
        expect_number(self.created, "ModelInfo.created")
        own_mapping(self, "extras")

    def _said(self) -> tuple[Any, ...]:
        return (self.id, self.name, self.context_window, self.created)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.id)
        if self.context_window is not None:
            yield f"{self.context_window} tokens"


class TokenCount(Value, frozen=True):
    """The tokens of a prompt."""

    tokens: int
    is_estimate: bool = False
    """Whether we guessed; else the provider counted."""

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
    """The places of several texts in a model's space, in the order of the texts."""

    items: tuple[Embedding, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    """Of all of them together; None where the provider did not say."""

    def __post_init__(self) -> None:
        own_tuple(self, "items", Embedding)
        expect_fields(self, model=str, usage=Usage)

    @property
    def vectors(self) -> tuple[tuple[float, ...], ...]:
        """The numbers alone."""
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
            msg = f"there are {len(self.items)} embeddings, and none of that number"
            raise IndexError(msg)
        return self.items[index]

    def _said(self) -> tuple[Any, ...]:
        return (self.items,)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.items)} texts"
