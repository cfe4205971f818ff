"""A connection to Redis that retries commands and scripts and translates errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.errors import StoreError
from dragoman.history.storage.redis.connection import client_of, explanation, place_of
from dragoman.history.storage.redis.keys import Keys as Names

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.commands.core import AsyncScript

T = TypeVar("T")
_PAUSES = (0.0, 0.1, 0.5)  # seconds before each retry after a lost connection


class RedisLink:
    """A pool of connections to one server.

    Commands are retried if the connection is lost, so all of them are idempotent: scripts check
    what was done already, and single commands set absolute values.
    """

    def __init__(self, url: str, prefix: str) -> None:
        Names(prefix)  # raises if the prefix is invalid
        self.prefix = prefix
        self.name = place_of(url)
        self._url = url
        self._client: Redis | None = None
        self._scripts: dict[str, AsyncScript] = {}

    async def open(self) -> None:
        """Connect; calling it again does nothing."""
        if self._client is not None:
            return
        self._client = client_of(self._url)
        try:
            await self.command("PING")
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect; calling it again does nothing."""
        client, self._client = self._client, None
        self._scripts.clear()
        if client is not None:
            await client.aclose()
            await client.connection_pool.disconnect()

    async def command(self, *words: str) -> Any:
        """Run one command and return its reply."""
        return await self._retried(lambda client: client.execute_command(*words))  # type: ignore[no-untyped-call, unused-ignore]

    async def pipeline(self, *commands: Sequence[str]) -> list[Any]:
        """Run several commands in one transaction and return their replies."""
        if not commands:
            return []

        async def call(client: Redis) -> list[Any]:
            async with client.pipeline(transaction=True) as pipeline:
                for words in commands:
                    pipeline.execute_command(*words)
                return list(await pipeline.execute())

        return await self._retried(call)

    async def run(self, script: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
        """Run a script and return its reply."""
        return await self._retried(lambda client: self._prepared(client, script)(keys, values))

    def _prepared(self, client: Redis, text: str) -> AsyncScript:
        if text not in self._scripts:
            self._scripts[text] = client.register_script(text)
        return self._scripts[text]

    async def _retried(self, call: Callable[[Redis], Awaitable[T]]) -> T:
        for pause in _PAUSES:
            try:
                return await self._once(call)
            except _Lost:
                await self._drop_idle(pause)
        try:
            return await self._once(call)
        except _Lost:
            msg = f"the store {self.name} can't be reached: is the server running?"
        raise StoreError(msg)

    async def _once(self, call: Callable[[Redis], Awaitable[T]]) -> T:
        from redis.exceptions import ConnectionError as Broken
        from redis.exceptions import RedisError
        from redis.exceptions import TimeoutError as Late

        client = self._client
        if client is None:
            msg = f"the store {self.name} is closed"
            raise StoreError(msg)
        try:
            return await call(client)
        except (Broken, Late, OSError) as error:
            # Subclasses have a specific cause, such as a wrong password.
            is_lost = type(error) in {Broken, Late} or isinstance(error, OSError)
            raised = _Lost() if is_lost else explanation(error, self.name)
        except RedisError as error:
            raised = explanation(error, self.name)
        raise raised

    async def _drop_idle(self, pause: float) -> None:
        """Close all idle connections, which are probably lost too, and wait."""
        if self._client is not None:
            with suppress(Exception):  # they are unusable anyway
                await self._client.connection_pool.disconnect(inuse_connections=False)
        await asyncio.sleep(pause)


class _Lost(StoreError):  # noqa: N818 - named like the other StoreErrors
    """The connection was lost: it is unknown whether the command was run."""
