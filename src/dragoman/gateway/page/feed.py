"""The events of a run: kept for readers that come later, and passed on to those that are there.

Readers come and go at any time; each gets all events from the first one. A run never waits for a
reader: a slow one receives the text in larger pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

Event = dict[str, Any]


class Feed:
    """The events of one run, in order. Deltas of one part in a row are one event that grows."""

    def __init__(self) -> None:
        self._events: list[tuple[Event, list[str]]] = []
        """Each event with the pieces of its text; only deltas have any."""
        self._is_over = False
        self._changed = asyncio.Event()

    def add(self, event: Event) -> None:
        """Adds an event."""
        is_delta = event["type"] == "delta"
        last, pieces = self._events[-1] if self._events else ({}, [])
        if is_delta and pieces and last["index"] == event["index"]:
            pieces.append(event["text"])
        else:
            self._events.append((event, [event["text"]] if is_delta else []))
        self._wake()

    def end(self) -> None:
        """Ends the feed: readers get what is left, and then no more."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, pause: float) -> AsyncIterator[Event | None]:
        """Yields all events from the first one; None after each `pause` seconds without one."""
        place = _Place()
        while True:
            changed, is_over = self._changed, self._is_over
            for event in self._after(place):
                yield event
                changed, is_over = self._changed, self._is_over
            if is_over:
                return
            try:
                async with asyncio.timeout(pause):
                    await changed.wait()
            except TimeoutError:
                yield None

    def _after(self, place: _Place) -> Iterator[Event]:
        """Yields what a reader at this place has not had yet; the last delta may still grow."""
        while place.event < len(self._events):
            event, pieces = self._events[place.event]
            if len(pieces) > place.piece:
                text = "".join(pieces[place.piece :])
                place.piece = len(pieces)
                yield event | {"text": text}
                continue
            if not pieces:
                yield event
            elif place.event == len(self._events) - 1:
                return
            place.event, place.piece = place.event + 1, 0


class _Place:
    """Where a reader is: an event, and how many pieces of its text were passed on."""

    __slots__ = ("event", "piece")

    def __init__(self) -> None:
        self.event = self.piece = 0
