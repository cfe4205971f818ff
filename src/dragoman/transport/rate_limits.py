"""Client-side rate limits: concurrent requests, and requests per minute."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from time import monotonic
from weakref import WeakKeyDictionary

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.transport.protocol import Reply

_MINUTE = 60.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Rate limits for a provider. None: unlimited."""

    concurrent: int | None = None
    """Maximum concurrent requests."""
    per_minute: int | None = None
    """Maximum requests started within any minute."""

    def __post_init__(self) -> None:
        for number in (self.concurrent, self.per_minute):
            if number is not None and (type(number) is not int or number < 1):
                msg = "a limit must be a positive integer"
                raise InvalidInputError(msg)


NO_LIMITS = Limits()


class Gate:
    """Enforces one provider's limits on one event loop."""

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._places = None if limits.concurrent is None else asyncio.Semaphore(limits.concurrent)
        self._per_minute = limits.per_minute
        self._begun: deque[float] = deque()
        self._turn = asyncio.Lock()
        self._clock, self._sleep = clock, sleep

    async def enter(self) -> None:
        """Wait until another request may be sent; a cancelled waiter takes no slot."""
        if self._places is not None:
            await self._places.acquire()
        try:
            if self._per_minute is not None:
                await self._wait(self._per_minute)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """The request has ended."""
        if self._places is not None:
            self._places.release()

    async def _wait(self, most: int) -> None:
        async with self._turn:  # first come, first served
            while len(self._begun) >= most:
                left = self._begun[0] + _MINUTE - self._clock()
                if left > 0:
                    await self._sleep(left)
                else:
                    self._begun.popleft()
            self._begun.append(self._clock())


class GatedReply:
    """A reply that holds its slot until it is closed."""

    def __init__(self, reply: Reply, gate: Gate) -> None:
        self._reply = reply
        self._gate: Gate | None = gate

    @property
    def status(self) -> int:
        """The status code."""
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._reply.headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        return self._reply.chunks()

    async def close(self) -> None:
        """Close it, and free the slot."""
        try:
            await self._reply.close()
        finally:
            self._leave()

    def _leave(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.leave()

    def __del__(self) -> None:
        self._leave()  # the stream was dropped before its end


_Gates = dict[tuple[str, Limits], Gate]
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gates] = WeakKeyDictionary()


def gate_for(provider: str, limits: Limits) -> Gate | None:
    """The gate to pass before a request: all clients of a provider with these limits share it."""
    if limits == NO_LIMITS:
        return None
    loop = asyncio.get_running_loop()
    own = _gates.get(loop)
    if own is None:
        _forget_ended_loops()
        own = _gates[loop] = {}
    gate = own.get((provider, limits))
    if gate is None:
        gate = own[provider, limits] = Gate(limits)
    return gate


def _forget_ended_loops() -> None:
    # A gate that was waited at refers to its loop, and so keeps it in the dictionary.
    for loop in [loop for loop in list(_gates) if loop.is_closed()]:
        _gates.pop(loop, None)
