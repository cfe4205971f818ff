"""The Traffic API: the latest requests, one request, time series, and a live stream."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic, time
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from dragoman.errors import InvalidRequest, Overloaded, StoreError
from dragoman.gateway.page import traffic_queries as queries
from dragoman.gateway.page.calls import PageCall
from dragoman.gateway.page.traffic_queries import Asked, Charts
from dragoman.gateway.page.traffic_store import NAMED, Traffic
from dragoman.gateway.state import Gateway

# --- new requests for watching pages: one query every 0.3 seconds serves them all

_PAUSE = 0.3  # seconds
_MAX_READERS = 64
_MAX_BATCH = 500
_MAX_QUEUED = 1000
_BUSY = 503


class Reader:
    """The queue of one watching page. When it is full, the oldest rows are dropped."""

    def __init__(self) -> None:
        self._rows: deque[dict[str, Any]] = deque(maxlen=_MAX_QUEUED)
        self._wanted = asyncio.Event()

    def put(self, rows: list[dict[str, Any]]) -> None:
        """Queues new requests."""
        self._rows.extend(rows)
        self._wanted.set()

    async def rows(self, seconds: float) -> list[dict[str, Any]]:
        """Returns the queued requests; waits up to `seconds` if there are none."""
        if not self._rows:
            try:
                async with asyncio.timeout(seconds):
                    await self._wanted.wait()
            except TimeoutError:
                return []
        self._wanted.clear()
        found = list(self._rows)
        self._rows.clear()
        return found


class Live:
    """Polls for new requests while at least one page is watching."""

    def __init__(self, store: Traffic) -> None:
        self._store = store
        self._readers: set[Reader] = set()
        self._polling: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def reader(self) -> AsyncGenerator[Reader]:
        """Registers a watching page until the block ends."""
        if len(self._readers) >= _MAX_READERS:
            msg = "too many pages are watching the traffic; try again later"
            raise Overloaded(msg, status=_BUSY, retry_after=5.0)
        made = Reader()
        self._readers.add(made)
        if self._polling is None or self._polling.done():
            last = await asyncio.to_thread(self._store.read, queries.newest)
            self._polling = asyncio.create_task(self._poll(last))
        try:
            yield made
        finally:
            self._readers.discard(made)
            if not self._readers and self._polling is not None:
                self._polling.cancel()
                self._polling = None

    async def _poll(self, last: int) -> None:
        while self._readers:
            await asyncio.sleep(_PAUSE)
            try:
                rows = await asyncio.to_thread(self._store.read, lambda at: _rows_since(at, last))  # noqa: B023 - it is awaited
            except StoreError:  # the file is busy or gone; the next poll may succeed
                continue
            if rows:
                last = int(rows[-1]["id"])
                for reader in tuple(self._readers):
                    reader.put(rows)


def _rows_since(connection: sqlite3.Connection, last: int) -> list[dict[str, Any]]:
    """Returns the requests after `last`; if there are too many, the latest of them."""
    newest = queries.newest(connection)
    if newest == last:
        return []
    return queries.after(connection, max(last, newest - _MAX_BATCH), _MAX_BATCH)


_live: WeakKeyDictionary[Gateway, Live] = WeakKeyDictionary()


def live_of(gateway: Gateway, store: Traffic) -> Live:
    """Returns the poller of a gateway."""
    found = _live.get(gateway)
    if found is None:
        found = _live[gateway] = Live(store)
    return found


# --- the API

T = TypeVar("T")
_DEFAULT_LIMIT, _MAX_LIMIT = 50, 500
_MAX_STEPS = 500
_DAY = 86_400
_MAX_NAME = 256
_MAX_DIGITS = 18
_NO_REQUEST = "there is no such request"
_BAD_CURSOR = "invalid cursor"
_BAD_STATUS = "`status` must be ok, error, left or a number"
_BAD_TIME = "`since` must be a Unix timestamp in seconds"
_FIRST_RANGE, _FIRST_STEP = 3600, 60  # seconds, of the chart that the view opens with
_KEEPALIVE = 15.0  # seconds between comments that keep a connection open


async def listed(call: PageCall) -> Any:
    """Returns a page of requests, latest first."""
    store = _store(call)
    limit = max(1, call.number("limit", _DEFAULT_LIMIT, _MAX_LIMIT))
    where, cursor = _where(call), call.query.get("cursor", "")
    since = _since(call)
    items = await _read(store, lambda at: queries.page(at, where, limit + 1, since))
    following = items[limit - 1]["id"] if len(items) > limit else None
    found: dict[str, Any] = {"items": items[:limit], "cursor": following}
    if not cursor:
        found["facets"] = await _read(store, queries.facets)
        found["dropped"] = store.dropped
    return found


async def shown(call: PageCall) -> Any:
    """Returns one request with its path through the layers, and its bodies if they are stored."""
    store, id = _store(call), call.names["id"]
    if not _is_number(id):
        raise InvalidRequest(_NO_REQUEST, status=404)
    return await _read(store, lambda at: queries.one(at, int(id)))


async def series(call: PageCall) -> Any:
    """Returns time series by model, key, route or front."""
    store, now = _store(call), time()
    step = max(1, call.number("step", 60, _DAY))
    since = min(max(_since(call) or now - 3600, now - step * (_MAX_STEPS - 1)), now)
    since -= since % step
    by = call.query.get("by", "model")
    if by not in NAMED:
        msg = f"`by` must be one of {', '.join(NAMED)}"
        raise InvalidRequest(msg, status=400)
    asked = Asked(since, step, int((now - since) / step) + 1, by)
    return {"steps": [since + step * place for place in range(asked.steps)], "step": step,
            "series": await _series(store, asked)}  # fmt: skip


async def prepare(store: Traffic) -> None:
    """Sums up what the Traffic view shows first."""
    now = time()
    since = now - _FIRST_RANGE
    since -= since % _FIRST_STEP
    await _series(store, Asked(since, _FIRST_STEP, int((now - since) / _FIRST_STEP) + 1, "model"))


async def live(call: PageCall) -> None:
    """Streams requests as they finish, on any worker."""
    watching = live_of(call.gateway, _store(call))
    await call.body()  # from here on, a disconnect is noticed
    async with watching.reader() as reader:
        await call.begin_events()
        last_sent = monotonic()
        while not call.gateway.is_draining:
            for row in await reader.rows(1.0):
                await call.event(row)
            if monotonic() - last_sent >= _KEEPALIVE:
                await call.keep_alive()
                last_sent = monotonic()
        await call.end_events()


def _store(call: PageCall) -> Traffic:
    store = call.gateway.traffic
    if store is None:
        msg = "request recording is off; set `traffic` in [server] to enable it"
        raise InvalidRequest(msg, status=404)
    return store


async def _read(store: Traffic, work: Callable[[sqlite3.Connection], T]) -> T:
    return await asyncio.to_thread(store.read, work)


_charts: WeakKeyDictionary[Traffic, Charts] = WeakKeyDictionary()


async def _series(store: Traffic, asked: Asked) -> list[dict[str, Any]]:
    charts = _charts.setdefault(store, Charts())
    return await asyncio.to_thread(store.sum_up, lambda at: charts.series(at, asked))


# --- filters


def _where(call: PageCall) -> queries.Where:
    conditions, values = list[str](), list[Any]()
    for name in NAMED:
        wanted = call.query.get(name, "")
        if wanted:
            conditions.append(f"{name} = ?")
            values.append(wanted[:_MAX_NAME].encode("utf-8", "replace").decode())
    cursor, status = call.query.get("cursor", ""), call.query.get("status")
    if cursor:
        if not _is_number(cursor):
            raise InvalidRequest(_BAD_CURSOR, status=400)
        conditions.append("id < ?")
        values.append(int(cursor))
    if status:
        _add_status(status, conditions, values)
    return conditions, values


def _add_status(status: str, conditions: list[str], values: list[Any]) -> None:
    if status in queries.STATUSES:
        conditions.append(queries.STATUSES[status])
    elif _is_number(status):
        conditions.append("status = ?")
        values.append(int(status))
    else:
        raise InvalidRequest(_BAD_STATUS, status=400)


def _since(call: PageCall) -> float | None:
    text = call.query.get("since", "")
    if not text:
        return None
    whole, _, fraction = text.partition(".")
    if not _is_number(whole) or (fraction and not _is_number(fraction)):
        raise InvalidRequest(_BAD_TIME, status=400)
    return float(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
