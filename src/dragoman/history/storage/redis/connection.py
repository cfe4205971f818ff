"""Creates the client, translates its errors, and describes the server's durability."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from dragoman.errors import ConfigError, Corrupt, InvalidInputError, StoreError
from dragoman.history.storage.redis import scripts
from dragoman.history.storage.redis.fields import Keys
from dragoman.history.storage.shelf import LostReply

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.cluster import RedisCluster
    from redis.commands.core import AsyncScript


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


# --- calls the server: runs scripts, reads pages, retries, and translates errors


T = TypeVar("T")
PAGE = 500
HIGHEST = str(1 << 53)
"""Above all sequence numbers."""
_TRIES = (0.0, 0.1, 0.5, 2.0)  # seconds before each new connection, after one was lost


class Lost(StoreError):  # noqa: N818 - named as StoreError's others are
    """The connection broke; it is unknown whether the command ran."""

    def __init__(self, message: str, *, is_late: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late
        """Whether the server timed out; then one more attempt is enough."""


class Server:
    """An open pool of connections."""

    def __init__(self, client: Redis, keys: Keys, name: str) -> None:
        self.client = client
        self.keys = keys
        self.name = name
        self._scripts: dict[str, AsyncScript] = {}

    # --- calls

    async def each(
        self, tags: Sequence[str], call: Callable[[Any, str], object], *, is_atomic: bool = False
    ) -> list[Any]:
        """The replies to one call for each tag, made in one go."""

        async def ask() -> list[Any]:
            async with self.client.pipeline(transaction=is_atomic) as pipeline:
                for tag in tags:
                    call(pipeline, tag)
                return await pipeline.execute()

        return await self.ask(ask)

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Makes a call that may be repeated if the connection is lost."""
        try:
            return await self.once(call)
        except Lost as error:
            is_late = error.is_late
        return await self.again(call, is_late=is_late)

    async def once(self, call: Callable[[], Awaitable[T]]) -> T:
        """Makes a call; translates the client's exceptions."""
        from redis.exceptions import ConnectionError as Broken
        from redis.exceptions import RedisClusterException, RedisError
        from redis.exceptions import TimeoutError as Late

        try:
            return await call()
        except (Broken, Late, OSError) as error:
            raised = explanation(error, self.name)
            # Otherwise the server replied, so the outcome is known.
            is_lost = type(error).__name__ in {"ConnectionError", "TimeoutError"} or isinstance(
                error, OSError
            )
            is_late = isinstance(error, (Late, TimeoutError))
        except RedisClusterException as error:  # no node answers
            raised, is_lost, is_late = explanation(error, self.name), True, False
        except RedisError as error:
            raised, is_lost, is_late = explanation(error, self.name), False, False
        except AttributeError as error:
            # After a lost connection, redis-py closes those of a node while others still write.
            if not self.keys.is_cluster:
                raise
            raised, is_lost, is_late = explanation(error, self.name), True, False
        raise Lost(str(raised), is_late=is_late) if is_lost else raised

    async def again(self, call: Callable[[], Awaitable[T]], *, is_late: bool = False) -> T:
        """Repeats a call after a lost connection; the server may need a moment."""
        for pause in _TRIES[:-1]:
            await self._afresh(pause)
            try:
                return await self.once(call)
            except Lost as error:
                if is_late and error.is_late:
                    raise
                is_late = error.is_late
        await self._afresh(_TRIES[-1])
        return await self.once(call)

    def nodes(self) -> Sequence[Any]:
        """What has keys: the primaries of a cluster, or the server itself."""
        client: Any = self.client
        return client.get_primaries() if self.keys.is_cluster else [client]

    async def _afresh(self, pause: float) -> None:
        """Waits, and drops all idle connections: whatever broke one broke them all."""
        with suppress(Exception):  # they are gone in any case
            await self.client.connection_pool.disconnect(inuse_connections=False)
        await asyncio.sleep(pause)

    async def run(self, script: str, digest: str, *arguments: Any) -> list[bytes]:
        """Runs a writing script. Raises `LostReply` if its reply is lost."""
        is_commit = script is scripts.COMMIT
        keys = self.keys.committed(digest) if is_commit else self.keys.written(digest)
        values = [digest, self.keys.of(digest, "branch:"), *arguments]
        try:
            return await self.once(lambda: self._script(script)(keys=keys, args=values))  # type: ignore[arg-type, return-value, unused-ignore]
        except Lost as error:
            lost = LostReply(str(error), is_repeatable=not error.is_late)
        raise lost

    def _script(self, text: str) -> AsyncScript:
        if text not in self._scripts:
            self._scripts[text] = self.client.register_script(text)
        return self._scripts[text]

    # --- reading

    async def head(self, digest: str) -> list[Any]:
        """A session's stamp, and the fields of its head."""
        keys, values = self.keys.written(digest), [digest, self.keys.of(digest, "branch:")]
        return await self.ask(lambda: self._script(scripts.HEAD)(keys=keys, args=values))  # type: ignore[arg-type, return-value, unused-ignore]

    async def lines_by_id(self, digest: str, ids: Sequence[str]) -> list[tuple[bytes, bytes]]:
        """The positions and lines of these messages; empty for missing ones."""
        keys = [self.keys.of(digest, what) for what in ("records", "ids")]
        flat: Any = await self.ask(lambda: self._script(scripts.BY_ID)(keys=keys, args=[*ids]))  # type: ignore[arg-type, misc, unused-ignore]
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def page(
        self, digest: str, branch: int, low: str, high: str, limit: int, order: str
    ) -> tuple[bytes, list[Found]]:
        """Some lines of a branch above `low` and up to `high`, and the session's generation."""
        keys = [self.keys.of(digest, what) for what in ("session", "records", f"branch:{branch}")]
        values = [order, low, high, limit]
        reply: Any = await self.ask(lambda: self._script(scripts.PAGE)(keys=keys, args=values))  # type: ignore[arg-type, misc, unused-ignore]
        generation, *flat = reply
        return generation, list(map(Found, flat[::2], flat[1::2]))


class Found(NamedTuple):
    """An entry of a branch: its number (with its position, if they differ), and its line."""

    seq: bytes
    line: bytes

    @property
    def place(self) -> str:
        """Its position, which equals its number unless it was altered."""
        return self.seq.removeprefix(b"!").partition(b" ")[0].decode()

    @property
    def number(self) -> int:
        """Its number; if that was altered, its position."""
        try:
            return int(self.seq)
        except ValueError:
            member = self.seq.partition(b" ")[2]
        is_number = member.isdigit() and len(member) < len(HIGHEST)
        return int(member) if is_number else ceil(float(self.place))


def in_pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    """The fields of a hash, from a script's flat reply."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
