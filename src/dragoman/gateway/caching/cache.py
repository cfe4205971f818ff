"""Serves responses from the cache, and stores new ones in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from dragoman.gateway.caching.entries import CacheStore, Entry
from dragoman.gateway.caching.flights import Flight, Flights, Turn
from dragoman.gateway.caching.keys import is_stateless, key_of, route_digest
from dragoman.gateway.caching.memory import MemoryCache
from dragoman.gateway.caching.recording import Recording
from dragoman.model.usage import Usage
from dragoman.wire.lane.plain import Summary

if TYPE_CHECKING:
    from dragoman.gateway.config.routing import Route
    from dragoman.gateway.config.settings import GatewayConfig
    from dragoman.gateway.exchange import Exchange
    from dragoman.gateway.inbound import InboundRequest
    from dragoman.gateway.middleware import ExchangeFilters, Middleware

HEADER = "x-dragoman-cache"
_MAX_WAIT = 60.0
"""Seconds to wait for the response of an identical request, whose client may be slow."""
_MAX_ROUTES = 1024
Ask = Callable[[], Awaitable[None]]


class Cache:
    """The response cache of all routes with a `cache`. Created once; `apply` configures it."""

    def __init__(self) -> None:
        self._place: tuple[str | None, int] | None = None
        self._store: CacheStore = MemoryCache(0)
        self._former: list[CacheStore] = []
        self._flights = Flights()
        self._digests: dict[int, tuple[Route, bytes | None]] = {}  # by the route's identity
        self._middleware = ""

    def apply(self, config: GatewayConfig, middleware: Middleware | None) -> None:
        """Apply a configuration; cached responses of unchanged routes stay valid."""
        place = (config.server.cache, config.server.cache_size)
        if place != self._place:
            opened = _open_store(*place)  # first, because it may raise
            if isinstance(self._store, MemoryCache):
                self._store.clear()
            else:
                self._former.append(self._store)
            self._place, self._store = place, opened
        self._middleware = "" if middleware is None else middleware.digest
        self._digests = {}

    async def close(self) -> None:
        """Close connections."""
        for store in (*self._former, self._store):
            await store.close()

    async def answer(
        self, inbound: InboundRequest, exchange: Exchange, route: Route, ask: Ask,
        filters: ExchangeFilters | None = None,
    ) -> None:  # fmt: skip
        """Send the cached response to an identical request, or call `ask`."""
        key = self._key(inbound, exchange, route, filters)
        if key is None:
            await ask()
            return
        flight, leads = self._flights.board(key)
        found = Turn.LEAD if leads else await flight.join(_MAX_WAIT)
        if found is Turn.LEAD:
            await self._lead(flight, inbound, exchange, route, ask, filters)
        elif found is Turn.ALONE:
            inbound.call.more_headers[HEADER] = "miss"
            await ask()
        else:
            await _replay(found, inbound, exchange)

    async def _lead(
        self, flight: Flight, inbound: InboundRequest, exchange: Exchange, route: Route, ask: Ask,
        filters: ExchangeFilters | None,
    ) -> None:  # fmt: skip
        """Call `ask` for all waiting requests, unless the response is already cached."""
        made = None
        try:
            found = await self._store.find(flight.key)
            if found is None:
                inbound.call.more_headers[HEADER] = "miss"
                made = await _recorded(flight.key, exchange, ask, filters)
        except asyncio.CancelledError:
            flight.leave()
            raise
        except BaseException:
            flight.fail()
            raise
        if found is not None:
            flight.land(found)
            await _replay(found, inbound, exchange)
        elif made is None and exchange.error is not None:
            flight.fail()
        elif made is None:
            flight.land(Turn.ALONE)
        else:
            await self._keep(flight, made, route)

    async def _keep(self, flight: Flight, entry: Entry, route: Route) -> None:
        try:
            await self._store.keep(entry, route.settings.cache or 0.0)
        finally:
            flight.land(entry)

    def _key(
        self,
        inbound: InboundRequest,
        exchange: Exchange,
        route: Route,
        filters: ExchangeFilters | None,
    ) -> bytes | None:
        if not is_stateless(inbound, exchange) or (filters and not filters.is_cacheable):
            return None
        digest = self._digest(route)
        return None if digest is None else key_of(inbound, exchange, route, digest, filters)

    def _digest(self, route: Route) -> bytes | None:
        known = self._digests.get(id(route))
        if known is None:  # the entry keeps the route alive, so its id stays unique
            if len(self._digests) >= _MAX_ROUTES:
                self._digests.clear()
            known = self._digests[id(route)] = (route, route_digest(route, self._middleware))
        return known[1]


async def _recorded(
    key: bytes, exchange: Exchange, ask: Ask, filters: ExchangeFilters | None
) -> Entry | None:
    """Call `ask` and return the response as a cache entry; None: it can't be cached."""
    sink = exchange.sink
    exchange.sink = recording = Recording(sink)
    try:
        await ask()
    finally:
        exchange.sink = sink
    if exchange.error is not None or (filters is not None and filters.has_read_more_headers):
        return None
    return recording.entry(key, exchange.model)


async def _replay(entry: Entry, inbound: InboundRequest, exchange: Exchange) -> None:
    """Send a cached response, at no cost."""
    inbound.call.more_headers[HEADER] = "hit"
    exchange.cached, exchange.model = True, entry.model
    exchange.summary, exchange.cost = Summary(entry.model, Usage()), Decimal(0)
    sink = exchange.sink
    if not entry.is_stream:
        await sink.respond(200, entry.headers, entry.pieces[0])
        return
    await sink.begin(entry.headers)
    for piece in entry.pieces:
        await sink.write(piece)
    await sink.end()


def _open_store(url: str | None, size: int) -> CacheStore:
    if url is None:
        return MemoryCache(size)
    from dragoman.gateway.caching.redis import RedisCache

    return RedisCache(url)
