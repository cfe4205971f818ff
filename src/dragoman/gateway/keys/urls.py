"""Opens key stores by URL, on the same backends as histories, but separate from them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from dragoman.errors import ConfigError
from dragoman.gateway.keys.store import KeyStore
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage_urls import default_file

VARIABLE = "DRAGOMAN_KEYS"
SCHEMA = "dragoman_keys"
_FORMS = (
    "the URL of a key store must be sqlite:///file, sqlite:////absolute/file, postgresql://…,"
    " mariadb://…, redis://… or memory:"
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
            return KeyStore(MemoryStorage())
        case "sqlite":
            path = unquote(parts.path).removeprefix("/")
            if path and not (parts.netloc or parts.query):
                return _sqlite(Path(path))
        case "redis" | "rediss":
            return _redis(parts)
        case "mariadb" | "mysql":
            from dragoman.history.storage.mariadb import MariaDBStorage

            return KeyStore(MariaDBStorage(url, prefix=SCHEMA))
        case "postgres" | "postgresql":
            return _postgres(url, parts)
        case _:
            pass
    raise ConfigError(_FORMS)


def _sqlite(path: Path) -> KeyStore:
    from dragoman.gateway.keys.earlier import APPLICATION, move_file
    from dragoman.history.storage.sqlite import SQLiteStorage

    async def opened(store: KeyStore) -> None:
        await asyncio.to_thread(move_file, path, store)
        await store.ledger.open()

    return KeyStore(SQLiteStorage(path, application=APPLICATION), opened)


def _postgres(url: str, parts: SplitResult) -> KeyStore:
    from dragoman.gateway.keys.earlier import move_schema
    from dragoman.history.storage.postgres import PostgresStorage

    async def opened(store: KeyStore) -> None:
        await store.ledger.open()
        await move_schema(ledger.shelf, store)

    is_told = "schema" in dict(parse_qsl(parts.query, keep_blank_values=True))
    ledger = PostgresStorage(url, schema=None if is_told else SCHEMA)
    return KeyStore(ledger, opened)


def _redis(parts: SplitResult) -> KeyStore:
    from dragoman.gateway.keys.earlier import move_prefix
    from dragoman.history.storage.redis import RedisStorage

    options = parse_qsl(parts.query, keep_blank_values=True)
    theirs = urlencode([pair for pair in options if pair[0] != "prefix"])
    prefix = dict(options).get("prefix", "dragoman")

    async def opened(store: KeyStore) -> None:
        await store.ledger.open()
        await move_prefix(ledger.shelf, prefix, store)

    ledger = RedisStorage(parts._replace(query=theirs).geturl(), prefix=f"{prefix}:keys")
    return KeyStore(ledger, opened)
