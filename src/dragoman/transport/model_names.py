"""Model strings: `provider`, `provider:model`, `provider/model`, `provider?chat=…&embeddings=…`."""

from __future__ import annotations

from urllib.parse import parse_qsl

import msgspec

from dragoman.errors import ConfigError
from dragoman.model.value import expect
from dragoman.providers.registry import provider

_KINDS = {"chat": "chat", "embeddings": "embeddings", "embedding": "embeddings"}


class ModelName(msgspec.Struct, frozen=True):
    """A parsed model string."""

    provider: str
    chat: str | None = None
    embeddings: str | None = None

    def __str__(self) -> str:
        return self.provider if self.chat is None else f"{self.provider}:{self.chat}"


def parse_model(text: str) -> ModelName:
    """Parse a model string."""
    expect(text, str, "the name of a model")
    head, question, query = text.partition("?")
    if question and ":" not in head and "/" not in head:
        return _from_query(head, query)
    # Whichever comes first: a model's own name may contain the other.
    colon, slash = head.find(":"), text.find("/")
    ends = [place for place in (colon, slash) if place >= 0]
    if not ends:
        return ModelName(_provider(text))
    place = min(ends)
    model = text[place + 1 :]
    if not model:
        provider(_provider(text[:place]))  # a misspelled one raises, with the correct name
        raise ConfigError(_FORMS)
    return ModelName(_provider(text[:place]), chat=model)


def _from_query(provider: str, query: str) -> ModelName:
    named: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _KINDS or not value:
            raise ConfigError(_FORMS)
        named[_KINDS[key]] = value
    return ModelName(_provider(provider), **named)


def _provider(name: str) -> str:
    if not name.strip():
        raise ConfigError(_FORMS)
    return name


_FORMS = (
    "name a model as provider:model, provider/model, provider, or"
    " provider?chat=model&embeddings=model"
)
