"""Public names that are resolved when first used: nobody pays for what they don't use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any


def lazily(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, by the modules that its names live in."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def attribute(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(f"{package}.{home}"), name)
        vars(modules[package])[name] = value  # found at once from here on
        return value

    def names() -> list[str]:
        return sorted({*vars(modules[package]), *home_of})

    return attribute, names
