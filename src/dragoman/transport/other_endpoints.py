"""The other endpoints of a client: embeddings, models, token counts and uploads."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import ceil
from operator import add
from typing import Any, overload

from dragoman.errors import (
    ConfigError,
    ContextTooLong,
    InvalidInputError,
    InvalidRequest,
    ModelNotFound,
    ProviderError,
    WireError,
)
from dragoman.model import portal
from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.media import Media
from dragoman.model.parts import Part, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Embedding
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.model.value import expect
from dragoman.providers.endpoints import USUAL, Endpoints
from dragoman.tracing.spans import embedding_call
from dragoman.tracing.switch import is_traced
from dragoman.transport.exchanges import Line, with_query
from dragoman.transport.uploading import AnyMedia, Source, upload
from dragoman.wire.embeddings import Embedded, EmbeddingFormat, ToEmbed
from dragoman.wire.json_values import opened
from dragoman.wire.services import services

_TOO_LONG_CODES = frozenset({"max_tokens_per_request"})  # OpenAI: for all texts together


async def embed(
    line: Line,
    texts: Iterable[str],
    *,
    model: str | None = None,
    dimensions: int | None = None,
    batch: int | None = None,
    extra: Mapping[str, Any] = EMPTY,
) -> Embeddings:
    """The embeddings of texts, in order.

    Each request contains at most `batch` texts, by default the maximum of the dialect's vendor. A
    request that is too long for the provider is split in half. `extra` are additional request
    fields, as the provider names them.
    """
    asked = ToEmbed(_model(line, model), _checked(texts), dimensions, extra)
    embedded = await embed_inputs(line, asked, batch=batch)
    model = embedded.model or asked.model
    items = [
        Embedding(tuple(vector), place, model) for place, vector in enumerate(embedded.vectors)
    ]
    return Embeddings(tuple(items), model, embedded.usage)


async def embed_inputs(line: Line, asked: ToEmbed, *, batch: int | None = None) -> Embedded:
    """The same for all kinds of input: token ids, media, tasks and titles; reports losses."""
    found = line.needs(services(line.dialect).embeddings, "embeddings")
    size = _batch_size(batch, found.most, len(asked.inputs))
    if not is_traced():
        return await _all(line, found, asked, size)
    place = line.deployment
    with embedding_call(place.provider.name, asked.model, place.url) as told:
        embedded = await _all(line, found, asked, size)
        told(embedded.usage, len(embedded.vectors[0]) if embedded.vectors else None)
        return embedded


async def _all(line: Line, found: EmbeddingFormat, asked: ToEmbed, size: int) -> Embedded:
    answers: list[Embedded] = []
    for start in range(0, len(asked.inputs), size):
        answers += await _embedded(line, found, asked.portion(start, start + size))
    return _joined(answers)


def _model(line: Line, named: str | None) -> str:
    name = line.deployment.name
    found = named or name.embeddings or name.chat
    if found is None:
        msg = "no embedding model given: pass model=, or name it as provider?embeddings=model"
        raise ConfigError(msg)
    return found


def _checked(texts: Iterable[str]) -> Sequence[str]:
    expect(texts, Iterable, "the texts to embed")
    found = tuple(texts)
    for text in found:
        expect(text, str, "a text to embed")
    return found


def _batch_size(asked: int | None, most: int | None, texts: int) -> int:
    if asked is not None and asked < 1:
        msg = "batch must be a positive integer"
        raise InvalidInputError(msg)
    return asked or most or max(texts, 1)


async def _embedded(line: Line, found: EmbeddingFormat, asked: ToEmbed) -> list[Embedded]:
    """The responses to a request, or to its halves if it is too long for the provider."""
    try:
        return [await _answer(line, found, asked)]
    except ProviderError as error:
        if len(asked.inputs) == 1 or not _is_too_long(error):
            raise
    half = len(asked.inputs) // 2
    first = await _embedded(line, found, asked.portion(0, half))
    return first + await _embedded(line, found, asked.portion(half))


def _is_too_long(error: ProviderError) -> bool:
    return isinstance(error, ContextTooLong) or error.code in _TOO_LONG_CODES


async def _answer(line: Line, found: EmbeddingFormat, asked: ToEmbed) -> Embedded:
    encoded = found.encode(asked)
    message = line.deployment.request("embed", encoded.to_bytes(), model=asked.model)
    answer = found.decode(opened((await line.exchange(message)).body, line.dialect))
    if len(answer.vectors) != len(asked.inputs):
        msg = f"the server sent {len(answer.vectors)} embeddings for {len(asked.inputs)} inputs"
        raise WireError(msg, dialect=line.dialect, path="$")
    return answer._replace(losses=tuple(encoded.losses))


def _joined(answers: Sequence[Embedded]) -> Embedded:
    vectors = [vector for answer in answers for vector in answer.vectors]
    usages = [answer.usage for answer in answers if answer.usage is not None]
    losses = dict.fromkeys(loss for answer in answers for loss in answer.losses)
    model = next((answer.model for answer in answers if answer.model), None)
    return Embedded(vectors, reduce(add, usages) if usages else None, model, tuple(losses))


_MAX_PAGES = 1000


async def list_models(line: Line) -> tuple[ModelInfo, ...]:
    """All models that the provider lists for this key, from all pages, in its order."""
    found = line.needs(services(line.dialect).models, "list of models")
    first = line.deployment.request("models", method="GET")
    models: list[ModelInfo] = []
    query = found.query
    for _ in range(_MAX_PAGES):
        answer = await line.exchange(with_query(first, query))
        page = found.decode(opened(answer.body, line.dialect))
        models += page.models
        # A page that points to itself would loop forever.
        if page.following is None or page.following == query:
            return tuple(models)
        query = page.following
    msg = f"the list of models has more than {_MAX_PAGES} pages"
    raise WireError(msg, dialect=line.dialect)


Estimator = Callable[[Request], int]

_ABSENT = frozenset({404, 405, 501})
_BYTES_PER_TOKEN = 3.5  # too high wastes some space, too low breaks the next request
_PER_MESSAGE = 4
_PER_MEDIUM = 1_000


async def count_tokens(
    line: Line, request: Request, estimate: Estimator | None = None
) -> TokenCount:
    """The tokens of a request's prompt.

    If the provider only counts in another of its dialects (OpenAI does, in Responses), that one is
    used if it has the model. Without any counter, `estimate` is used; a server that turned out to
    have none is not asked again.
    """
    line = line.reaching(request.model)
    for name in _dialects(line):
        try:
            return TokenCount(await _counted(line.speaking(name), request))
        except ProviderError as error:
            if _is_absent(error):
                line.deployment.lacking.add((name, "count"))
            elif name == line.dialect or not isinstance(error, (InvalidRequest, ModelNotFound)):
                raise
    return TokenCount((estimate or estimated)(request), is_estimate=True)


def _dialects(line: Line) -> Iterator[str]:
    """The dialects in which the provider counts tokens, the current one first."""
    provider = line.deployment.provider
    # If the model name determines the dialect, the model supports no other.
    others = () if provider.routes else provider.dialects
    for name in dict.fromkeys((line.dialect, *others)):
        is_lacking = (name, "count") in line.deployment.lacking
        if not is_lacking and _endpoints(line, name).count and services(name).counts:
            yield name


def _endpoints(line: Line, name: str) -> Endpoints:
    found = line.deployment.provider.endpoints.get(name) or USUAL.get(name)
    return found or Endpoints(generate="")


def _is_absent(error: ProviderError) -> bool:
    """Whether the server has no token counter; an unknown model is a different error."""
    return error.status in _ABSENT and not isinstance(error, ModelNotFound)


async def _counted(line: Line, request: Request) -> int:
    found = line.needs(services(line.dialect).counts, "counts")
    deployment = line.deployment
    target = deployment.target(request.model)
    encoded = deployment.dialect.encode_request(request, target)
    named = target.model if _endpoints(line, line.dialect).wraps_counts else None
    body = dumps(found.encode(encoded.body, named))
    message = deployment.request("count", body, model=request.model, headers=encoded.headers)
    answer = await line.exchange(message)
    return found.decode(opened(answer.body, line.dialect))


# --- the estimate


def estimated(request: Request) -> int:
    """A rough estimate of a prompt's tokens: by its bytes, and a fixed amount per media part."""
    parts = [*request.system, *(part for message in request.messages for part in message.parts)]
    size = sum(map(_size, parts)) + sum(map(_tool_size, request.tools))
    framing = _PER_MESSAGE * len(request.messages)
    return ceil(size / _BYTES_PER_TOKEN) + framing + _PER_MEDIUM * sum(map(_media, parts))


def _size(part: Part) -> int:
    """The bytes of a part's text."""
    if isinstance(part, (Text, Thinking)):
        return _bytes(part.text or "")
    if isinstance(part, ToolCall):
        return _bytes(part.name) + _bytes(part.raw_arguments)
    if isinstance(part, ToolResult):
        content = part.content
        return _bytes(content) if isinstance(content, str) else sum(map(_size, content))
    return 0


def _media(part: Part) -> int:
    if isinstance(part, ToolResult) and not isinstance(part.content, str):
        return sum(map(_media, part.content))
    return int(isinstance(part, Media))


def _tool_size(tool: object) -> int:
    if not isinstance(tool, ToolDefinition):
        return 0
    return len(dumps(tool.parameters)) + _bytes(tool.name) + _bytes(tool.description or "")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


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
