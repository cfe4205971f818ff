"""`RedisStorage`: every write is one script, which Redis runs atomically."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.errors import ConfigError, StoreError
from dragoman.history.storage.backend import Backend, Operations, expect_open
from dragoman.history.storage.protocol import Erasure
from dragoman.history.storage.redis import checking, erasing, listing, reading, writing
from dragoman.history.storage.redis.connection import (
    CLUSTER,
    client_of,
    place_of,
    promise_of,
    settings_of,
)
from dragoman.history.storage.redis.keys import Keys
from dragoman.history.storage.redis.server import Lost, Server

if TYPE_CHECKING:
    from redis.asyncio import Redis


class RedisStorage(Backend[Server]):
    """A backend on a Redis server, for any number of processes and machines.

    >>> RedisStorage("redis://user:secret@cache:6379/0").name
    'redis:cache:6379/0'

    Acknowledged messages are in the server's memory. Whether they survive a crash of the server
    depends on its settings, which `durability` describes:

    - `appendonly yes` with `appendfsync always`: they survive a power cut;
    - with `everysec` (the default of an append-only file): they survive a crash of the server; a
      power cut may lose the last second or two;
    - snapshots (RDB) only: everything after the last one is lost if the server crashes;
    - a replica that takes over (Sentinel) may lack the latest writes; `min-replicas-to-write`
      reduces that risk.

    It supports a single server or Sentinel. For Sentinel, pass a client instead of a URL
    (`Sentinel(…).master_for("name", retry=Retry(NoBackoff(), 0))`, not decoding responses); a
    client that retries by itself may mistake its own first attempt for a duplicate. Clusters are
    not supported, because the list of sessions and the sessions are in different slots. Set
    `maxmemory-policy noeviction`, or Redis drops sessions when its memory is full.

    Searching reads every message. `restore` is one script: with 100,000 messages, it blocks the
    server for about a second.
    """

    _operations = Operations(
        session=reading.session,
        append=writing.append,
        rows=reading.rows,
        row=reading.row,
        count=reading.count,
        rewrite=writing.rewrite,
        clear=writing.clear,
        fork=writing.fork,
        activate=writing.activate,
        keep_windows=writing.keep_windows,
        delete=writing.delete,
        restore=writing.restore,
        set_aside=writing.set_aside,
        sessions=listing.sessions,
        search=listing.search,
        totals=listing.totals,
    )

    def __init__(self, url: str | Redis, *, prefix: str = "dragoman") -> None:
        self._url = url
        self._keys = Keys(prefix)
        self._server: Server | None = None
        self._settings: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The kind of backend and its location, without user and password."""
        return place_of(self._url) if isinstance(self._url, str) else "redis"

    @property
    def is_blocking(self) -> bool:
        """Always false: it waits for the server on an event loop."""
        return False

    @property
    def durability(self) -> str:
        """What the server's settings guarantee for acknowledged messages; known once open."""
        return promise_of(self._settings)

    async def open(self) -> None:
        """Connects to the server."""
        if self._server is not None:
            return
        client = client_of(self._url) if isinstance(self._url, str) else _given(self._url)
        server = Server(client, self._keys, self.name)
        try:
            await self._refuse_cluster(server)
            self._settings = await server.ask(lambda: settings_of(client))
        except Lost:
            await self._disconnected(client)
        except BaseException:
            await self._disconnected(client)
            raise
        else:
            self._server = server
            return
        msg = (
            f"the store {self.name} can't be reached; check that the server is running and the"
            " address is right. Nothing was written"
        )
        raise StoreError(msg)

    async def close(self) -> None:
        """Closes the connections; those of a client that was passed in stay open."""
        server, self._server = self._server, None
        if server is not None:
            await self._disconnected(server.client)

    async def _disconnected(self, client: Redis) -> None:
        if isinstance(self._url, str):
            await client.aclose()
            await client.connection_pool.disconnect()

    async def _refuse_cluster(self, server: Server) -> None:
        try:
            told: Any = await _twice(server, lambda: server.client.info("server"))
        except Lost:
            raise
        except StoreError:
            return  # it does not tell; scripts would fail on a cluster
        if told.get("redis_mode") == "cluster":
            msg = f"the store {self.name} can't be used: {CLUSTER}"
            raise ConfigError(msg)

    @property
    def _opened(self) -> Server:
        return expect_open(self._server, self.name)

    async def _read(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await work(self._opened, *arguments)

    _write = _append = _read  # each script is its own transaction

    async def _forget(self, user: str) -> Erasure:
        return await erasing.forget(self._opened, user, self._settings)

    async def verify(self) -> list[str]:
        """Reports dangling ids, inconsistent counts and unreadable records."""
        return await checking.verify(self, self._opened)


def _given(client: Redis) -> Redis:
    """A client that was passed in; rejects one for a cluster."""
    if hasattr(client, "get_nodes"):
        msg = f"the store redis can't be used: {CLUSTER}"
        raise ConfigError(msg)
    return client


async def _twice(server: Server, call: Callable[[], Any]) -> Any:
    """Makes a call, with one retry: a client that was passed in may have a broken connection."""
    try:
        return await server.once(call)
    except Lost:
        pass
    return await server.once(call)
