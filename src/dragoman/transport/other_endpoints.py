"""The other endpoints of a client: embeddings, models, token counts and uploads."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, overload

from dragoman.model import portal
from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.responses import Embedding
from dragoman.transport.counting import Estimator, count_tokens
from dragoman.transport.embedding import embed, embed_inputs
from dragoman.transport.exchanges import Line
from dragoman.transport.listing import list_models
from dragoman.transport.uploading import AnyMedia, Source, upload
from dragoman.wire.embeddings import Embedded, ToEmbed


class OtherEndpoints(ABC):
    """Embeddings, model list, token counts and uploads, for a client that sends the requests."""

    _sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @property
    @abstractmethod
    def _line(self) -> Line:
        """How requests are sent."""

    @abstractmethod
    def _asked(self, request: Any, *, stream: bool) -> Request:
        """The request for the given input."""

    @overload
    async def embed(  # type: ignore[overload-overlap]  # one text is no list of its characters
        self, texts: str, *, model: str | None = None, dimensions: int | None = None,
        batch: int | None = None, extra: Mapping[str, Any] = EMPTY,
    ) -> Embedding: ...  # fmt: skip
    @overload
    async def embed(
        self, texts: Iterable[str], *, model: str | None = None, dimensions: int | None = None,
        batch: int | None = None, extra: Mapping[str, Any] = EMPTY,
    ) -> Embeddings: ...  # fmt: skip
    async def embed(
        self, texts: str | Iterable[str], *, model: str | None = None,
        dimensions: int | None = None, batch: int | None = None, extra: Mapping[str, Any] = EMPTY,
    ) -> Embedding | Embeddings:  # fmt: skip
        """The embedding of a text; or those of several texts, in order.

        `model` defaults to the client's (`openai?embeddings=text-embedding-3-small`). Each request
        contains at most `batch` texts, by default the provider's maximum. `extra` are additional
        request fields, as the provider names them.
        """
        given = [texts] if isinstance(texts, str) else texts
        found = await embed(
            self._line, given, model=model, dimensions=dimensions, batch=batch, extra=extra
        )
        if isinstance(texts, str):
            return found.items[0].replace(usage=found.usage)
        return found

    async def embed_inputs(self, asked: ToEmbed) -> Embedded:
        """The embeddings of any input: token ids, media, tasks; reports losses."""
        return await embed_inputs(self._line.reaching(asked.model), asked)

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that the provider lists for this key."""
        return await list_models(self._line)

    async def count_tokens(
        self, request: Request | Any, *, estimate: Estimator | None = None
    ) -> TokenCount:
        """The tokens of a prompt: as counted by the provider, or by `estimate` if it can't."""
        return await count_tokens(self._line, self._asked(request, stream=False), estimate)

    async def upload(
        self, source: Source, *, mime: str | None = None, name: str | None = None
    ) -> AnyMedia:
        """Upload content, a file path, or media with inline data; returns a part naming it."""
        return await upload(self._line, source, mime=mime, name=name, sleep=self._sleep)

    # --- blocking variants: for scripts, notebooks and threads

    @overload
    def embed_sync(  # type: ignore[overload-overlap]  # as above
        self, texts: str, *, model: str | None = None, dimensions: int | None = None,
        batch: int | None = None, extra: Mapping[str, Any] = EMPTY,
    ) -> Embedding: ...  # fmt: skip
    @overload
    def embed_sync(
        self, texts: Iterable[str], *, model: str | None = None, dimensions: int | None = None,
        batch: int | None = None, extra: Mapping[str, Any] = EMPTY,
    ) -> Embeddings: ...  # fmt: skip
    def embed_sync(self, texts: str | Iterable[str], **settings: Any) -> Embedding | Embeddings:
        """See `embed`."""
        return portal.run(self.embed(texts, **settings))

    def embed_inputs_sync(self, asked: ToEmbed) -> Embedded:
        """See `embed_inputs`."""
        return portal.run(self.embed_inputs(asked))

    def models_sync(self) -> tuple[ModelInfo, ...]:
        """See `models`."""
        return portal.run(self.models())

    def count_tokens_sync(
        self, request: Request | Any, *, estimate: Estimator | None = None
    ) -> TokenCount:
        """See `count_tokens`."""
        return portal.run(self.count_tokens(request, estimate=estimate))

    def upload_sync(
        self, source: Source, *, mime: str | None = None, name: str | None = None
    ) -> AnyMedia:
        """See `upload`."""
        return portal.run(self.upload(source, mime=mime, name=name))
