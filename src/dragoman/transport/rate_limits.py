"""How many requests go to a provider at once, and in a minute."""

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
    """What a provider is spared. None: nothing."""

    concurrent: int | None = None
    """Requests under way at once."""
    per_minute: int | None = None
    """Requests begun within any minute."""

    def __post_init__(self) -> None:
        for number in (self.concurrent, self.per_minute):
            if number is not None and (type(number) is not int or number < 1):
                msg = "a limit is a number of requests, one at least"
                raise InvalidInputError(msg)


NO_LIMITS = Limits()


class Gate:
    """One provider's limits, on one event loop."""

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
        """Wait until one more request may be made; whoever is cancelled here takes no place."""
        if self._places is not None:
            await self._places.acquire()
        try:
            if self._per_minute is not None:
                await self._wait(self._per_minute)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """The request is over."""
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
    """A reply that keeps its place behind a gate until it is closed."""

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
        """The body as it comes."""
        return self._reply.chunks()

    async def close(self) -> None:
        """Let go of it, and of the place."""
        try:
            await self._reply.close()
        finally:
            self._leave()

    def _leave(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.leave()

    def __del__(self) -> None:
        self._leave()  # somebody left a stream half way


_Gates = dict[tuple[str, Limits], Gate]
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gates] = WeakKeyDictionary()


def gate_for(provider: str, limits: Limits) -> Gate | None:
    """What to pass before a request: all clients of a provider with these limits share it."""
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
    # A gate that somebody waited at knows its loop, and so keeps it in the dictionary.
    for loop in [loop for loop in list(_gates) if loop.is_closed()]:
        _gates.pop(loop, None)
