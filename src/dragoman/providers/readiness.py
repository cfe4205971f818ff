"""The environment variables of a provider: which it needs, which are set, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from dragoman.providers.provider import Provider

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def key_variable(place: Provider, environ: Mapping[str, str]) -> str | None:
    """The environment variable that holds the provider's API key, if any."""
    # Like the client: the first that is not empty; whitespace is not a key.
    name = next((name for name in place.keys if environ.get(name)), None)
    return name if name is not None and environ[name].strip() else None


def missing_variables(place: Provider, environ: Mapping[str, str]) -> list[str]:
    """The missing environment variables of a provider; alternatives are joined by `or`."""
    missing: list[str] = []
    if place.auth is not None and place.keys and key_variable(place, environ) is None:
        missing.append(" or ".join(place.keys))
    address = address_around(place, environ)
    for name, variables in place.parameters.items():
        is_replaced = address is not None and f"{{{name}}}" not in address
        if name not in place.defaults and not is_replaced and not any(map(environ.get, variables)):
            missing.append(" or ".join(variables))
    return missing


def is_own_server(place: Provider) -> bool:
    """Whether a provider is self-hosted: its default URL is on this machine."""
    return urlsplit(place.base_url or "").hostname in _THIS_MACHINE


def address_variable(place: Provider, environ: Mapping[str, str]) -> str | None:
    """The environment variable that sets the provider's address, if any."""
    return next((name for name in place.address_variables if environ.get(name, "").strip()), None)


def address_around(place: Provider, environ: Mapping[str, str]) -> str | None:
    """The provider's address according to the environment variables of its own SDKs and tools."""
    name = address_variable(place, environ)
    if name is None:
        return None
    given, path = environ[name].strip(), place.address_variables[name]
    if is_own_server(place):
        return _server_address(given, place)
    given = given.rstrip("/")
    return given if given.endswith(path) else f"{given}{path}"


def _server_address(host: str, place: Provider) -> str | None:
    """The address of a server that is given as Ollama's is: a host, with optional scheme and port.

    `0.0.0.0:8000` is where it listens, so `http://127.0.0.1:8000` reaches it.
    """
    usual = urlsplit(place.base_url or "").port
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        port = parts.port or (443 if parts.scheme == "https" else usual)
    except ValueError:
        return None
    name = parts.hostname or "127.0.0.1"
    name = "127.0.0.1" if name in {"0.0.0.0", "::"} else name  # noqa: S104 - what to listen on
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}"


def headers_around(place: Provider, environ: Mapping[str, str]) -> dict[str, str]:
    """The provider's headers that environment variables set."""
    found: dict[str, str] = {}
    for variable, header in place.header_variables.items():
        if value := environ.get(variable, "").strip():
            found.setdefault(header, value)
    return found


def unused_variables(place: Provider, environ: Mapping[str, str]) -> list[str]:
    """The variables that are set for the provider's SDK, and have no effect here."""
    return [name for name in place.unused_variables if environ.get(name, "").strip()]
