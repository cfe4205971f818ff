"""The providers there are: the files of this folder that hold a `PROVIDER`."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from dragoman.errors import ConfigError
from dragoman.providers.provider import Provider

_FOLDER = "dragoman.providers"
_UNHEARD = re.compile(r"[^a-z0-9]+")


def provider(name: str) -> Provider:
    """The provider of that name, or of one that people use for it.

    >>> provider("llama.cpp").name, provider("grok").name
    ('llama.cpp', 'xai')
    """
    found = _named(_heard(name))
    if found is None:
        found = next((one for one in _all() if _heard(name) in map(_heard, one.aliases)), None)
    if found is None:
        msg = f"unknown provider; there are {', '.join(provider_names())}"
        raise ConfigError(msg)
    return found


def provider_names() -> tuple[str, ...]:
    """The names of all providers."""
    return tuple(sorted(one.name for one in _all()))


def _heard(name: str) -> str:
    """A name as it sounds: `LM Studio`, `lm-studio` and `lmstudio` are one."""
    return _UNHEARD.sub("", name.lower())


def _named(heard: str) -> Provider | None:
    module = _modules(tuple(import_module(_FOLDER).__path__)).get(heard)
    return None if module is None else _loaded(module)


def _all() -> list[Provider]:
    modules = _modules(tuple(import_module(_FOLDER).__path__))
    loaded = map(_loaded, modules.values())
    return [found for found in loaded if found is not None]


def _loaded(module: str) -> Provider | None:
    found = getattr(import_module(f"{_FOLDER}.{module}"), "PROVIDER", None)
    return found if isinstance(found, Provider) else None


@lru_cache(maxsize=8)
def _modules(folders: tuple[str, ...]) -> dict[str, str]:
    """The modules of the folder, by how their names sound."""
    return {_heard(found.name): found.name for found in iter_modules(folders) if not found.ispkg}
