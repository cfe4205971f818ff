"""The transport protocol: sends a request, and returns the reply as bytes."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import (
    InvalidInputError,
    ResponseTooLarge,
    TimeoutError,  # noqa: A004 - ours, which is the builtin's as well
)
from dragoman.model.frozen import EMPTY
from dragoman.model.value import expect_number

T = TypeVar("T")
_DEFAULT_TOTAL = 1800.0
ATTEMPT_LIMIT = "the limit for one attempt"
MIN_UPLOAD_RATE = 50_000
"""Bytes per second of the slowest upload to expect."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts in seconds; None: unlimited."""

    connect: float | None = 10.0
    """For establishing a connection."""
    first_byte: float | None = 300.0
    """For the status and headers of the reply, after the request was sent."""
    between_chunks: float | None = 120.0
    """Between chunks of a body."""
    between_events: float | None = 900.0
    """Between events of a stream. Comments and blank lines, with which servers keep connections
    open, are chunks but no events."""
    attempt: float | None = 900.0
    """For one attempt at a whole response; not for streams, which the two above limit."""
    total: float | UnsetType | None = UNSET
    """For the whole operation, including retries and the waits between them; by default half an
    hour for whole responses, and unlimited for streams."""

    def __post_init__(self) -> None:
        total = None if self.total is UNSET else self.total
        for seconds in (self.connect, self.first_byte, self.between_chunks, self.between_events,
                        self.attempt, total):  # fmt: skip
            expect_number(seconds, "a timeout")
            if seconds is not None and not seconds > 0:
                msg = "a timeout must be a positive number of seconds or None"
                raise InvalidInputError(msg)

    @property
    def answer_total(self) -> float | None:
        """The total for a whole response."""
        return _DEFAULT_TOTAL if isinstance(self.total, UnsetType) else self.total

    @property
    def stream_total(self) -> float | None:
        """The total for a stream."""
        return None if isinstance(self.total, UnsetType) else self.total

    def head(self, body: int) -> float | None:
        """For connecting, sending a body of that many bytes, and receiving status and headers."""
        if self.first_byte is None or self.connect is None:
            return None
        return self.connect + self.first_byte + body / MIN_UPLOAD_RATE


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = EMPTY
    body: bytes | None = None
    pieces: AsyncIterator[bytes] | None = None
    """A body sent in pieces, instead of `body`: it can be sent only once."""

    def __repr__(self) -> str:
        size = 0 if self.body is None else len(self.body)
        return f"HttpRequest({self.method}, {size} bytes)"  # headers contain keys, bodies content


class Reply(Protocol):
    """A reply whose status and headers have arrived, and whose body is arriving."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; lookup is case-insensitive."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives.

        Raises `StreamInterrupted` if it breaks off, and `TimeoutError` if it stalls.
        """
        ...

    async def close(self) -> None:
        """Close it; if the body has not ended, its connection is closed."""
        ...


class Transport(Protocol):
    """Sends requests. Raises `ConnectError`, `TimeoutError` and `StreamInterrupted`."""

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """Send a request; returns when the status and headers have arrived."""
        ...

    async def close(self) -> None:
        """Close all connections. Calling it again has no effect."""
        ...


def read_body(reply: Reply, most: int, seconds: float | None) -> Coroutine[Any, Any, bytes]:
    """Read a whole body of at most that many bytes, in that many seconds (`Timeouts.attempt`)."""
    return within(seconds, _read(reply, most), ATTEMPT_LIMIT)


async def _read(reply: Reply, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in reply.chunks():
        size += len(piece)
        if size > most:
            raise too_much(most)
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_much(most: int) -> ResponseTooLarge:
    """The error for a body that is too large."""
    msg = f"the response exceeds {most:,} bytes; raise max_bytes of the client to allow it"
    return ResponseTooLarge(msg)


async def within(
    seconds: float | None, work: Coroutine[Any, Any, T], why: str = "the total limit"
) -> T:
    """Await the work; raises a timeout error after that many seconds."""
    if seconds is None:
        return await work
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await work
    except builtins.TimeoutError:
        if not timer.expired():  # the work's own timeout
            raise
    msg = f"the response was not complete after {seconds:g} seconds, {why}"
    raise TimeoutError(msg)
