"""Caches for functions of names that clients choose, such as a model's."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

_MAX_LENGTH = 256
"""Characters; the names of real models are shorter."""
P = ParamSpec("P")
R = TypeVar("R")


def cached_by_name(count: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like `lru_cache(count)`, but bounded in bytes too: calls with a long name are not kept."""

    def cached(function: Callable[P, R]) -> Callable[P, R]:
        kept = lru_cache(count)(function)

        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            for each in args:
                if type(each) is str and len(each) > _MAX_LENGTH:
                    return function(*args, **options)
            return kept(*args, **options)  # type: ignore[arg-type]  # all are hashable

        return call

    return cached
