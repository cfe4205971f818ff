"""All facts about models with their sources, for `dragoman models --facts`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dragoman.errors import ConfigError
from dragoman.providers.context_windows import SIZES, size_of
from dragoman.providers.facts.names import base_of, is_listed, without_guesses
from dragoman.providers.facts.overrides import overrides
from dragoman.providers.facts.sizes import Size
from dragoman.providers.provider import Provider
from dragoman.providers.registry import provider, providers

_FIELDS = ("context_window", "max_output_tokens")


class Fact(NamedTuple):
    """One fact about some models, with its source."""

    models: str
    """A provider and a model, or a pattern of model names."""
    dialect: str | None
    """The dialect it applies to; None for all."""
    name: str
    """A flag of `Target`, or a field of `Size`."""
    value: Any
    source: str
    date: str


def facts(about: str | None = None) -> list[Fact]:
    """The facts about all models, a provider's models, or one model (name or `provider:model`)."""
    if about is None:
        return [*_sizes(), *(fact for each in providers() for fact in _rows(each))]
    head, colon, rest = about.partition(":")
    if colon and rest:
        return list(_of_model(provider(head), rest))
    try:
        return list(_rows(provider(head)))
    except ConfigError:
        pass
    makers = [each for each in providers() if each.names and is_listed(each.names, about)]
    serving = makers or [each for each in providers() if _is_covered(each, about)]
    if not serving:
        return list(_size_of(about, about))
    return [fact for each in serving for fact in _of_model(each, about)]


def _is_covered(place: Provider, model: str) -> bool:
    return not place.names and any(row.covers(model) for row in place.families)


def _sizes() -> Iterator[Fact]:
    own = [each.size for each in overrides()]
    for size in (*own, *SIZES):
        yield from _of_size(size, size.pattern)


def _of_size(size: Size, models: str) -> Iterator[Fact]:
    for name in _FIELDS:
        if (value := getattr(size, name)) is not None:
            yield Fact(models, None, name, value, size.source, size.date)


def _rows(place: Provider) -> Iterator[Fact]:
    """The facts in the table of a provider."""
    for row in place.families:
        for name, value in row.changes.items():
            models = f"{place.name}:{row.pattern}"
            yield Fact(models, row.dialect, name, value, row.source, row.date)


def _of_model(place: Provider, model: str) -> Iterator[Fact]:
    """The facts that apply to a model; of several rows for the same flag, the last one."""
    named = f"{place.name}:{model}"
    yield from _size_of(named, named)
    is_known = not place.names or is_listed(place.names, model)
    for dialect in place.dialects:
        found: dict[str, Fact] = {}
        for row in place.rows_of(base_of(model), dialect):
            changes = row.changes if is_known else without_guesses(row.changes)
            for name, value in changes.items():
                found[name] = Fact(named, dialect, name, value, row.source, row.date)
        yield from found.values()


def _size_of(model: str, named: str) -> Iterator[Fact]:
    for name in _FIELDS:
        size = size_of(model, name)
        if size is not None and (value := getattr(size, name)) is not None:
            yield Fact(named, None, name, value, size.source, size.date)
