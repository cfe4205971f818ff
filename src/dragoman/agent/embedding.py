"""Embeddings from the model of an agent."""

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
    """A mixin for objects whose model may offer embeddings."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The model to use."""

    async def embed_query(self, text: str, **settings: Any) -> Embedding:
        """The text's embedding vector."""
        expect(text, str, "the text to embed")
        found: Embedding = await self._embedder()(text, **settings)
        return found

    async def embed_documents(self, texts: Iterable[str], **settings: Any) -> Embeddings:
        """The embedding vectors of several texts, in order."""
        if isinstance(texts, str):
            msg = "embed_documents takes a list of texts; use embed_query for a single one"
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
            msg = f"{self.model.name} does not support embeddings"
            raise ConfigError(msg)
        return embed
