"""The backend: every write is one script, which Redis runs as a whole or not at all."""

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

    What was acknowledged is in the server's memory. Whether it outlives the server is the
    server's matter, and `durability` says what its settings give:

    - `appendonly yes` with `appendfsync always`: it survives a power cut;
    - with `everysec` (the default of an append-only file): it survives the server's death; a
      power cut may take the last second or two;
    - snapshots (RDB) alone: what came after the last one is lost when the server dies;
    - a replica that takes over (Sentinel) may lack what was written last; `min-replicas-to-write`
      narrows that.

    One server or Sentinel: for the latter, give a client in the place of an address
    (`Sentinel(…).master_for("name", retry=Retry(NoBackoff(), 0))`, not decoding responses): one
    that repeats commands by itself may take its own first try for a duplicate. A cluster is
    refused: the list of sessions is in another slot than they are. Set `maxmemory-policy
    noeviction`, or Redis drops sessions when its memory is full.

    Searching reads every message. A `restore` is one script: at 100,000 messages it holds up the
    server for a second or so.
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
        """What it is and where, without user and password."""
        return place_of(self._url) if isinstance(self._url, str) else "redis"

    @property
    def is_blocking(self) -> bool:
        """It waits for the server on an event loop."""
        return False

    @property
    def durability(self) -> str:
        """What the server's settings promise for an acknowledged message; known once it is open."""
        return promise_of(self._settings)

    async def open(self) -> None:
        """Connect."""
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
            f"the store {self.name} can't be reached: is the server running, and the address"
            " right? Nothing was written"
        )
        raise StoreError(msg)

    async def close(self) -> None:
        """Let go of the connections; those of a client that was given are its owner's."""
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
            return  # it does not tell; scripts will fail there
        if told.get("redis_mode") == "cluster":
            msg = f"the store {self.name} can't be used: {CLUSTER}"
            raise ConfigError(msg)

    @property
    def _opened(self) -> Server:
        return expect_open(self._server, self.name)

    async def _read(self, work: Callable[..., Any], *arguments: Any, **_none: Any) -> Any:
        return await work(self._opened, *arguments)

    _write = _append = _read  # each script is a transaction of its own

    async def _forget(self, user: str) -> Erasure:
        return await erasing.forget(self._opened, user, self._settings)

    async def verify(self) -> list[str]:
        """Ids that lead nowhere, counts that don't agree, records that can't be read."""
        return await checking.verify(self, self._opened)


def _given(client: Redis) -> Redis:
    """A client that was given; one for a cluster is refused."""
    if hasattr(client, "get_nodes"):
        msg = f"the store redis can't be used: {CLUSTER}"
        raise ConfigError(msg)
    return client


async def _twice(server: Server, call: Callable[[], Any]) -> Any:
    """An answer; a client that was given may have a connection that broke."""
    try:
        return await server.once(call)
    except Lost:
        pass
    return await server.once(call)
