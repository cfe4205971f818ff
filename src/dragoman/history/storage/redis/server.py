"""Calls the server: runs scripts, reads pages, retries, and translates errors."""

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
        from redis.exceptions import RedisError
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
        except RedisError as error:
            raised, is_lost, is_late = explanation(error, self.name), False, False
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

    async def _afresh(self, pause: float) -> None:
        """Waits, and drops all idle connections: whatever broke one broke them all."""
        with suppress(Exception):  # they are gone in any case
            await self.client.connection_pool.disconnect(inuse_connections=False)
        await asyncio.sleep(pause)

    async def run(self, script: str, identity: SessionIdentity, *arguments: Any) -> list[bytes]:
        """Runs a writing script; returns what follows its "ok", and raises otherwise.

        If its reply is lost, it is sent again: the server recognises it by its token.
        """
        reply = await self.ask(self.prepared(script, identity, token_hex(8), *arguments))
        return checked(reply, identity.digest, arguments)

    def prepared(
        self, script: str, identity: SessionIdentity, token: str, *arguments: Any
    ) -> Callable[[], Awaitable[list[bytes]]]:
        """A repeatable call of a writing script."""
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
        """The session, or `None`."""
        fields = await self.told(scripts.HEAD, digest)
        return session_of(in_pairs(fields), digest) if fields else None

    async def told(self, script: str, digest: str, *arguments: Any) -> Any:
        """Runs a reading script."""
        keys = self.keys.read(digest)
        return await self.ask(lambda: self._script(script)(keys=keys, args=arguments))  # type: ignore[arg-type, return-value, unused-ignore]

    async def lines_by_id(self, digest: str, ids: Sequence[str]) -> list[tuple[bytes, bytes]]:
        """The positions and lines of these messages; empty for missing ones."""
        flat: Any = await self.told(scripts.BY_ID, digest, *ids)
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def page(
        self, digest: str, branch: int, low: str, high: str, limit: int, order: str
    ) -> tuple[bytes, list[Found]]:
        """Some lines of a branch above `low` and up to `high`, and the session's generation."""
        keys = [*self.keys.read(digest), self.keys.of(digest, f"branch:{branch}")]
        values = [order, low, high, limit]
        reply: Any = await self.ask(lambda: self._script(scripts.PAGE)(keys=keys, args=values))  # type: ignore[arg-type, misc, unused-ignore]
        generation, *flat = reply
        return generation, list(map(Found, flat[::2], flat[1::2]))

    async def pages(self, digest: str, branch: int) -> AsyncIterator[list[Row]]:
        """A branch's own messages, page by page."""
        low = "0"
        while True:
            _, found = await self.page(digest, branch, low, HIGHEST, PAGE, "oldest")
            yield rows_in(found, branch)
            if len(found) < PAGE:
                return
            low = found[-1].place


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


def rows_in(found: Sequence[Found], branch: int) -> list[Row]:
    """The rows in lines; unreadable ones are placeholders."""
    return [row_at(each.number, branch, each.line) for each in found]


def checked(reply: list[bytes], digest: str, arguments: Sequence[Any] = ()) -> list[bytes]:
    """Checks a script's reply; returns what follows the "ok"."""
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
    """The version that a script should expect; empty for any."""

    __slots__ = ()

    @classmethod
    def of(cls, version: int | None) -> Expected:
        """The form that a script expects."""
        return cls("" if version is None else version)


def seal_argument(seal: Seal) -> bytes:
    """A seal as a script argument: empty to keep it, "-" for none, or "+" and the seal."""
    if seal is UNSET:
        return b""
    return b"-" if seal is None else b"+" + seal
