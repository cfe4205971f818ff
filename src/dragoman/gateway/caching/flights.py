"""Coalesces concurrent identical requests: one is sent upstream, the others wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum

from dragoman.gateway.caching.entries import Entry

_MAX_FAILURES = 2
"""After this many failures, all waiting requests are sent at once instead of one by one."""


class Turn(Enum):
    """What a waiting request does if there is no response to reuse."""

    LEAD = "lead"
    """Send the request, also for those still waiting."""
    ALONE = "alone"
    """Send the request without the cache."""


Outcome = Entry | Turn


class Flights:
    """The requests in flight, by cache key."""

    def __init__(self) -> None:
        self._flying: dict[bytes, Flight] = {}

    def __len__(self) -> int:
        return len(self._flying)

    def board(self, key: bytes) -> tuple[Flight, bool]:
        """Return the flight for a key, and whether the caller leads it."""
        found = self._flying.get(key)
        if found is not None:
            return found, False
        made = self._flying[key] = Flight(self, key)
        return made, True

    def remove(self, flight: Flight) -> None:
        """Remove a finished flight: the next request starts a new one."""
        if self._flying.get(flight.key) is flight:
            del self._flying[flight.key]


class Flight:
    """A request in flight, and the identical ones that wait for it."""

    def __init__(self, flights: Flights, key: bytes) -> None:
        self.key = key
        self._flights = flights
        self._waiting: deque[asyncio.Future[Outcome]] = deque()
        self._failures = 0

    async def join(self, seconds: float) -> Outcome:
        """Wait for the leader's response, or until this request becomes the leader."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await asyncio.wait({future}, timeout=seconds)
        except asyncio.CancelledError:
            if future.done() and future.result() is Turn.LEAD:
                self.leave()
            future.cancel()
            raise
        if future.done():
            return future.result()
        future.cancel()
        return Turn.ALONE

    def land(self, outcome: Outcome) -> None:
        """Give all waiting requests the outcome: the response, or to proceed alone."""
        self._flights.remove(self)
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(outcome)

    def leave(self) -> None:
        """Make the next waiting request the leader: the leader's client disconnected."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(Turn.LEAD)
                return
        self._flights.remove(self)

    def fail(self) -> None:
        """The leader failed: let the next one try, or all at once after several failures."""
        self._failures += 1
        if self._failures > _MAX_FAILURES:
            self.land(Turn.ALONE)
        else:
            self.leave()
