"""What tests put in the place of parts of an agent, for as long as a `with` lasts.

It holds in the task or thread that says so, and in what they start; not in others at the same time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dragoman.model.frozen import EMPTY

_overridden: ContextVar[Mapping[object, Mapping[str, Any]]] = ContextVar(
    "dragoman_overridden",
    default={},  # noqa: B039 - it is never changed, but another one is put in its place
)


def overrides(key: object) -> Mapping[str, Any]:
    """What is in place for an agent here."""
    return _overridden.get().get(key, EMPTY)


@contextmanager
def overriding(key: object, changes: Mapping[str, Any]) -> Generator[None]:
    """Put changes in place, besides those that are already."""
    found = _overridden.get()
    token = _overridden.set({**found, key: {**found.get(key, EMPTY), **changes}})
    try:
        yield
    finally:
        _overridden.reset(token)
