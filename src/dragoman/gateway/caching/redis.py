"""A response cache in Redis, shared by the workers of several machines."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from dragoman.gateway.caching.entries import MAX_ENTRY_BYTES, Entry, decode, encode
from dragoman.history.storage.redis.connection import client_of, place_of

if TYPE_CHECKING:
    from redis.asyncio import Redis

LOG = logging.getLogger("dragoman.gateway")
_TIMEOUT = 1.0  # seconds for one command
_PAUSE = 5.0  # seconds without attempts after a failure


class RedisCache:
    """Stores responses below a key prefix. A failing server counts as an empty cache."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self._prefix = f"{options.pop('prefix', 'dragoman')}:cache:"
        self._client: Redis = client_of(urlunsplit(parts._replace(query=urlencode(options))))
        self._name = place_of(url)
        self._clock = clock
        self._down_until = 0.0

    async def find(self, key: bytes) -> Entry | None:
        """The cached response to a request; reads at most `MAX_ENTRY_BYTES`."""
        raw = await self._run(lambda: self._client.getrange(self._at(key), 0, MAX_ENTRY_BYTES))
        return decode(raw, key) if isinstance(raw, bytes) and raw else None

    async def keep(self, entry: Entry, seconds: float) -> None:
        """Cache a response for some seconds."""
        value = encode(entry)
        if len(value) <= MAX_ENTRY_BYTES:
            at, milliseconds = self._at(entry.key), max(1, int(seconds * 1000))
            await self._run(lambda: self._client.set(at, value, px=milliseconds))

    def _at(self, key: bytes) -> str:
        return self._prefix + key.hex()

    async def _run(self, command: Callable[[], Awaitable[Any]]) -> Any:
        from redis.exceptions import RedisError

        if self._clock() < self._down_until:
            return None
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await command()
        except (RedisError, OSError, TimeoutError) as error:
            self._down_until = self._clock() + _PAUSE
            kind = type(error).__name__
            LOG.warning("the cache %s is unavailable (%s) and is bypassed", self._name, kind)
            return None

    async def close(self) -> None:
        """Disconnect."""
        await self._client.aclose()
        await self._client.connection_pool.disconnect()
