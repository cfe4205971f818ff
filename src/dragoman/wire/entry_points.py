"""Dialects and providers that installed packages register through entry points.

```toml
[project.entry-points."dragoman.dialects"]
acme = "acme_dragoman:DIALECT"
```

The name of the entry point is the name of the dialect or provider. A package is imported when its
value is used. An unusable value raises only when it is requested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from os import scandir
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_METADATA = (".dist-info", ".egg-info")


class EntryPoints(Generic[T]):
    """The values registered under one entry point group."""

    def __init__(self, group: str, noun: str, problem: Callable[[str, object], str | None]) -> None:
        """`problem` returns what is wrong with the value registered under a name, or None."""
        self._group = group
        self._noun = noun
        self._problem = problem
        self._seen: tuple[list[str], Installed] | None = None
        """The `sys.path` of the last scan, and what it found."""

    def names(self) -> tuple[str, ...]:
        """All registered names, without importing anything."""
        return tuple(self.installed().entries)

    def installed(self) -> Installed:
        """The installed entry points; the same object until `sys.path` changes or `refresh`."""
        seen = self._seen
        if seen is None or seen[0] != sys.path:
            path = [folder for folder in sys.path if _is_text(folder)]  # as the import system does
            seen = self._seen = [*sys.path], _installed(self._group, path)
        return seen[1]

    def refresh(self) -> None:
        """Discard the last scan: packages may have been installed since."""
        self._seen = None

    def load(self, name: str) -> T | None:
        """Load the value of that name; None if there is none. Raises `ConfigError` if unusable."""
        entry = self.installed().entries.get(name)
        if entry is None:
            return None
        if not entry.is_loaded:
            self._load(entry)
        if entry.problem is not None:
            noun = f"the {self._noun} {name} from an installed package"
            msg = f"{noun} can't be used: {entry.problem}"
            raise ConfigError(msg)
        value: T = entry.value
        return value

    def load_all(
        self, without: Collection[str] = ()
    ) -> tuple[dict[str, T], dict[str, ConfigError]]:
        """Load all but the given names: the usable values, and the errors of the others."""
        usable: dict[str, T] = {}
        problems: dict[str, ConfigError] = {}
        for name in self.names():
            if name in without:
                continue
            try:
                found = self.load(name)
            except ConfigError as error:
                problems[name] = error
            else:
                if found is not None:
                    usable[name] = found
        return usable, problems

    def report(self, name: str, problem: str) -> None:
        """Record a problem with a value that remains in use."""
        entry = self.installed().entries.get(name)
        if entry is not None:
            entry.reported = problem

    def reported(self) -> dict[str, str]:
        """The problems recorded with `report`, by name."""
        entries = self.installed().entries.items()
        return {name: entry.reported for name, entry in entries if entry.reported is not None}

    def _load(self, entry: _Entry) -> None:
        entry.is_loaded = True
        try:
            entry.value = entry.point.load()
            entry.problem = self._problem(entry.point.name, entry.value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it does; it may quote anything
            entry.problem = f"it can't be imported ({type(error).__name__})"


class _Entry:
    """An entry point and, once loaded, its value or what is wrong with it."""

    def __init__(self, point: EntryPoint) -> None:
        self.point = point
        self.is_loaded = False
        self.value: Any = None
        self.problem: str | None = None
        self.reported: str | None = None


class Installed:
    """The entry points of a group by name; if several packages use a name, the first wins."""

    def __init__(self, points: Iterable[EntryPoint]) -> None:
        self.entries = {point.name: _Entry(point) for point in reversed(tuple(points))}


def _is_text(folder: object) -> bool:
    return isinstance(folder, str)


def _installed(group: str, path: list[str]) -> Installed:
    if not _is_mentioned(group, path):
        return Installed(())
    from importlib.metadata import entry_points

    return Installed(entry_points(group=group))


def _is_mentioned(group: str, path: list[str]) -> bool:
    """Whether any installed package mentions a group.

    Hardly any does, and importing `importlib.metadata` takes ten times as long as this scan.
    """
    if any(Path(folder).is_file() for folder in path):
        return True  # a zip file, which only importlib can read
    wanted = group.encode()
    return any(wanted in listed for folder in path for listed in _listings(folder))


def _listings(folder: str) -> Iterator[bytes]:
    """The `entry_points.txt` of every package in a folder."""
    try:
        packages = [
            entry.path for entry in scandir(folder or ".") if entry.name.endswith(_METADATA)
        ]
    except OSError:
        return
    for package in packages:
        with suppress(OSError), open(f"{package}/entry_points.txt", "rb") as file:  # noqa: PTH123 - fast
            yield file.read()
