"""Finds the available models: of local servers, and of providers with a key."""

from __future__ import annotations

import os
from typing import NamedTuple

from dragoman.cli.provider_status import described
from dragoman.errors import ConfigError, DragomanError


class Place(NamedTuple):
    """A provider that can be queried."""

    name: str
    about: str
    has_key: bool


class Found(NamedTuple):
    """A provider that responded, with its models."""

    place: Place
    base_url: str | None
    models: list[str]


def servers() -> list[str]:
    """The providers whose default address is on this machine."""
    from dragoman.providers.readiness import is_own_server
    from dragoman.providers.registry import providers

    return [each.name for each in providers() if is_own_server(each)]


def places() -> list[Place]:
    """Local servers, and the providers whose key is set."""
    from dragoman.providers.registry import provider, provider_names

    here = servers()
    found = [Place(name, "a server on this machine", has_key=False) for name in here]
    for name in provider_names():
        try:
            row = described(provider(name))
        except ConfigError:
            continue  # a plugin with a broken provider: `dragoman providers` reports it
        if row["key_set"] and row["configured"] and name not in here:
            found.append(Place(name, f"{row['key_set']} is set", has_key=True))
    return found


def address_here(place: str) -> str | None:
    """The address of a provider, if set in its environment variable."""
    from dragoman.providers.readiness import address_around
    from dragoman.providers.registry import provider

    try:
        return address_around(provider(place), os.environ)
    except ConfigError:  # reported when it is used
        return None


async def asked(place: str, base_url: str | None, seconds: float) -> list[str]:
    """The models that a provider lists, newest first if it reports dates."""
    from dragoman.cli.model_listing import listed
    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        found = await listed(place, transport, seconds, base_url)
    finally:
        await transport.close()
    latest = sorted(found, key=lambda model: -(model.created or 0))
    return [model.id for model in latest]


async def found_at(place: Place, seconds: float) -> Found | None:
    """A provider with its models; None if it doesn't respond."""
    base_url = address_here(place.name)
    try:
        models = await asked(place.name, base_url, seconds)
    except DragomanError:
        return None
    return Found(place, base_url, models)
