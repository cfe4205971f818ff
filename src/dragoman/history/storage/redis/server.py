"""Calls the server: runs scripts, reads pages, retries, and translates errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dragoman.errors import StoreError
from dragoman.history.storage.redis import scripts
from dragoman.history.storage.redis.connection import explanation
from dragoman.history.storage.redis.keys import Keys
from dragoman.history.storage.shelf import LostReply

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.commands.core import AsyncScript

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
