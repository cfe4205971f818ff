"""Runs of deltas within the events of one read: their texts are known, and need not be collected.

A template creates many deltas at once, which differ in their texts only. An encoder that is given
the same list of events can then write the texts without looking at each event again.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from dragoman.model.events import Event


class Run(NamedTuple):
    """Consecutive events that differ in their texts only; none is empty."""

    start: int
    """The index of the first one in the list."""
    events: list[Event]
    texts: list[str]


_start_of = attrgetter("start")


class EventList(list[Event]):
    """The events of one read, with the runs in it. It may be changed: see `texts_at`."""

    __slots__ = ("_runs",)

    def __init__(self, events: list[Event], runs: list[Run]) -> None:
        super().__init__(events)
        self._runs = runs

    def texts_at(self, place: int) -> list[str]:
        """The texts of the events from there on, if they belong to a run; empty otherwise."""
        number = bisect_right(self._runs, place, key=_start_of) - 1
        if number < 0:
            return []
        start, events, texts = self._runs[number]
        if place != start:
            events, texts = events[place - start :], texts[place - start :]
        # The list may have been changed. Comparing identical objects is fast.
        return texts if self[place : place + len(events)] == events else []
