"""Identical requests at the same time: one asks, the others wait for its answer."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum

from dragoman.gateway.caching.entries import Entry

_MAX_FAILURES = 2
"""After so many, those who wait ask at once: one after the other, they would wait for ever."""


class Turn(Enum):
    """What one who waited does in place of giving an answer again."""

    LEAD = "lead"
    """Ask, for those who still wait as well."""
    ALONE = "alone"
    """Ask for oneself."""


Outcome = Entry | Turn


class Flights:
    """The requests that are being asked, by their keys."""

    def __init__(self) -> None:
        self._flying: dict[bytes, Flight] = {}

    def __len__(self) -> int:
        return len(self._flying)

    def board(self, key: bytes) -> tuple[Flight, bool]:
        """The flight of a request, and whether it is one's own to lead."""
        found = self._flying.get(key)
        if found is not None:
            return found, False
        made = self._flying[key] = Flight(self, key)
        return made, True

    def remove(self, flight: Flight) -> None:
        """It is over: who comes now begins another."""
        if self._flying.get(flight.key) is flight:
            del self._flying[flight.key]


class Flight:
    """One request that is being asked, and those who wait for the same."""

    def __init__(self, flights: Flights, key: bytes) -> None:
        self.key = key
        self._flights = flights
        self._waiting: deque[asyncio.Future[Outcome]] = deque()
        self._failures = 0

    async def join(self, seconds: float) -> Outcome:
        """Wait for what the leader gets, or for one's turn to lead."""
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
        """Everybody gets the answer, or asks alone where it is none to be given twice."""
        self._flights.remove(self)
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(outcome)

    def leave(self) -> None:
        """The leader's client has left: the next one leads."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(Turn.LEAD)
                return
        self._flights.remove(self)

    def fail(self) -> None:
        """The leader got no answer: the next one tries, but not all of them in turn."""
        self._failures += 1
        if self._failures > _MAX_FAILURES:
            self.land(Turn.ALONE)
        else:
            self.leave()
