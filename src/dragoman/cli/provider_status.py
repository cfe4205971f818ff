"""Where models are, as commands see it: what is configured, what is missing, what to say of it."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from dragoman.cli.exit_codes import USAGE, Ending

if TYPE_CHECKING:  # loaded when a command runs: `dragoman --help` needs none of it
    from dragoman.providers.provider import Provider

OWN = ("local", "echo", "scripted")
"""What runs here, and is no provider."""

_OWN = re.compile(rf"({'|'.join(OWN)})(?:[:/](.*))?", re.DOTALL)
_LOCAL_EXTRA = "pip install 'dragoman[local]'"


class OwnModel(NamedTuple):
    """A model that runs here."""

    kind: str
    rest: str


def own_model(name: str) -> OwnModel | None:
    """What a model string names, if that runs here.

    >>> own_model("local:smollm2")
    OwnModel(kind='local', rest='smollm2')
    """
    found = _OWN.fullmatch(name)
    return None if found is None else OwnModel(found[1], found[2] or "")


def key_variable(place: Provider) -> str | None:
    """The environment variable that holds the provider's key, if one does."""
    from dragoman.providers import readiness

    return readiness.key_variable(place, os.environ)


def needs(place: Provider) -> list[str]:
    """What is missing before the provider can be asked: environment variables, mostly."""
    from dragoman.providers.readiness import missing_variables

    if place.base_url is None:
        return ["--base-url"]  # and whoever is there may want no key
    return missing_variables(place, os.environ)


def named_place(name: str, *, has_model: bool = True) -> Provider:
    """The provider of that name; ends the command with those there are, and how models are named.

    Somebody who leaves out the provider has named a model.
    """
    from dragoman.errors import ConfigError
    from dragoman.providers.registry import provider

    try:
        return provider(name)
    except ConfigError as error:
        problem = f"{error}; and here local: and echo:"
    form = (
        ""
        if has_model
        else ". A model is named provider:model, such as openai:gpt-5, or by an alias"
    )
    raise Ending(USAGE, f"{problem}{form}")


def address_of(place: Provider, base_url: str | None) -> str | None:
    """Where a provider is asked, as far as that is known without the environment."""
    found = shown_address(base_url or place.base_url)
    return None if found is None or "{" in found else found


def expect_ready(place: Provider, base_url: str | None) -> None:
    """End the command with what to set, where something is missing."""
    if base_url is not None:
        return  # whoever is there may want no key
    missing = needs(place)
    if not missing:
        return
    if missing == ["--base-url"]:
        raise Ending(USAGE, f"{place.name} has no address of its own: give --base-url")
    what = "an API key" if missing[0] == " or ".join(place.keys) else "to know where it is"
    raise Ending(USAGE, f"{place.name} needs {what}: set {', and '.join(missing)}")


def described(place: Provider) -> dict[str, Any]:
    """A provider, as the commands list it; never its key."""
    missing = needs(place)
    return {
        "name": place.name,
        "dialects": list(place.dialects),
        "base_url": shown_address(place.base_url),
        "key_variables": list(place.keys),
        "key_set": key_variable(place),
        "needs": missing,
        "configured": not missing,
    }


def described_own(kind: str) -> dict[str, Any]:
    """What runs here, listed as a provider is."""
    from dragoman.providers.llamacpp import PROVIDER

    missing = [] if kind != "local" or has_llama() else [_LOCAL_EXTRA]
    return {
        "name": kind,
        "dialects": list(PROVIDER.dialects) if kind == "local" else [],
        "base_url": None,
        "key_variables": [],
        "key_set": None,
        "needs": missing,
        "configured": not missing,
    }


def has_llama() -> bool:
    """Whether what runs local models is installed."""
    return find_spec("xllamacpp") is not None


def expect_llama() -> None:
    """End the command where local models can't be run."""
    if not has_llama():
        raise Ending(USAGE, f"local models need xllamacpp: {_LOCAL_EXTRA}")


def shown_address(url: str | None) -> str | None:
    """An address without a user, a password and a query, any of which may hold a key.

    >>> shown_address("https://me:pw@api.example/v1?key=1")
    'https://api.example/v1'
    """
    if url is None:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
