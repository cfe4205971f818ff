"""Creates the client, translates its errors, and describes the server's durability."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dragoman.errors import ConfigError, Corrupt, InvalidInputError, StoreError

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.cluster import RedisCluster

_MAX_CONNECTIONS = 32  # maximum connections of a storage: each call in progress needs one
_NUMBERED = re.compile(r"^/?[0-9]*/?$")
_TIMEOUT = 30.0  # seconds to wait for a response, or for a free connection


def client_of(url: str) -> Redis:
    """A client that never retries by itself."""
    expect_package()
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MAX_CONNECTIONS,
            timeout=_TIMEOUT,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=10.0,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
        )
        pool.connection_class(**pool.connection_kwargs)  # fails here rather than at the first use
    except (ValueError, TypeError):  # the message may quote the password
        pool = None
    if pool is None or not _NUMBERED.search(urlsplit(url).path):
        msg = (
            "the URL of a Redis store must be redis://host:port/number or rediss://…, with no"
            " options except prefix and those of redis-py"
        )
        raise InvalidInputError(msg)
    return Redis.from_pool(pool)


def cluster_of(url: str) -> RedisCluster:
    """A client for the cluster of a server; never retries by itself."""
    from redis.asyncio.cluster import RedisCluster
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return RedisCluster.from_url(
        url,
        max_connections=_MAX_CONNECTIONS,
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=10.0,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
    )


def expect_package() -> None:
    """Raises if redis-py is not installed."""
    try:
        is_there = find_spec("redis.asyncio") is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        msg = "Redis support requires another package: pip install 'dragoman[redis]'"
        raise ConfigError(msg)


def place_of(url: str) -> str:
    """The location in a URL, without user and password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port or 6379
    except ValueError:
        return "redis"
    if parts.scheme == "unix":
        return f"redis:{parts.path}"
    return f"redis:{host}:{port}{parts.path.rstrip('/')}"


def explanation(error: Exception, name: str) -> StoreError:
    """What happened, and what to do about it; the server's own message may quote values."""
    kind = Corrupt if "WRONGTYPE" in str(error) else StoreError  # also inside a script's error
    return kind(f"the store {name} failed: {_reason(error)}")


def _reason(error: Exception) -> str:
    for kind in type(error).__mro__:
        if kind.__name__ in _REASONS:
            return _REASONS[kind.__name__]
    word = "WRONGTYPE" if "WRONGTYPE" in str(error) else str(error).split(" ", 1)[0]
    return _WORDS.get(word, f"{type(error).__name__}; the write was not acknowledged")


_MOVING = (
    "the cluster is down, or its slots are being moved; nothing was written, try again. A client"
    " that is passed in for a cluster must be a RedisCluster"
)
_REASONS = {
    "AuthenticationError": "user or password is wrong or missing",
    "AuthorizationError": "user or password is wrong or missing",
    "NoPermissionError": "its user is not permitted to run a command; nothing was written",
    "BusyLoadingError": "the server is still starting; nothing was written, try again",
    "ReadOnlyError": "the server is a read-only replica; nothing was written, use the primary",
    "OutOfMemoryError": "the server's memory is full; nothing was written, free some memory",
    "TimeoutError": "the server did not respond in time; it is unknown whether a write succeeded,"
    " reload the session",
    "ConnectionError": "the connection was lost or could not be made; it is unknown whether a write"
    " succeeded, reload the session",
    "RedisClusterException": "no node of the cluster can be reached",
    "OSError": "the connection was lost or could not be made",
    "ClusterError": _MOVING,
    "ClusterDownError": _MOVING,
    "ClusterCrossSlotError": _MOVING,
    "AskError": _MOVING,
    "TryAgainError": _MOVING,
}
_WORDS = {
    "DB": "the server has no database with this number; nothing was written",
    "OOM": _REASONS["OutOfMemoryError"],
    "CROSSSLOT": _MOVING,
    "MOVED": _MOVING,
    "CLUSTERDOWN": _MOVING,
    "WRONGTYPE": "a key has the wrong type: it is damaged (run `dragoman history repair` to rebuild"
    " the session), or another program uses its keys (choose another prefix); nothing was written",
    "MISCONF": "the server can't save to its disk and rejects writes; nothing was written",
    "NOREPLICAS": "the server has too few replicas to accept writes; nothing was written",
}


async def settings_of(client: Any) -> dict[str, str]:
    """The server's persistence settings; empty if they may not be queried."""
    from redis.exceptions import ResponseError

    try:
        one = {"target_nodes": client.get_random_node()} if hasattr(client, "get_nodes") else {}
        raw = await client.config_get("appendonly", "appendfsync", "save", **one)
    except ResponseError:
        return {}
    return {_text(name): _text(value) for name, value in raw.items()}


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def promise_of(settings: dict[str, str]) -> str:
    """What the settings mean for an acknowledged message."""
    if not settings:
        return "unknown: the server does not reveal its settings (CONFIG GET)"
    if settings.get("appendonly") == "yes":
        return _PROMISES.get(settings.get("appendfsync", ""), _PROMISES["no"])
    if settings.get("save"):
        return "snapshots only: everything after the last one is lost if the server crashes"
    return "none: everything is lost when the server stops"


_PROMISES = {
    "always": "append-only file, synced at every write: survives a power cut",
    "everysec": "append-only file, synced every second: survives a crash of the server; a power"
    " cut may lose the last second or two",
    "no": "append-only file, synced by the operating system: survives a crash of the server; a"
    " power cut may lose half a minute",
}
