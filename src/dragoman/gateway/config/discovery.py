"""Discovers what needs no table: providers with a key, local servers, in-process models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from dragoman.gateway.config.settings import Place, ServerSettings
from dragoman.gateway.guard import is_loopback
from dragoman.providers.provider import Provider
from dragoman.providers.readiness import (
    address_around,
    address_variable,
    headers_around,
    is_own_server,
    key_variable,
    missing_variables,
)
from dragoman.providers.registry import providers
from dragoman.transport.local.catalogue import PACKAGED
from dragoman.transport.local.fetching import is_kept

ECHO = "echo:"


def found_places(environ: Mapping[str, str]) -> dict[str, Place]:
    """All places that need no table in the file, by name.

    In the order in which plain model names are looked up: model vendors, servers on this machine,
    hosts of other vendors' models, and models in this process.
    """
    known = [each for each in providers() if _is_ready(each, environ)]
    known.sort(key=lambda each: (not each.names, not is_own_server(each)))
    places = [place_of(each, environ) for each in known]
    return {place.name: place for place in (*places, *_in_this_process())}


def place_of(provider: Provider, environ: Mapping[str, str]) -> Place:
    """A provider with its default settings, and key and address from the environment."""
    return Place(
        name=provider.name,
        provider=provider,
        key_env=key_variable(provider, environ),
        base_url=address_around(provider, environ),
        base_url_env=address_variable(provider, environ),
        headers=headers_around(provider, environ),
        parameters=parameters_around(provider, environ),
    )


def circular_variables(places: Iterable[Place], server: ServerSettings) -> set[str]:
    """The variables that hold the gateway's own address, as clients on this machine are told to.

    For the gateway they would be an address where it calls itself.
    """
    return {
        place.base_url_env
        for place in places
        if place.base_url_env is not None and _is_at(place.base_url or "", server)
    }


def _is_at(url: str, server: ServerSettings) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return False
    host = parts.hostname or ""
    return port == server.port and (host == server.host or is_loopback(host))


def parameters_around(provider: Provider, environ: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a provider's URLs that the environment sets."""
    found: dict[str, str] = {}
    for name, variables in provider.parameters.items():
        value = next((environ[each] for each in variables if environ.get(each)), None)
        if value is not None:
            found[name] = value
    return found


def _is_ready(provider: Provider, environ: Mapping[str, str]) -> bool:
    if provider.base_url is None:
        return False
    has_key = key_variable(provider, environ) is not None
    return is_own_server(provider) or (has_key and not missing_variables(provider, environ))


def _in_this_process() -> Iterator[Place]:
    """Local models that are already downloaded, and `echo:`."""
    for model in PACKAGED.values() if find_spec("xllamacpp") is not None else ():
        if is_kept(model):
            yield Place(name=f"local:{model.name}", model_url=f"local:{model.name}")
    yield Place(name=ECHO, model_url=ECHO)
