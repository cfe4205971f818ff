"""Overrides of parts of an agent within a `with` block, for tests.

They apply in the current task or thread and what it starts, not in others at the same time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dragoman.model.frozen import EMPTY

_overridden: ContextVar[Mapping[object, Mapping[str, Any]]] = ContextVar(
    "dragoman_overridden",
    default={},  # noqa: B039 - never mutated, only replaced
)


def overrides(key: object) -> Mapping[str, Any]:
    """The current overrides for an agent."""
    return _overridden.get().get(key, EMPTY)


@contextmanager
def overriding(key: object, changes: Mapping[str, Any]) -> Generator[None]:
    """Add overrides to the current ones."""
    found = _overridden.get()
    token = _overridden.set({**found, key: {**found.get(key, EMPTY), **changes}})
    try:
        yield
    finally:
        _overridden.reset(token)
