"""Queries on the traffic database: a page of requests, one request, sums by route."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.errors import NotFound
from dragoman.gateway.page.traffic_store import NAMED, seconds_of
from dragoman.gateway.page.traffic_tables import COLUMNS

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
