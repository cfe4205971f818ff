"""Queries on the traffic database: a page of requests, one request, sums by route."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import NotFound
from dragoman.gateway.page.traffic_store import COLUMNS, NAMED, seconds_of

# --- queries

_SHOWN = tuple(name for name in COLUMNS if name not in {"bin", "sent"})
_SELECT = f"SELECT id, {', '.join(_SHOWN)} FROM requests"  # noqa: S608 - names of ours
_FLAGS = frozenset({"passes", "stream", "left"})
STATUSES = {
    "ok": "status < 400 AND error IS NULL AND NOT left",
    "error": "(status >= 400 OR error IS NOT NULL) AND NOT left",
    "left": "left",
}
"""The SQL condition of each status filter."""
FAILED = f"sum({STATUSES['error']})"
"""The SQL expression of the number of failed requests."""
_MAX_NAMES = 200
_SLACK = 15.0  # seconds by which workers may write out of order
Where = tuple[list[str], list[Any]]
"""SQL conditions and their values."""


def page(
    connection: sqlite3.Connection, where: Where, limit: int, since: float | None = None
) -> list[dict[str, Any]]:
    """Returns the latest matching requests."""
    conditions, values = where
    if since is not None:
        conditions = [*conditions, "id >= ?", "time >= ?"]
        values = [*values, first_since(connection, since), since]
    matching = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = connection.execute(f"{_SELECT}{matching} ORDER BY id DESC LIMIT ?", [*values, limit])
    return [_shown(row) for row in rows]


def after(connection: sqlite3.Connection, last: int, limit: int) -> list[dict[str, Any]]:
    """Returns the requests with an id above `last`, oldest first."""
    rows = connection.execute(f"{_SELECT} WHERE id > ? ORDER BY id LIMIT ?", (last, limit))
    return [_shown(row) for row in rows]


def newest(connection: sqlite3.Connection) -> int:
    """Returns the id of the latest request; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM requests").fetchone()[0])


def facets(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Returns the known names of each kind, including those of deleted requests."""
    found: dict[str, list[str]] = {}
    for kind in NAMED:
        rows = connection.execute(
            "SELECT name FROM names WHERE kind = ? ORDER BY name LIMIT ?", (kind, _MAX_NAMES)
        )
        found[f"{kind}s"] = [name for (name,) in rows]
    return found


def first_since(connection: sqlite3.Connection, since: float) -> int:
    """Returns an id below which all requests are older: ids are nearly in order of time."""
    low, high = connection.execute("SELECT min(id), max(id) FROM requests").fetchone()
    if low is None:
        return 0
    while low < high:
        middle = (low + high) // 2
        row = connection.execute("SELECT time FROM requests WHERE id >= ? ORDER BY id LIMIT 1",
                                 (middle,)).fetchone()  # fmt: skip
        if row[0] < since - _SLACK:
            low = middle + 1
        else:
            high = middle
    return int(low)


def one(connection: sqlite3.Connection, id: int) -> dict[str, Any]:
    """Returns one request with its path through the layers."""
    row = connection.execute(f"{_SELECT} WHERE id = ?", (id,)).fetchone()
    if row is None:
        msg = "there is no such request; it may have been deleted"
        raise NotFound(msg)
    found = _shown(row)
    detail = connection.execute("SELECT detail FROM details WHERE id = ?", (id,)).fetchone()
    told = msgspec.json.decode(detail[0]) if detail else {}
    found["path"] = _path(found, told)
    found["lost"], found["repaired"] = told.get("losses", []), told.get("repairs", [])
    bodies = connection.execute("SELECT request, answer FROM bodies WHERE id = ?", (id,)).fetchone()
    for name, body in zip(("request_body", "answer_body"), bodies or (), strict=False):
        if body is not None:
            found[name] = body.decode("utf-8", "replace")
    return found


def _shown(row: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": str(row[0])}
    for name, value in zip(_SHOWN, row[1:], strict=True):
        found[name] = bool(value) if name in _FLAGS else value
    nanos = found.pop("nanos")
    found["cost"] = None if nanos is None else nanos / 1e9
    return found


# --- the path of a request

_LAYERS = (
    ("received", "gateway", "request received"),
    ("routed", "router", "route selected"),
    ("translated", "wire", "request encoded for the provider"),
    ("heard", "provider", "provider started to respond"),
)


def _path(found: Mapping[str, Any], told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the steps in order of time, each with the seconds since the previous one."""
    times = dict(told.get("steps", ()))
    steps = [(times[name], layer, what, _detail_of(name, found))
             for name, layer, what in _LAYERS if name in times]  # fmt: skip
    tried = told.get("tried", ())
    if len(tried) > 1 or any(error for *_, error in tried):
        steps += [(at, "upstream", f"sent to {provider}", error or f"model {model or 'unchanged'}")
                  for provider, model, at, error in tried]  # fmt: skip
    if found["first_byte"] is not None:
        steps.append((found["first_byte"], "front", "response started", found["front"]))
    ending = "aborted by the client" if found["left"] else "done"
    steps.append((found["seconds"], "gateway", ending, found["error"] or str(found["status"])))
    before, shown = 0.0, list[dict[str, Any]]()
    for at, layer, what, detail in sorted(steps, key=lambda step: step[0]):
        shown.append({"layer": layer, "what": what, "at": at, "seconds": max(0.0, at - before)})
        if detail:
            shown[-1]["detail"] = detail
        before = at
    return shown


def _detail_of(name: str, found: Mapping[str, Any]) -> str | None:
    if name == "routed":
        return str(found["route"])
    if name == "translated":
        return "passed through unchanged" if found["passes"] else (
            f"{found['losses']} losses, {found['repairs']} repairs")  # fmt: skip
    return f"{found['provider']} {found['model'] or ''}".strip() if name == "heard" else None


# --- sums


def percentile(bins: Mapping[int, int], share: float) -> float | None:
    """Returns the duration that a share of the requests did not exceed; None if there are none."""
    wanted, seen = share * sum(bins.values()), 0
    for number in sorted(bins):
        seen += bins[number]
        if seen >= wanted:
            return seconds_of(number)
    return None


def by_route(connection: sqlite3.Connection, since: float) -> dict[str, dict[str, Any]]:
    """Returns requests, errors, fallbacks and the median duration of each route."""
    rows = connection.execute(
        f"SELECT route, bin, count(*), {FAILED}, sum(attempts > 1) FROM requests"  # noqa: S608 - names of ours
        " WHERE id >= ? AND time >= ? AND route IS NOT NULL GROUP BY 1, 2",
        (first_since(connection, since), since),
    )
    bins: dict[str, dict[int, int]] = {}
    found: dict[str, dict[str, Any]] = {}
    for route, number, requests, errors, fallbacks in rows:
        bins.setdefault(route, {})[number] = requests
        sums = found.setdefault(route, {"requests": 0, "errors": 0, "fallbacks": 0})
        sums["requests"] += requests
        sums["errors"] += errors
        sums["fallbacks"] += fallbacks
    for route, sums in found.items():
        sums["p50"] = percentile(bins[route], 0.5)
    return found


# --- time series, kept in memory and continued with the new requests
#
# Summing up a hundred thousand requests takes a tenth of a second and more. A chart that is shown
# is asked for every few seconds, so its sums are kept, and only requests recorded since are
# added.

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
