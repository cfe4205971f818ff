"""Reads `[providers.NAME]` tables: custom servers, and known providers with other settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dragoman.errors import ConfigError
from dragoman.gateway.config import checks
from dragoman.gateway.config.discovery import place_of
from dragoman.gateway.config.document import Check, Document
from dragoman.gateway.config.positions import Path
from dragoman.gateway.config.settings import Place
from dragoman.model.spelling import did_you_mean, normalised
from dragoman.providers.provider import Provider
from dragoman.providers.readiness import key_variable
from dragoman.providers.registry import provider, provider_names
from dragoman.transport.protocol import Timeouts

OWN_KINDS = ("local", "echo", "scripted")
"""Models in this process; reserved, so that no `[providers.NAME]` table may use these names."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_MAX_RETRIES = 10
_REFUSED: dict[str, str] = dict.fromkeys(
    ("apikey", "key", "keys", "token", "secret", "password", "accesstoken", "bearer"),
    checks.NO_KEYS,
)
_TIMEOUTS: Mapping[str, Check] = {
    "connect": checks.limit,
    "first_byte": checks.limit,
    "between_chunks": checks.limit,
    "between_events": checks.limit,
    "attempt": checks.limit,
    "total": checks.limit,
}


def read_timeouts(document: Document, path: Path, value: Any) -> Any:
    """Read a table of timeouts."""
    return Timeouts(**document.fields(path, value, _TIMEOUTS))


@lru_cache(maxsize=1024)
def known_provider(name: str) -> Provider | None:
    """The provider of a name or alias, or None.

    Cached until the configuration is reloaded: for an unknown name, the registry searches for newly
    installed packages, which takes milliseconds.
    """
    try:
        return provider(name) if normalised(name) else None
    except ConfigError:
        return None


def _kind(document: Document, path: Path, value: Any) -> Any:
    found = known_provider(value) if isinstance(value, str) else None
    if found is not None:
        return found
    names = provider_names()
    near = did_you_mean(value, names)
    return document.problem(path, f"this must be one of the providers {', '.join(names)}{near}")


_FIELDS: Mapping[str, Check] = {
    "kind": _kind,
    "base_url": checks.url,
    "api_key_env": checks.variable,
    "dialect": checks.text,
    "headers": checks.headers,
    "parameters": checks.mapping(checks.text, "parameters"),
    "timeouts": read_timeouts,
    "retries": checks.whole(0, _MAX_RETRIES),
}


def read_places(document: Document, environ: Mapping[str, str]) -> dict[str, Place]:
    """The places that the file defines, by name."""
    tables = document.data.get("providers", {})
    if not isinstance(tables, dict):
        document.problem(("providers",), "this must be a table of tables, as in [providers.lab]")
        return {}
    places: dict[str, Place] = {}
    seen: set[str] = set()
    for name, table in tables.items():
        path = ("providers", name)
        if _is_good_name(document, path, name, seen):
            place = _read_place(document, path, table, environ)
            if place is not None:
                places[name] = place
    return places


def _is_good_name(document: Document, path: Path, name: str, seen: set[str]) -> bool:
    problem = None
    if not _NAME.fullmatch(name):
        problem = "a name here has up to 64 letters, digits, dots, hyphens and underscores"
    elif name.lower() in OWN_KINDS:
        problem = f"{name} is reserved for models in this process; choose another name"
    elif normalised(name) in seen:
        problem = "another table has this name already"
    seen.add(normalised(name))
    if problem is not None:
        document.problem(path, problem, at_key=True)
    return problem is None


def _read_place(
    document: Document, path: Path, table: Any, environ: Mapping[str, str]
) -> Place | None:
    values = document.fields(path, table, _FIELDS, refused=_REFUSED)
    name = str(path[-1])
    kind = values.pop("kind", None)
    if kind is None and isinstance(table, dict) and "kind" in table:
        return None  # the problem is already noted
    kind = kind or known_provider(name)
    if kind is None:
        near = did_you_mean(name, provider_names())
        text = f"kind is missing: set it to the name of a provider{near}"
        document.problem(path, text, at_key=True)
        return None
    values["key_env"] = values.pop("api_key_env", None)
    if kind.base_url is None and not (isinstance(table, dict) and "base_url" in table):
        text = f"base_url is missing: {kind.name} has no default address"
        document.problem(path, text, at_key=True)
    _check_against(document, path, values, kind)
    if "base_url" in values:
        warn_of_repeated_path(document, (*path, "base_url"), kind, values)
    _warn_of_missing_keys(document, path, values, kind, environ)
    if "base_url" in values and values["key_env"] is None and kind != known_provider(name):
        kind = kind.replace(keys=())  # never send the provider's key to another server
    around = place_of(kind, environ)
    values["key_env"] = values["key_env"] or around.key_env
    if "base_url" not in values:  # what the file says takes precedence over the environment
        values["base_url"], values["base_url_env"] = around.base_url, around.base_url_env
        values["headers"] = {**around.headers, **values.get("headers", {})}
    values["parameters"] = {**around.parameters, **values.get("parameters", {})}
    return Place(name=name, provider=kind, **values)


def _check_against(
    document: Document, path: Path, values: Mapping[str, Any], kind: Provider
) -> None:
    """Note settings that the provider doesn't support."""
    if values.get("dialect", kind.dialects[0]) not in kind.dialects:
        spoken = ", ".join(kind.dialects)
        near = did_you_mean(values["dialect"], kind.dialects)
        text = f"{kind.name} does not support this dialect; it supports {spoken}{near}"
        document.problem((*path, "dialect"), text)
    for name in values.get("parameters", ()):
        if name not in kind.parameters:
            there = ", ".join(kind.parameters) or "none"
            text = f"{kind.name} has no such parameter; its parameters: {there}"
            document.problem((*path, "parameters", name), text, at_key=True)


def warn_of_repeated_path(
    document: Document, path: Path, kind: Provider, values: Mapping[str, Any]
) -> None:
    """Warn of a `base_url` with a part of the path that its requests already have."""
    end = kind.repeated_path(values["base_url"], values.get("dialect"))
    if end is not None:
        document.warn(path, f"leave out {end} at the end: requests have it in their path")


def _warn_of_missing_keys(
    document: Document, path: Path, values: Mapping[str, Any], kind: Provider,
    environ: Mapping[str, str],
) -> None:  # fmt: skip
    variable = values["key_env"]
    if variable is not None:
        if not environ.get(variable, "").strip():  # not quoted: it may be a key by mistake
            document.warn((*path, "api_key_env"), "this environment variable is not set")
    elif "base_url" not in values and kind.auth is not None and key_variable(kind, environ) is None:
        document.warn(path, f"{' or '.join(kind.keys)} is not set")
