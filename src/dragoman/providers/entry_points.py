"""Providers that installed packages bring along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.errors import ConfigError
from dragoman.providers.hearing import as_heard
from dragoman.providers.provider import Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "dragoman.providers"


def named(heard: str) -> Provider | None:
    """The provider of the entry point that sounds so; raises where that can't be used."""
    for point in _points():
        if as_heard(point.name) == heard:
            return _loaded(point.name)
    return None


def names() -> tuple[str, ...]:
    """The names of all, none of which is imported for it."""
    return tuple(point.name for point in _points())


def all_found() -> list[Provider]:
    """All that can be used: one that is broken is nobody else's trouble."""
    found: list[Provider] = []
    for name in names():
        try:
            found.append(_loaded(name))
        except ConfigError:
            continue
    return found


def _points() -> EntryPoints:
    # Not kept: it is asked only for names that are not ours, and packages come while we run.
    from importlib.metadata import entry_points  # it takes its time

    return entry_points(group=GROUP)


def _loaded(name: str) -> Provider:
    try:
        found = next(point for point in _points() if point.name == name).load()
    except Exception as error:  # noqa: BLE001 - it runs whatever the package does when imported
        problem = f"it can't be imported ({type(error).__name__})"
    else:
        if isinstance(found, Provider):
            return found
        problem = f"it is a {type(found).__name__}, not a Provider"
    msg = f"the provider {name} that a package brings along can't be used: {problem}"
    raise ConfigError(msg)
