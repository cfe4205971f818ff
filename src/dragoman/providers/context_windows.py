"""How many tokens a model takes and writes, as its maker says, or as the user says."""

from __future__ import annotations

import re
from functools import lru_cache

from dragoman.errors import ConfigError
from dragoman.model.spelling import normalised
from dragoman.providers.facts import anthropic, google, open_models, openai
from dragoman.providers.facts.overrides import overrides, size_override
from dragoman.providers.facts.sizes import Size
from dragoman.providers.registry import heard_names, provider

SIZES: tuple[Size, ...] = (
    *openai.SIZES, *anthropic.SIZES, *google.SIZES, *open_models.SIZES,
)  # fmt: skip
"""What is known of models' sizes; the first row that covers a name counts."""
_COMPILED = tuple((re.compile(size.pattern), size) for size in SIZES)


def context_window(model: str) -> int | None:
    """The tokens that a model takes, by its name or `provider:model`; None where not known.

    >>> context_window("anthropic:claude-sonnet-4-5")
    200000
    """
    found = size_of(model, "context_window")
    return None if found is None else found.context_window


def max_output_tokens(model: str) -> int | None:
    """The tokens that an answer of a model may have, as `context_window`; None where not known.

    >>> max_output_tokens("claude-opus-5-5")
    128000
    """
    found = size_of(model, "max_output_tokens")
    return None if found is None else found.max_output_tokens


def size_of(model: str, field: str) -> Size | None:
    """The row that says a field of `Size` for a model: the user's, or the one that is listed."""
    return _own_size(model, field) if overrides() else listed_size(model)


def _own_size(model: str, field: str) -> Size | None:
    head, colon, rest = model.partition(":")
    bare = rest.rpartition("/")[2] if colon else model.rpartition("/")[2]
    names = {model, rest, bare} - {""}
    return size_override(_places(head) if colon else (), names, field) or listed_size(model)


def _places(name: str) -> set[str]:
    """How a provider's names sound."""
    try:
        return heard_names(provider(name))
    except ConfigError:
        return {normalised(name)}


@lru_cache(maxsize=256)
def listed_size(model: str) -> Size | None:
    """The row about a model's size, without what users say."""
    name = model.partition(":")[2] or model
    name = name.rpartition("/")[2].lower()  # OpenRouter and Vertex put the maker in front
    return next((size for pattern, size in _COMPILED if pattern.match(name)), None)
