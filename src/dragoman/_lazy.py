"""Lazy resolution of public names, so that importing the package stays cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any
from warnings import warn

Homes = Mapping[str, tuple[str, ...]]


def lazily(
    package: str,
    homes: Homes,
    *,
    inner: Homes | None = None,
    moved: Homes | None = None,
    submodules: tuple[str, ...] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the `__getattr__` and `__dir__` of a package, given the modules of its names.

    `inner` names resolve but are not listed. `moved` names resolve with a `DeprecationWarning`.
    """
    listed, moved_to = _by_name(homes), _by_name(moved or {})
    found = {**_by_name(inner or {}), **listed}

    def attribute(name: str) -> Any:
        home = found.get(name)
        if home is not None:
            value = getattr(import_module(f"{package}.{home}"), name)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        elif name in moved_to:
            place = f"{package}.{moved_to[name]}"
            msg = f"{package}.{name} has moved: use `from {place} import {name}`"
            warn(msg, DeprecationWarning, stacklevel=2)
            return getattr(import_module(place), name)
        else:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        vars(modules[package])[name] = value  # later lookups bypass __getattr__
        return value

    def names() -> list[str]:
        return sorted({*vars(modules[package]), *listed, *submodules})

    return attribute, names


def _by_name(homes: Homes) -> dict[str, str]:
    return {name: home for home, names in homes.items() for name in names}
