"""Embeddings of texts, by the model of an agent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model import portal
from dragoman.model.catalogue import Embeddings
from dragoman.model.responses import Embedding
from dragoman.model.value import expect
from dragoman.transport.model import Model


class Embeds:
    """What has a model, and may ask it for embeddings."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The model that is asked."""

    async def embed_query(self, text: str, **settings: Any) -> Embedding:
        """A text's place in the model's space."""
        expect(text, str, "the text to embed")
        found: Embedding = await self._embedder()(text, **settings)
        return found

    async def embed_documents(self, texts: Iterable[str], **settings: Any) -> Embeddings:
        """The places of several texts, in their order."""
        if isinstance(texts, str):
            msg = "embed_documents takes a list of texts; for one there is embed_query"
            raise InvalidInputError(msg)
        expect(texts, Iterable, "the texts to embed")
        found: Embeddings = await self._embedder()(list(texts), **settings)
        return found

    def embed_query_sync(self, text: str, **settings: Any) -> Embedding:
        """See `embed_query`."""
        return portal.run(self.embed_query(text, **settings))

    def embed_documents_sync(self, texts: Iterable[str], **settings: Any) -> Embeddings:
        """See `embed_documents`."""
        return portal.run(self.embed_documents(texts, **settings))

    def _embedder(self) -> Any:
        embed = getattr(self.model, "embed", None)
        if embed is None:
            msg = f"{self.model.name} has no embeddings"
            raise ConfigError(msg)
        return embed
