"""Matches requested model names against routes and providers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dragoman.gateway.config.settings import Place, RouteSettings
from dragoman.model.spelling import normalised
from dragoman.providers.facts.names import base_of, is_listed, pattern_of
from dragoman.providers.registry import normalised_names

_MAX_PREFIX_LENGTH = 64
_MAX_MATCHED_LENGTH = 1024  # longer names match no pattern
_MAX_LISTED_LENGTH = 128  # no vendor's names are longer, and `is_listed` caches its arguments


class NamedRoutes:
    """The routes of the file, by name: the most specific one is used.

    An exact name takes precedence over patterns, then the pattern with the longest literal part,
    then the first one in the file.
    """

    def __init__(self, routes: Iterable[RouteSettings]) -> None:
        exact: dict[str, RouteSettings] = {}
        patterns: list[RouteSettings] = []
        for route in routes:
            if route.is_pattern:
                patterns.append(route)
            else:
                exact.setdefault(route.model, route)
        patterns.sort(key=lambda route: -literal_length(route.model))
        self._exact = exact
        self._patterns = [(re.compile(pattern_of(route.model)), route) for route in patterns]
        self._default = next((route for route in patterns if not literal_length(route.model)), None)

    def find(self, model: str | None) -> RouteSettings | None:
        """The route for a name; without a name, the default route `*`."""
        if model is None:
            return self._default
        found = self._exact.get(model)
        if found is not None or len(model) > _MAX_MATCHED_LENGTH:
            return found
        if "," in model:  # several models, to some routers
            return self._default
        return next((route for shape, route in self._patterns if shape.match(model)), None)


def literal_length(pattern: str) -> int:
    """The number of literal characters in a pattern.

    >>> literal_length("gpt-*"), literal_length("*")
    (4, 0)
    """
    return len(pattern) - pattern.count("*")


def model_at(place: Place, model: str | None) -> str | None:
    """The model name to send to a place: the client's, without a prefix that names the place.

    None for a model in this process, which has only one.
    """
    if model is None or place.provider is None:
        return None
    rest = _rest_at(place, model)
    return model if rest is None else rest


def known_place(model: str, places: Mapping[str, Place]) -> Place | None:
    """The place that serves a model, if that is known without fetching model lists."""
    own = places.get(model) or places.get(f"{model}:")
    if own is not None and own.model_url is not None:
        return own
    found = [place for place in places.values() if _rest_at(place, model) is not None]
    # A prefix that is the place's own name takes precedence over its provider's.
    found.sort(key=lambda place: not model.startswith(f"{place.name}:"))
    found += [place for place in places.values() if not found and _lists(place, model)]
    return found[0] if found else None


def _rest_at(place: Place, model: str) -> str | None:
    """The model name after a prefix that names the place; None: no such prefix."""
    head, colon, rest = model[: _MAX_PREFIX_LENGTH + 1].partition(":")
    if not colon or not rest or place.provider is None:
        return None
    prefix = normalised(head)
    is_named = head == place.name or (prefix and prefix in _names_of(place))
    return model[len(head) + 1 :] if is_named else None


def _names_of(place: Place) -> set[str]:
    names = set() if place.provider is None else normalised_names(place.provider)
    return names | {normalised(place.name)}


def _lists(place: Place, model: str) -> bool:
    if len(model) > _MAX_LISTED_LENGTH:
        return False
    if place.provider is not None:
        return is_listed(place.provider.names, base_of(model))
    return place.model_url is not None and place.model_url.partition(":")[2] == model
