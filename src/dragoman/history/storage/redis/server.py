"""What is asked of the server: scripts by name, reads in pages, errors in our words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from math import ceil
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import UNSET

from dragoman.errors import NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damaged
from dragoman.history.storage.protocol import (
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    DuplicateIds,
    Row,
    Seal,
    Session,
    conflict,
)
from dragoman.history.storage.redis import scripts
from dragoman.history.storage.redis.connection import explanation
from dragoman.history.storage.redis.fields import row_at, session_of
from dragoman.history.storage.redis.keys import Keys

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.commands.core import AsyncScript

T = TypeVar("T")
PAGE = 500
HIGHEST = str(1 << 53)
"""Above all numbers there are."""
_TRIES = (0.0, 0.1, 0.5, 2.0)  # seconds before each new connection, after one was lost


class Lost(StoreError):  # noqa: N818 - named as StoreError's others are
    """The connection broke: whether the command was run is not known."""

    def __init__(self, message: str, *, is_late: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late
        """Whether the server did not answer: waiting as long once more is enough."""


class Server:
    """An open connection, or rather a pool of them."""

    def __init__(self, client: Redis, keys: Keys, name: str) -> None:
        self.client = client
        self.keys = keys
        self.name = name
        self._scripts: dict[str, AsyncScript] = {}

    # --- asking

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer to something that may be asked again, where a connection was lost."""
        try:
            return await self.once(call)
        except Lost as error:
            is_late = error.is_late
        return await self.again(call, is_late=is_late)

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
            is_late = isinstance(error, (Late, TimeoutError))
        except RedisError as error:
            raised, is_lost, is_late = explanation(error, self.name), False, False
        raise Lost(str(raised), is_late=is_late) if is_lost else raised

    async def again(self, call: Callable[[], Awaitable[T]], *, is_late: bool = False) -> T:
        """The answer after a connection was lost: the server may need a moment."""
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

    async def _afresh(self, pause: float) -> None:
        """Wait, and use none of the connections that lie ready: what broke one broke them all."""
        with suppress(Exception):  # they are gone in any case
            await self.client.connection_pool.disconnect(inuse_connections=False)
        await asyncio.sleep(pause)

    async def run(self, script: str, identity: SessionIdentity, *arguments: Any) -> list[bytes]:
        """What a writing script returns behind its "ok"; raises for everything else.

        Where its answer was lost it is sent again: the server knows it by its token.
        """
        reply = await self.ask(self.prepared(script, identity, token_hex(8), *arguments))
        return checked(reply, identity.digest, arguments)

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
        return session_of(in_pairs(fields), digest) if fields else None

    async def told(self, script: str, digest: str, *arguments: Any) -> Any:
        """What a reading script returns."""
        keys = self.keys.read(digest)
        return await self.ask(lambda: self._script(script)(keys=keys, args=arguments))  # type: ignore[arg-type, return-value, unused-ignore]

    async def lines_by_id(self, digest: str, ids: Sequence[str]) -> list[tuple[bytes, bytes]]:
        """Where these messages are and their lines; empty for those that are not there."""
        flat: Any = await self.told(scripts.BY_ID, digest, *ids)
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def page(
        self, digest: str, branch: int, low: str, high: str, limit: int, order: str
    ) -> tuple[bytes, list[Found]]:
        """Some lines of a branch that stand above `low` up to `high`; the session's generation."""
        keys = [*self.keys.read(digest), self.keys.of(digest, f"branch:{branch}")]
        values = [order, low, high, limit]
        reply: Any = await self.ask(lambda: self._script(scripts.PAGE)(keys=keys, args=values))  # type: ignore[arg-type, misc, unused-ignore]
        generation, *flat = reply
        return generation, list(map(Found, flat[::2], flat[1::2]))

    async def pages(self, digest: str, branch: int) -> AsyncIterator[list[Row]]:
        """A branch's own messages, a page at a time."""
        low = "0"
        while True:
            _, found = await self.page(digest, branch, low, HIGHEST, PAGE, "oldest")
            yield rows_in(found, branch)
            if len(found) < PAGE:
                return
            low = found[-1].place


class Found(NamedTuple):
    """What stands on a branch: its number, or where it stands in spite of it, and its line."""

    seq: bytes
    line: bytes

    @property
    def place(self) -> str:
        """Where it stands: at its number, unless that was altered."""
        return self.seq.removeprefix(b"!").partition(b" ")[0].decode()

    @property
    def number(self) -> int:
        """Its number; where that was altered, the one of its place."""
        try:
            return int(self.seq)
        except ValueError:
            member = self.seq.partition(b" ")[2]
        is_number = member.isdigit() and len(member) < len(HIGHEST)
        return int(member) if is_number else ceil(float(self.place))


def in_pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    """The fields of a hash, as a script returns them."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def rows_in(found: Sequence[Found], branch: int) -> list[Row]:
    """The rows in lines; one that can't be read is a row that shows it."""
    return [row_at(each.number, branch, each.line) for each in found]


def checked(reply: list[bytes], digest: str, arguments: Sequence[Any] = ()) -> list[bytes]:
    """What is behind the "ok" of a script's reply."""
    what, *values = reply
    if what == b"ok":
        return values
    if what == b"damaged":
        raise damaged(digest)
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


def seal_argument(seal: Seal) -> bytes:
    """A seal as a script takes it: nothing where it stays, "-" for none, or "+" and the seal."""
    if seal is UNSET:
        return b""
    return b"-" if seal is None else b"+" + seal
