"""Targets given by name: a dialect, a provider or `provider:model`."""

from __future__ import annotations

from functools import lru_cache

from dragoman.providers.checking import reader_of
from dragoman.providers.translation import target_of
from dragoman.wire.dialect import Dialect, is_dialect
from dragoman.wire.target import Target


class Named:
    """A target by name; raises if it is unknown."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.model = None if is_dialect(name) else target_of(name).model
        """The model in the name, which replaces a request's."""
        self.fitting = lru_cache(maxsize=256)(self._fitting)

    def _fitting(self, model: str | None) -> tuple[Dialect, Target | None]:
        """The dialect and target for a request to a model."""
        return reader_of(self._name, model)
