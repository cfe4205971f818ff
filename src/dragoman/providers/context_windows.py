"""Context windows and output limits of models, from the vendors' data or user overrides."""

from __future__ import annotations

import re

from dragoman.errors import ConfigError
from dragoman.model.name_cache import cached_by_name
from dragoman.model.spelling import normalised
from dragoman.providers.facts import anthropic, google, open_models, openai
from dragoman.providers.facts.overrides import overrides, size_override
from dragoman.providers.facts.sizes import Size
from dragoman.providers.registry import normalised_names, provider

SIZES: tuple[Size, ...] = (
    *openai.SIZES, *anthropic.SIZES, *google.SIZES, *open_models.SIZES,
)  # fmt: skip
"""All known sizes; the first row that matches a model name counts."""
_COMPILED = tuple((re.compile(size.pattern), size) for size in SIZES)


def context_window(model: str) -> int | None:
    """The context window of a model, by name or `provider:model`; None if unknown.

    >>> context_window("anthropic:claude-sonnet-4-5")
    200000
    """
    found = size_of(model, "context_window")
    return None if found is None else found.context_window


def max_output_tokens(model: str) -> int | None:
    """The maximum output tokens of a model, by name or `provider:model`; None if unknown.

    >>> max_output_tokens("claude-opus-5-5")
    128000
    """
    found = size_of(model, "max_output_tokens")
    return None if found is None else found.max_output_tokens


def size_of(model: str, field: str) -> Size | None:
    """The row with a field of `Size` for a model: the user's override, or the built-in one."""
    return _own_size(model, field) if overrides() else listed_size(model)


def _own_size(model: str, field: str) -> Size | None:
    head, colon, rest = model.partition(":")
    bare = rest.rpartition("/")[2] if colon else model.rpartition("/")[2]
    names = {model, rest, bare} - {""}
    return size_override(_provider_names(head) if colon else (), names, field) or listed_size(model)


def _provider_names(name: str) -> set[str]:
    """The normalised names of a provider."""
    try:
        return normalised_names(provider(name))
    except ConfigError:
        return {normalised(name)}


@cached_by_name(256)
def listed_size(model: str) -> Size | None:
    """The built-in size of a model, ignoring user overrides."""
    name = model.partition(":")[2] or model
    name = name.rpartition("/")[2].lower()  # OpenRouter and Vertex prefix the vendor
    return next((size for pattern, size in _COMPILED if pattern.match(name)), None)
