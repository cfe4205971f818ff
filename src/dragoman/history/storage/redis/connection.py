"""The client, its errors in our words, and what the server's settings promise."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dragoman.errors import ConfigError, Corrupt, InvalidInputError, StoreError

if TYPE_CHECKING:
    from redis.asyncio import Redis

_MOST = 32  # connections of one storage: each call in progress has one
_NUMBERED = re.compile(r"^/?[0-9]*/?$")
_WAIT = 30.0  # seconds for the server to answer, or for a connection to be free


def client_of(url: str) -> Redis:
    """A client that never sends anything twice by itself."""
    expect_package()
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MOST,
            timeout=_WAIT,
            socket_timeout=_WAIT,
            socket_connect_timeout=10.0,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
        )
        pool.connection_class(**pool.connection_kwargs)  # else it is found out at the first use
    except (ValueError, TypeError):  # it may quote the password
        pool = None
    if pool is None or not _NUMBERED.search(urlsplit(url).path):
        msg = (
            "the address of a Redis store is redis://host:port/number, or rediss://, with no"
            " options but prefix and redis-py's"
        )
        raise InvalidInputError(msg)
    return Redis.from_pool(pool)


def expect_package() -> None:
    """Raise where redis-py is not installed."""
    try:
        is_there = find_spec("redis.asyncio") is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        msg = "Redis needs a package that is not installed: pip install 'dragoman[redis]'"
        raise ConfigError(msg)


def place_of(url: str) -> str:
    """Where an address leads, without user and password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port or 6379
    except ValueError:
        return "redis"
    if parts.scheme == "unix":
        return f"redis:{parts.path}"
    return f"redis:{host}:{port}{parts.path.rstrip('/')}"


def explanation(error: Exception, name: str) -> StoreError:
    """What happened, and what to do about it; the server's own words may quote values."""
    kind = Corrupt if "WRONGTYPE" in str(error) else StoreError  # within a script's error as well
    return kind(f"the store {name} failed: {_reason(error)}")


def _reason(error: Exception) -> str:
    for kind in type(error).__mro__:
        if kind.__name__ in _REASONS:
            return _REASONS[kind.__name__]
    word = "WRONGTYPE" if "WRONGTYPE" in str(error) else str(error).split(" ", 1)[0]
    return _WORDS.get(word, f"{type(error).__name__}; the write was not acknowledged")


CLUSTER = (
    "it is a cluster, which is not supported, as the list of sessions is in another slot than they"
    " are; nothing was written: use a server without cluster mode (cluster-enabled no), or Sentinel"
)
_REASONS = {
    "AuthenticationError": "user or password are wrong, or missing",
    "AuthorizationError": "user or password are wrong, or missing",
    "NoPermissionError": "its user may not run one of the commands; nothing was written",
    "BusyLoadingError": "the server is still starting; nothing was written, try again",
    "ReadOnlyError": "the server is a read-only replica; nothing was written, name the primary",
    "OutOfMemoryError": "the server's memory is full; nothing was written, make room",
    "TimeoutError": "the server did not answer in time; whether a write was done is not known:"
    " load the session again",
    "ConnectionError": "the connection was lost, or could not be made; whether a write was done is"
    " not known: load the session again",
    "OSError": "the connection was lost, or could not be made",
    "ClusterError": CLUSTER,
    "ClusterDownError": CLUSTER,
    "ClusterCrossSlotError": CLUSTER,
    "AskError": CLUSTER,
    "TryAgainError": CLUSTER,
}
_WORDS = {
    "DB": "the server has no database of this number; nothing was written",
    "OOM": _REASONS["OutOfMemoryError"],
    "CROSSSLOT": CLUSTER,
    "MOVED": CLUSTER,
    "CLUSTERDOWN": CLUSTER,
    "WRONGTYPE": "a key is of another type than was written: it is damaged (`dragoman history"
    " repair` makes the session anew), or another program uses its keys (choose another prefix);"
    " nothing was written",
    "MISCONF": "the server can't save to its disk, and takes no writes; nothing was written",
    "NOREPLICAS": "the server has too few replicas to take writes; nothing was written",
}


async def settings_of(client: Redis) -> dict[str, str]:
    """The server's settings for persistence; empty where they may not be asked for."""
    from redis.exceptions import ResponseError

    try:
        raw: Any = await client.config_get("appendonly", "appendfsync", "save")
    except ResponseError:
        return {}
    return {_text(name): _text(value) for name, value in raw.items()}


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def promise_of(settings: dict[str, str]) -> str:
    """What the settings mean for a message that was acknowledged."""
    if not settings:
        return "not known: the server does not tell its settings (CONFIG GET)"
    if settings.get("appendonly") == "yes":
        return _PROMISES.get(settings.get("appendfsync", ""), _PROMISES["no"])
    if settings.get("save"):
        return "snapshots only: what came after the last one is lost when the server dies"
    return "none: everything is lost when the server stops"


_PROMISES = {
    "always": "append-only file, synced at every write: survives a power cut",
    "everysec": "append-only file, synced every second: survives the server's death; a power cut"
    " may take the last second or two",
    "no": "append-only file, synced when the system likes: survives the server's death; a power"
    " cut may take half a minute",
}
