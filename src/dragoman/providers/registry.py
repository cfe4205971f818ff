"""The registry of providers.

Names are looked up in the files of this folder that define a `PROVIDER`, then among registered
providers, then in installed packages, by entry points of the group `dragoman.providers`:

```toml
[project.entry-points."dragoman.providers"]
acme = "acme_dragoman:PROVIDER"
```

The entry point has the provider's name. A package is imported when its provider is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from dragoman.errors import ConfigError
from dragoman.model.spelling import did_you_mean, normalised
from dragoman.model.value import expect
from dragoman.providers.facts.overrides import family_overrides, overrides
from dragoman.providers.facts.overrides import stamp as overrides_stamp
from dragoman.providers.family import compiled
from dragoman.providers.provider import Provider
from dragoman.wire.entry_points import EntryPoints

_FOLDER = "dragoman.providers"
_registered: dict[str, Provider] = {}
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}", re.ASCII)
_LOCAL = ("echo:", "local:", "local:smollm2", "scripted:")
"""Models without a provider, which are suggested for misspelled names; see `open_model`."""


def provider(name: str, *, model: str | None = None) -> Provider:
    """The provider of a name or alias; `model` is the model string that begins with it, if any.

    >>> provider("llama.cpp").name, provider("grok").name
    ('llama.cpp', 'xai')
    """
    heard = normalised(name)
    found = _named(heard) or _aliased(heard, _all()) or _registered.get(heard) or _added(heard)
    if found is None:
        _ADDED.refresh()
        found = _added(heard) or _aliased(heard, _others())
    if found is None:
        raise ConfigError(_unknown(name, suggested_model(model or name)))
    return _with_overrides(found)


def _unknown(name: str, whole: str | None) -> str:
    if whole is not None:
        return f"the model is named without its provider (did you mean {whole}?)"
    names = provider_names()
    meant = did_you_mean(name, (*names, *_LOCAL))
    return f"unknown provider{meant}; available are {', '.join(names)}"


def provider_names() -> tuple[str, ...]:
    """The names of all providers."""
    own = {normalised(one.name): one.name for one in (*_all(), *_registered.values())}
    others = {normalised(name): name for name in _ADDED.names()}
    return tuple(sorted({**others, **own}.values()))


def providers() -> list[Provider]:
    """All available providers, sorted by name."""
    heard = {normalised(one.name): one for one in (*_others(), *_all())}
    return sorted(map(_with_overrides, heard.values()), key=lambda one: one.name)


def suggested_model(name: str) -> str | None:
    """A model's name with its provider, if it is one that a provider is known for.

    >>> suggested_model("gpt-5"), suggested_model("llama3:8b"), suggested_model("hello")
    ('openai:gpt-5', 'ollama:llama3:8b', None)
    """
    if not _MODEL.fullmatch(name):
        return None  # it is quoted in messages, and may be anything
    known = _all()
    listing = [each for each in known if name in each.names]
    named_so = [
        each
        for each in known
        if each.model_pattern is not None and compiled(each.model_pattern).match(name)
    ]
    return next((f"{each.name}:{name}" for each in (*listing, *named_so)), None)


def normalised_names(found: Provider) -> set[str]:
    """The normalised name and aliases of a provider."""
    return {normalised(found.name), *map(normalised, found.aliases)}


def _with_overrides(found: Provider) -> Provider:
    """A provider with the user's overrides for its models."""
    rows = family_overrides(normalised_names(found)) if overrides() else ()
    if not rows:
        return found
    names = (*found.names, *(name for name, _ in rows)) if found.names else ()
    return found.replace(families=(*found.families, *(row for _, row in rows)), names=names)


def register(found: Provider) -> Provider:
    """Register a custom provider in this process, and return it.

    ```python
    acme = Target(dialect="openai-chat", turns=TurnFlags(takes_developer=False))
    register(Provider("acme", (acme,), "https://api.acme.example/v1", keys=("ACME_API_KEY",)))
    client = Client("acme:large")
    ```

    Registering another provider of the same name replaces it. Built-in providers can't be
    replaced.
    """
    expect(found, Provider, "the provider")
    heard = normalised(found.name)
    if _named(heard) is not None or _aliased(heard, _all()) is not None:
        msg = "a built-in provider already has this name; choose another"
        raise ConfigError(msg)
    _registered[heard] = found
    return found


def stamp() -> tuple[object, ...]:
    """A value that changes when a name may refer to another provider or other facts.

    It holds the objects themselves, since ids of deleted objects may be reused.
    """
    return *_registered.values(), _ADDED.installed(), overrides_stamp()


def _named(heard: str) -> Provider | None:
    module = _modules(tuple(import_module(_FOLDER).__path__)).get(heard)
    return None if module is None else _loaded(module)


def _aliased(heard: str, providers: Iterable[Provider]) -> Provider | None:
    """The provider with this alias."""
    return next((one for one in providers if heard in map(normalised, one.aliases)), None)


def _others() -> list[Provider]:
    """Registered and installed providers."""
    return [*_registered.values(), *_ADDED.load_all()[0].values()]


def _added(heard: str) -> Provider | None:
    """The provider of an installed package; raises if it can't be used."""
    name = next((name for name in _ADDED.names() if normalised(name) == heard), None)
    return None if name is None else _ADDED.load(name)


def _problem(_name: str, found: object) -> str | None:
    """Why the value of an entry point can't be used, or None."""
    return (
        None if isinstance(found, Provider) else f"it is a {type(found).__name__}, not a Provider"
    )


_ADDED: EntryPoints[Provider] = EntryPoints("dragoman.providers", "provider", _problem)


def _all() -> list[Provider]:
    modules = _modules(tuple(import_module(_FOLDER).__path__))
    loaded = map(_loaded, modules.values())
    return [found for found in loaded if found is not None]


def _loaded(module: str) -> Provider | None:
    found = getattr(import_module(f"{_FOLDER}.{module}"), "PROVIDER", None)
    return found if isinstance(found, Provider) else None


@lru_cache(maxsize=8)
def _modules(folders: tuple[str, ...]) -> dict[str, str]:
    """The modules of the folder, by their normalised names."""
    return {
        normalised(found.name): found.name for found in iter_modules(folders) if not found.ispkg
    }
