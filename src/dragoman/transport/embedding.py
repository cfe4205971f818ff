"""Embeddings of any number of texts, in as many requests as needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from dragoman.errors import (
    ConfigError,
    ContextTooLong,
    InvalidInputError,
    ProviderError,
    WireError,
)
from dragoman.model.catalogue import Embeddings
from dragoman.model.frozen import EMPTY
from dragoman.model.responses import Embedding
from dragoman.model.value import expect
from dragoman.tracing.spans import embedding_call
from dragoman.tracing.switch import is_traced
from dragoman.transport.exchanges import Line
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
    size = _size(batch, found.most, len(asked.inputs))
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


def _size(asked: int | None, most: int | None, texts: int) -> int:
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
