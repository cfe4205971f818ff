"""Answers in Redis, shared by the workers of many machines."""

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
_PATIENCE = 1.0  # seconds for one command
_PAUSE = 5.0  # seconds without asking, after it failed


class RedisCache:
    """Keeps answers below a prefix. A server that fails is a cache without answers."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self._prefix = f"{options.pop('prefix', 'dragoman')}:cache:"
        self._client: Redis = client_of(urlunsplit(parts._replace(query=urlencode(options))))
        self._name = place_of(url)
        self._clock = clock
        self._down_until = 0.0

    async def find(self, key: bytes) -> Entry | None:
        """The answer to a request; no more is read than an answer may have."""
        raw = await self._asked(lambda: self._client.getrange(self._at(key), 0, MAX_ENTRY_BYTES))
        return decode(raw, key) if isinstance(raw, bytes) and raw else None

    async def keep(self, entry: Entry, seconds: float) -> None:
        """Keep an answer for some time."""
        value = encode(entry)
        if len(value) <= MAX_ENTRY_BYTES:
            at, milliseconds = self._at(entry.key), max(1, int(seconds * 1000))
            await self._asked(lambda: self._client.set(at, value, px=milliseconds))

    def _at(self, key: bytes) -> str:
        return self._prefix + key.hex()

    async def _asked(self, command: Callable[[], Awaitable[Any]]) -> Any:
        from redis.exceptions import RedisError

        if self._clock() < self._down_until:
            return None
        try:
            async with asyncio.timeout(_PATIENCE):
                return await command()
        except (RedisError, OSError, TimeoutError) as error:
            self._down_until = self._clock() + _PAUSE
            kind = type(error).__name__
            LOG.warning("the cache %s can't be used (%s): models are asked", self._name, kind)
            return None

    async def close(self) -> None:
        """Disconnect."""
        await self._client.aclose()
        await self._client.connection_pool.disconnect()
