"""Retries with exponential backoff and jitter."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

import msgspec

from dragoman import errors
from dragoman.errors import (
    ConnectError,
    DragomanError,
    InvalidInputError,
    ProviderError,
    ResponseTooLarge,
    StreamInterrupted,
    StreamSilent,
)

T = TypeVar("T")

_DOUBLINGS = 30  # more would overflow eventually


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often to retry, and how long to wait in between.

    >>> Retries(attempts=1).wait(1, ConnectError("gone")) is None
    True
    """

    attempts: int = 3
    """Maximum attempts in total; 1: no retries."""
    initial_delay: float = 0.5
    """Seconds before the second attempt; doubled each time, with jitter."""
    max_delay: float = 8.0
    """Maximum wait, unless the server requests one."""
    max_retry_after: float = 60.0
    """Maximum `Retry-After` to honour; if the server asks for more, there is no retry."""
    interrupted: bool = False
    """Whether to restart a stream that was interrupted after its first event."""

    def __post_init__(self) -> None:
        numbers = (self.initial_delay, self.max_delay, self.max_retry_after)
        if type(self.attempts) is not int or not all(isinstance(n, (int, float)) for n in numbers):
            msg = "Retries needs an integer number of attempts, and waits in seconds"
            raise InvalidInputError(msg)
        if (
            self.attempts < 1
            or not 0 <= self.initial_delay <= self.max_delay < inf
            or not self.max_retry_after >= 0
        ):
            msg = "Retries needs at least one attempt, and non-negative waits"
            raise InvalidInputError(msg)

    def wait(self, attempt: int, error: BaseException) -> float | None:
        """Seconds to wait after a failed attempt; None: give up."""
        if attempt >= self.attempts or not is_passing(error):
            return None
        asked: float | None = getattr(error, "retry_after", None)
        if asked:  # a wait of 0 is ignored: the request has just been rejected
            return asked if asked <= self.max_retry_after else None
        longest = min(self.initial_delay * 2.0 ** min(attempt - 1, _DOUBLINGS), self.max_delay)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads the load, no more


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, ProviderError) and error.partial is not None:
        return False  # W112: the model has answered, badly; the caller decides how to proceed
    if isinstance(error, (ProviderError, ConnectError)):
        # By its status (408, 409, 429, 5xx), unless the provider says otherwise: an empty account
        # is a 429, too, and a conversation that is too long a 502 at some gateways (G6). An
        # unreachable server may become reachable; an untrusted one stays untrusted.
        return error.retryable
    if isinstance(error, (ResponseTooLarge, StreamSilent)):
        return False  # the same would happen again
    return isinstance(error, (StreamInterrupted, errors.TimeoutError))


async def repeated(
    attempt: Callable[[], Awaitable[T]],
    retries: Retries,
    sleep: Callable[[float], Awaitable[None]],
) -> T:
    """The result of an attempt, after as many as needed and allowed."""
    number = 0
    while True:
        number += 1
        try:
            return await attempt()
        except DragomanError as error:
            wait = retries.wait(number, error)
            if wait is None:
                raise
        await sleep(wait)
