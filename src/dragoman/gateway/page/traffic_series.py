"""Time series of the recorded requests, kept in memory and continued with the new ones.

Summing up a hundred thousand requests takes a tenth of a second and more. A chart that is shown is
asked for every few seconds, so its sums are kept, and only requests recorded since are added.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.gateway.page.traffic_queries import FAILED, first_since, newest, percentile
from dragoman.gateway.page.traffic_store import NAMED

OTHERS = "others"
_MAX_SERIES = 12
_MAX_KEPT = 8  # charts whose sums are kept
_MEASURES = ("requests", "errors", "tokens_in", "tokens_out")


class Asked(NamedTuple):
    """What a chart shows: its steps, and what its series are named by."""

    since: float
    """The start of the first step, a multiple of `step`."""
    step: int
    steps: int
    by: str


class Charts:
    """The sums of the charts asked for last. Not safe for threads."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], _Chart] = {}

    def series(self, connection: sqlite3.Connection, asked: Asked) -> list[dict[str, Any]]:
        """Returns a time series per name; the rarest names are combined into one."""
        chart = self._kept.pop((asked.step, asked.by), None)
        last = newest(connection)
        if chart is None or chart.since > asked.since or chart.last > last:
            chart = _Chart(asked, first_since(connection, asked.since) - 1)
        chart.read(connection, asked.since, last)
        self._kept[asked.step, asked.by] = chart  # the most recent one is last
        while len(self._kept) > _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return chart.shown(asked.steps)


class _Chart:
    """The sums of one chart, by name and step."""

    def __init__(self, asked: Asked, last: int) -> None:
        self.since, self.last = asked.since, last
        self._step = asked.step
        self._column = asked.by if asked.by in NAMED else "model"
        self._sums: dict[str | None, dict[int, _Sums]] = {}

    def read(self, connection: sqlite3.Connection, since: float, last: int) -> None:
        """Adds the requests recorded up to the one numbered `last`; drops earlier steps."""
        rows = connection.execute(
            f"SELECT CAST(time / ? AS INTEGER), {self._column}, bin, count(*), {FAILED},"  # noqa: S608 - names of ours
            " sum(tokens_in), sum(tokens_out), sum(nanos) FROM requests"
            " WHERE id > ? AND id <= ? AND time >= ? GROUP BY 1, 2, 3",
            (self._step, self.last, last, since),
        )
        for place, name, number, *counts in rows:
            self._sums.setdefault(name, {}).setdefault(place, _Sums()).add(number, counts)
        self.since, self.last = since, last
        for name, places in list(self._sums.items()):
            for place in [each for each in places if each < self._first]:
                del places[place]
            if not places:
                del self._sums[name]

    @property
    def _first(self) -> int:
        return round(self.since / self._step)

    def shown(self, steps: int) -> list[dict[str, Any]]:
        """Returns one series per name, the largest first."""
        within = range(self._first, self._first + steps)
        found = [
            (name, {place: places[place] for place in places if place in within})
            for name, places in self._sums.items()
        ]
        ordered = sorted(((name, places) for name, places in found if places), key=_size)
        shown = [(name or "none", places) for name, places in ordered[:_MAX_SERIES]]
        if len(ordered) > _MAX_SERIES:
            shown.append((OTHERS, _joined([places for _, places in ordered[_MAX_SERIES:]])))
        return [{"name": name, **_lists(places, within)} for name, places in shown]


def _size(series: tuple[str | None, dict[int, _Sums]]) -> tuple[int, str]:
    return -sum(each.counts[0] for each in series[1].values()), series[0] or ""


class _Sums:
    """The sums of one name at one step."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0, 0, 0]
        self.bins: dict[int, int] = {}
        """The number of requests by the bin of their duration."""

    def add(self, number: int, counts: Sequence[int | None]) -> None:
        """Adds the counts of one duration bin."""
        for index, count in enumerate(counts):
            self.counts[index] += count or 0
        self.bins[number] = self.bins.get(number, 0) + (counts[0] or 0)

    def join(self, other: _Sums) -> None:
        """Adds the sums of another name."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        for number, count in other.bins.items():
            self.bins[number] = self.bins.get(number, 0) + count


_NONE = _Sums()


def _joined(several: Sequence[Mapping[int, _Sums]]) -> dict[int, _Sums]:
    found: dict[int, _Sums] = {}
    for places in several:
        for place, sums in places.items():
            found.setdefault(place, _Sums()).join(sums)
    return found


def _lists(places: Mapping[int, _Sums], within: range) -> dict[str, list[Any]]:
    """Returns one list per measure, with a value for each step."""
    every = [places.get(place, _NONE) for place in within]
    found: dict[str, list[Any]] = {
        name: [each.counts[index] for each in every] for index, name in enumerate(_MEASURES)
    }
    found["cost"] = [each.counts[4] / 1e9 for each in every]
    found["p50"] = [percentile(each.bins, 0.5) for each in every]
    found["p95"] = [percentile(each.bins, 0.95) for each in every]
    return found
