"""The state of providers for the commands: what is configured, and what is missing."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from dragoman.cli.exit_codes import USAGE, Ending

if TYPE_CHECKING:  # loaded when a command runs: `dragoman --help` doesn't need it
    from dragoman.providers.provider import Provider

OWN = ("local", "echo", "scripted")
"""Models that run on this machine, which are not providers."""

_OWN = re.compile(rf"({'|'.join(OWN)})(?:[:/](.*))?", re.DOTALL)
_LOCAL_EXTRA = "pip install 'dragoman[local]'"


class OwnModel(NamedTuple):
    """A model that runs on this machine."""

    kind: str
    rest: str


def own_model(name: str) -> OwnModel | None:
    """The model on this machine that a model string names; None if it names another.

    >>> own_model("local:smollm2")
    OwnModel(kind='local', rest='smollm2')
    """
    found = _OWN.fullmatch(name)
    return None if found is None else OwnModel(found[1], found[2] or "")


def key_variable(place: Provider) -> str | None:
    """The environment variable that holds the provider's key; None if none is set."""
    from dragoman.providers import readiness

    return readiness.key_variable(place, os.environ)


def needs(place: Provider) -> list[str]:
    """What is missing to use the provider: mostly environment variables."""
    from dragoman.providers.readiness import missing_variables

    if place.base_url is None:
        return ["--base-url"]  # and the server there may need no key
    return missing_variables(place, os.environ)


def named_place(name: str, *, has_model: bool = True, model: str | None = None) -> Provider:
    """The provider with this name; exits with the known ones and how to name models.

    `model` is the part after the colon; if there is none, the name was probably meant as a model.
    """
    from dragoman.errors import ConfigError
    from dragoman.providers.registry import provider, suggested_model

    whole = name if model is None else f"{name}:{model}"
    try:
        return provider(name, model=whole)
    except ConfigError as error:
        problem = str(error)
    if suggested_model(whole) is not None:
        raise Ending(USAGE, problem)
    problem = f"{problem}; local: and echo: run on this machine"
    form = (
        ""
        if has_model
        else ". Name a model as provider:model, such as openai:gpt-5, or by an alias"
    )
    raise Ending(USAGE, f"{problem}{form}")


def address_of(place: Provider, base_url: str | None) -> str | None:
    """The provider's address, if known without the environment."""
    found = shown_address(base_url or place.base_url)
    return None if found is None or "{" in found else found


def expect_ready(place: Provider, base_url: str | None) -> None:
    """Exit with what to set, if something is missing."""
    if base_url is not None:
        return  # the server there may need no key
    missing = needs(place)
    if not missing:
        return
    if missing == ["--base-url"]:
        raise Ending(USAGE, f"{place.name} has no default address: pass --base-url")
    what = "an API key" if missing[0] == " or ".join(place.keys) else "more settings"
    raise Ending(USAGE, f"{place.name} needs {what}: set {', and '.join(missing)}")


def described(place: Provider) -> dict[str, Any]:
    """A provider as the commands list it, without its key."""
    from dragoman.providers.readiness import address_around

    missing = needs(place)
    return {
        "name": place.name,
        "dialects": list(place.dialects),
        "base_url": shown_address(address_around(place, os.environ) or place.base_url),
        "key_variables": list(place.keys),
        "key_set": key_variable(place),
        "needs": missing,
        "configured": not missing,
    }


def described_own(kind: str) -> dict[str, Any]:
    """A model on this machine, listed like a provider."""
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
    """Whether the engine of local models is installed."""
    return find_spec("xllamacpp") is not None


def expect_llama() -> None:
    """Exit if local models can't be run."""
    if not has_llama():
        raise Ending(USAGE, f"local models need xllamacpp: {_LOCAL_EXTRA}")


def shown_address(url: str | None) -> str | None:
    """A URL without user, password and query, any of which may contain a key.

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
