"""Reads the table `[server]` and the environment variables that override it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.gateway.config import checks
from dragoman.gateway.config.document import WRONG, Check, Document
from dragoman.gateway.config.settings import ServerSettings

_KEY_STORES = ("sqlite", "postgresql", "postgres", "mariadb", "mysql", "redis", "rediss", "memory")
_STORES = (*_KEY_STORES, "file")
_CACHES = ("redis", "rediss")
_MAX_WORKERS = 1024
_MAX_CONCURRENT = 10_000_000
_MAX_VALUES = 100_000_000
_MAX_RATIO = 100_000
_MAX_ROWS = 10_000_000
_MAX_KEPT_BYTES = 1024 * 1024
_DIGITS = 18

FIELDS: Mapping[str, Check] = {
    "host": checks.host,
    "port": checks.whole(0, 65535),
    "workers": checks.whole(1, _MAX_WORKERS),
    "max_body": checks.size,
    "max_values": checks.whole(100, _MAX_VALUES),
    "max_ratio": checks.whole(2, _MAX_RATIO),
    "body_memory": checks.size,
    "max_concurrent": checks.whole(1, _MAX_CONCURRENT),
    "header_timeout": checks.seconds,
    "body_timeout": checks.seconds,
    "send_timeout": checks.seconds,
    "request_timeout": checks.limit,
    "drain_timeout": checks.seconds,
    "keys": checks.store_url(_KEY_STORES),
    "envelope_keys": checks.text,
    "history": checks.store_url(_STORES),
    "response_memory": checks.size_or_off,
    "response_ttl": checks.seconds,
    "allowed_hosts": checks.list_of(checks.host, "hosts"),
    "trusted_proxies": checks.list_of(checks.network, "addresses and networks"),
    "log": checks.one_of(("json", "text", "off")),
    "log_provider_errors": checks.flag,
    "middleware": checks.list_of(checks.text, "files and entry points"),
    "middleware_timeout": checks.seconds,
    "cache": checks.store_url(_CACHES),
    "cache_size": checks.size,
    "traffic": checks.text,
    "traffic_rows": checks.whole(100, _MAX_ROWS),
    "titles": checks.text,
    "prompts": checks.text,
    "keep_bodies": checks.whole(0, _MAX_KEPT_BYTES),
    "path_prefix": checks.path_prefix,
}
_FLAGS = {"true": True, "false": False}
_LISTS = frozenset({"allowed_hosts", "middleware", "trusted_proxies"})

VARIABLES: Mapping[str, str] = {f"DRAGOMAN_{name.upper()}": name for name in FIELDS}
"""The fields that environment variables set; lists are separated by commas."""


def read_server(document: Document, environ: Mapping[str, str]) -> ServerSettings:
    """The server's settings: the environment overrides the file, the file the defaults."""
    values = document.fields(("server",), document.data.get("server", {}), FIELDS)
    for name in ("keys", "history", "cache"):
        if checks.may_hold_password(values.get(name, "")):
            text = f"this may contain a password: use DRAGOMAN_{name.upper()} instead"
            document.warn(("server", name), text)
    return ServerSettings(**{**values, **_from_environment(document, environ)})


def _from_environment(document: Document, environ: Mapping[str, str]) -> dict[str, Any]:
    variables = Document(None)
    found: dict[str, Any] = {}
    for variable, name in VARIABLES.items():
        text = environ.get(variable, "").strip()
        value = FIELDS[name](variables, (variable,), _typed(name, text)) if text else WRONG
        if value is not WRONG:
            found[name] = value
    document.adopt(variables)
    return found


def _typed(name: str, text: str) -> Any:
    """Convert a variable's text to its TOML type: a boolean, a list, a number or a string."""
    if text in _FLAGS:
        return _FLAGS[text]
    if name in _LISTS:
        return [each.strip() for each in text.split(",") if each.strip()]
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    return int(text) if is_number else text
