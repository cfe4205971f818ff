"""The environment variables that a provider needs, and which of them are set."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from dragoman.providers.ollama import PROVIDER as OLLAMA
from dragoman.providers.provider import Provider

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_OLLAMA_HOST = "OLLAMA_HOST"  # Ollama's own variable
_OLLAMA_PORT = 11434


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
    for name, variables in place.parameters.items():
        if name not in place.defaults and not any(map(environ.get, variables)):
            missing.append(" or ".join(variables))
    return missing


def is_own_server(place: Provider) -> bool:
    """Whether a provider is self-hosted: its default URL is on this machine."""
    return urlsplit(place.base_url or "").hostname in _THIS_MACHINE


def server_address(name: str, environ: Mapping[str, str]) -> str | None:
    """The URL of a server according to its own environment variable."""
    host = environ.get(_OLLAMA_HOST, "").strip()
    return _ollama_address(host) if name == OLLAMA.name and host else None


def _ollama_address(host: str) -> str | None:
    """Parse `OLLAMA_HOST` as Ollama does: a host, with optional scheme and port.

    >>> _ollama_address("0.0.0.0:8000")
    'http://127.0.0.1:8000'
    """
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        port = parts.port or (443 if parts.scheme == "https" else _OLLAMA_PORT)
    except ValueError:
        return None
    name = parts.hostname or "127.0.0.1"
    name = "127.0.0.1" if name in {"0.0.0.0", "::"} else name  # noqa: S104 - what to listen on
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}"
