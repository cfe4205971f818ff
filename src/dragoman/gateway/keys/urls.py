"""Opens key stores by URL, as for histories, but with separate tables."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from dragoman.errors import ConfigError
from dragoman.gateway.keys.store import KeyStore
from dragoman.history.storage_urls import default_file

VARIABLE = "DRAGOMAN_KEYS"
_FORMS = (
    "the URL of a key store must be sqlite:///file, sqlite:////absolute/file, postgresql://…,"
    " redis://… or memory:"
)


def store_url(url: str | None) -> str:
    """The given URL, or $DRAGOMAN_KEYS, or a file in the user's data directory."""
    return url or os.environ.get(VARIABLE) or f"sqlite:///{default_file().with_name('keys.db')}"


def file_at(url: str) -> Path | None:
    """The file of a SQLite store; None: the store is on a server."""
    if not url.startswith("sqlite:"):
        return None
    return Path(unquote(urlsplit(url).path).removeprefix("/"))


def store_at(url: str) -> KeyStore:
    """The store at a URL, not opened yet."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    match parts.scheme:
        case "memory":
            return _sqlite(":memory:")
        case "sqlite":
            path = unquote(parts.path).removeprefix("/")
            if path and not (parts.netloc or parts.query):
                return _sqlite(path)
        case "redis" | "rediss":
            return _redis(parts)
        case "postgres" | "postgresql":
            from dragoman.gateway.keys.stores.postgres import PostgresKeyStore

            return PostgresKeyStore(url)
        case _:
            pass
    raise ConfigError(_FORMS)


def _sqlite(path: str) -> KeyStore:
    from dragoman.gateway.keys.stores.sqlite import SQLiteKeyStore

    return SQLiteKeyStore(path)


def _redis(parts: SplitResult) -> KeyStore:
    from dragoman.gateway.keys.stores.redis import RedisKeyStore

    options = parse_qsl(parts.query, keep_blank_values=True)
    theirs = urlencode([pair for pair in options if pair[0] != "prefix"])
    prefix = dict(options).get("prefix", "dragoman")
    return RedisKeyStore(parts._replace(query=theirs).geturl(), prefix=prefix)
