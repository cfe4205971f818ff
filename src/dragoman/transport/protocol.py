"""What a transport does: carry a request there and the reply back, byte by byte."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import (
    InvalidInputError,
    TimeoutError,  # noqa: A004 - ours, which is the builtin's as well
    TransportError,
)
from dragoman.model.frozen import EMPTY
from dragoman.model.value import expect_number

T = TypeVar("T")
_TOTAL = 1800.0
SLOWEST_UPLOAD = 50_000
"""Bytes per second of the slowest upload that timeouts allow for."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds; None: for ever."""

    connect: float | None = 10.0
    """For a connection."""
    first_byte: float | None = 300.0
    """For the head of the reply, from when the request is on its way."""
    between: float | None = 120.0
    """For the next bytes of a body that has begun."""
    attempt: float | None = 900.0
    """For one attempt at a whole answer. Streams have none: `between` ends those that stall."""
    total: float | UnsetType | None = UNSET
    """For everything together, further attempts and the waits between them included; unless it is
    given, half an hour for whole answers, and none for streams."""

    def __post_init__(self) -> None:
        total = None if self.total is UNSET else self.total
        for seconds in (self.connect, self.first_byte, self.between, self.attempt, total):
            expect_number(seconds, "a timeout")
            if seconds is not None and not seconds > 0:
                msg = "a timeout is a number of seconds above zero, or None"
                raise InvalidInputError(msg)

    @property
    def answer_total(self) -> float | None:
        """For everything that it takes to have a whole answer."""
        return _TOTAL if isinstance(self.total, UnsetType) else self.total

    @property
    def stream_total(self) -> float | None:
        """For all of a stream."""
        return None if isinstance(self.total, UnsetType) else self.total

    def head(self, body: int) -> float | None:
        """For a connection, sending a body of that many bytes, and the head of the reply."""
        if self.first_byte is None or self.connect is None:
            return None
        return self.connect + self.first_byte + body / SLOWEST_UPLOAD


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it goes over the network."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = EMPTY
    body: bytes | None = None
    pieces: AsyncIterator[bytes] | None = None
    """A body that comes in pieces, in place of `body`: it can be sent once."""

    def __repr__(self) -> str:
        size = 0 if self.body is None else len(self.body)
        return f"HttpRequest({self.method}, {size} bytes)"  # headers hold keys, bodies content


class Reply(Protocol):
    """A reply that has begun: its head is here, its body comes."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are looked up whatever their case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes.

        Raises `StreamInterrupted` where it breaks off, and `TimeoutError` where it stalls.
        """
        ...

    async def close(self) -> None:
        """Let go of it; if the body has not ended, its connection is closed."""
        ...


class Transport(Protocol):
    """Carries requests. Raises `ConnectError`, `TimeoutError` and `StreamInterrupted`."""

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """Send a request; returns when the head of the reply is there."""
        ...

    async def close(self) -> None:
        """Close all connections. Calling it again does nothing."""
        ...


async def read_body(reply: Reply, most: int) -> bytes:
    """A whole body, of no more than that many bytes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in reply.chunks():
        size += len(piece)
        if size > most:
            raise too_much(most)
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_much(most: int) -> TransportError:
    """The error for a server that sends too much."""
    msg = f"the server sent more than {most:,} bytes; raise the client's max_bytes to allow it"
    return TransportError(msg, sent=True)


async def within(
    seconds: float | None, work: Coroutine[Any, Any, T], why: str = "the total that is allowed"
) -> T:
    """What the work returns, if it takes no longer than that."""
    if seconds is None:
        return await work
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await work
    except builtins.TimeoutError:
        if not timer.expired():  # the work's own
            raise
    msg = f"the answer was not complete after {seconds:g} seconds, {why}"
    raise TimeoutError(msg)
