"""When to try again, and after how long."""

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
    StreamInterrupted,
)

T = TypeVar("T")

_DOUBLINGS = 30  # more would overflow in the end


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often to try, and how long to wait in between.

    >>> Retries(attempts=1).wait(1, ConnectError("gone")) is None
    True
    """

    attempts: int = 3
    """In all; 1: never again."""
    first: float = 0.5
    """Seconds before the second attempt; doubled each time, and shortened by chance."""
    most: float = 8.0
    """The longest wait that we choose ourselves."""
    most_asked: float = 60.0
    """The longest `Retry-After` that is obeyed; a server that asks for more is not waited for."""
    interrupted: bool = False
    """Whether a stream that broke off after its first event is asked for anew, from the start."""

    def __post_init__(self) -> None:
        numbers = (self.first, self.most, self.most_asked)
        if type(self.attempts) is not int or not all(isinstance(n, (int, float)) for n in numbers):
            msg = "Retries takes a whole number of attempts, and waits in seconds"
            raise InvalidInputError(msg)
        if self.attempts < 1 or not 0 <= self.first <= self.most < inf or not self.most_asked >= 0:
            msg = "Retries needs at least one attempt, and waits that are not negative"
            raise InvalidInputError(msg)

    def wait(self, attempt: int, error: BaseException) -> float | None:
        """Seconds to wait after the attempt of that number failed so; None: give up."""
        if attempt >= self.attempts or not is_passing(error):
            return None
        asked: float | None = getattr(error, "retry_after", None)
        if asked:  # "at once" is no advice for somebody who has just been turned away
            return asked if asked <= self.most_asked else None
        longest = min(self.first * 2.0 ** min(attempt - 1, _DOUBLINGS), self.most)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads the load, no more


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, ProviderError) and error.partial is not None:
        return False  # W112: the model has answered, badly; what to tell it, the caller knows
    if isinstance(error, (ProviderError, ConnectError)):
        # By its status (408, 409, 429, 5xx), unless the provider says otherwise: an empty account
        # is a 429, too, and a conversation that is too long a 502 at some gateways (G6). A server
        # that can't be reached may be in a moment; one that we don't trust will not be trusted.
        return error.retryable
    return isinstance(error, (StreamInterrupted, errors.TimeoutError))


async def repeated(
    attempt: Callable[[], Awaitable[T]],
    retries: Retries,
    sleep: Callable[[float], Awaitable[None]],
) -> T:
    """What an attempt returns, after as many as it takes and are allowed."""
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
