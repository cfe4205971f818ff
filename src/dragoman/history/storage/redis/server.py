"""What is asked of the server: scripts by name, reads in pages, errors in our words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.errors import NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import row_of
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import (
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    DuplicateIds,
    Row,
    Session,
    conflict,
)
from dragoman.history.storage.redis import scripts
from dragoman.history.storage.redis.connection import explanation
from dragoman.history.storage.redis.fields import session_of
from dragoman.history.storage.redis.keys import Keys

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.commands.core import AsyncScript

T = TypeVar("T")
PAGE = 500
_TRIES = (0.0, 0.1, 0.5, 2.0)  # seconds before each new connection, after one was lost


class Lost(StoreError):  # noqa: N818 - named as StoreError's others are
    """The connection broke: whether the command was run is not known."""


class Server:
    """An open connection, or rather a pool of them."""

    def __init__(self, client: Redis, keys: Keys, name: str) -> None:
        self.client = client
        self.keys = keys
        self.name = name
        self._scripts: dict[str, AsyncScript] = {}

    # --- asking

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer to something that changes nothing, asked a second time if need be."""
        try:
            return await self.once(call)
        except Lost:
            pass
        return await self.once(call)

    async def once(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer; what the client raises becomes ours."""
        from redis.exceptions import ConnectionError as Broken
        from redis.exceptions import RedisError
        from redis.exceptions import TimeoutError as Late

        try:
            return await call()
        except (Broken, Late, OSError) as error:
            raised = explanation(error, self.name)
            # The server said something, so that it is known what it did.
            is_lost = type(error).__name__ in {"ConnectionError", "TimeoutError"} or isinstance(
                error, OSError
            )
        except RedisError as error:
            raised, is_lost = explanation(error, self.name), False
        raise Lost(str(raised)) if is_lost else raised

    async def again(self, call: Callable[[], Awaitable[T]]) -> T:
        """As `ask`, after a connection was lost: the server may need a moment."""
        for pause in _TRIES[:-1]:
            await asyncio.sleep(pause)
            try:
                return await self.once(call)
            except Lost:
                continue
        await asyncio.sleep(_TRIES[-1])
        return await self.once(call)

    async def run(self, script: str, identity: SessionIdentity, *arguments: Any) -> list[bytes]:
        """What a writing script returns behind its "ok"; raises for everything else."""
        reply = await self.once(self.prepared(script, identity, token_hex(8), *arguments))
        return checked(reply, arguments)

    def prepared(
        self, script: str, identity: SessionIdentity, token: str, *arguments: Any
    ) -> Callable[[], Awaitable[list[bytes]]]:
        """A call of a writing script, which can be made again."""
        digest = identity.digest
        keys = self.keys.written(digest)
        values = [self.keys.of(digest, "branch:"), digest, token, *arguments]
        return lambda: self._script(script)(keys=keys, args=values)  # type: ignore[return-value, unused-ignore]

    def _script(self, text: str) -> AsyncScript:
        if text not in self._scripts:
            self._scripts[text] = self.client.register_script(text)
        return self._scripts[text]

    # --- reading

    async def session(self, digest: str) -> Session | None:
        """The session; None where there is none."""
        fields = await self.told(scripts.HEAD, digest)
        return session_of(in_pairs(fields)) if fields else None

    async def told(self, script: str, digest: str, *arguments: Any) -> Any:
        """What a reading script returns."""
        keys = self.keys.read(digest)
        return await self.ask(lambda: self._script(script)(keys=keys, args=arguments))  # type: ignore[arg-type, return-value, unused-ignore]

    async def lines_by_id(self, digest: str, ids: Sequence[str]) -> list[bytes]:
        """The lines of these messages; empty for those that are not there."""
        keys = self.keys.read(digest)
        return await self.again(lambda: self._script(scripts.BY_ID)(keys=keys, args=ids))  # type: ignore[arg-type, return-value, unused-ignore]

    async def page(
        self, digest: str, branch: int, after: int, upto: int | None, limit: int, order: str
    ) -> tuple[bytes, list[tuple[int, bytes]]]:
        """Some lines of a branch with their numbers, and the session's generation."""
        keys = [*self.keys.read(digest), self.keys.of(digest, f"branch:{branch}")]
        values = [order, after, "+inf" if upto is None else upto, limit]
        reply: Any = await self.ask(lambda: self._script(scripts.PAGE)(keys=keys, args=values))  # type: ignore[arg-type, misc, unused-ignore]
        generation, *flat = reply
        return generation, [(int(flat[n]), flat[n + 1]) for n in range(0, len(flat), 2)]

    async def pages(self, digest: str, branch: int) -> AsyncIterator[list[Row]]:
        """A branch's own messages, a page at a time."""
        after = 0
        while True:
            _, found = await self.page(digest, branch, after, None, PAGE, "oldest")
            yield rows_in(found)
            if len(found) < PAGE:
                return
            after = found[-1][0]


def in_pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    """The fields of a hash, as a script returns them."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def rows_in(found: Sequence[tuple[int, bytes]]) -> list[Row]:
    """The rows in lines; `verify` tells of those that can't be read."""
    return [row_of(row) for _, line in found if (row := parsed(line)) is not None]


def checked(reply: list[bytes], arguments: Sequence[Any] = ()) -> list[bytes]:
    """What is behind the "ok" of a script's reply."""
    what, *values = reply
    if what == b"ok":
        return values
    if what == b"conflict":
        expected = next(value for value in arguments if isinstance(value, Expected))
        raise conflict(int(expected), int(values[0]))
    if what == b"duplicate":
        raise DuplicateIds([id.decode() for id in values])
    raise NotFound(_MISSING[what])


_MISSING = {b"session": NO_SESSION, b"branch": NO_BRANCH, b"message": NO_MESSAGE}


class Expected(str):
    """A version that a script is to expect; empty where any will do."""

    __slots__ = ()

    @classmethod
    def of(cls, version: int | None) -> Expected:
        """As a script takes it."""
        return cls("" if version is None else version)
