"""All that a worker of the gateway holds: its configuration, connections and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dragoman.gateway.caching import Cache
from dragoman.gateway.config.routing import Route, Router
from dragoman.gateway.config.settings import GatewayConfig, Place, RouteSettings, ServerSettings
from dragoman.gateway.guard import OriginGuard
from dragoman.gateway.histories import Histories
from dragoman.gateway.middleware import load_middleware
from dragoman.gateway.pricing import PricedModels
from dragoman.gateway.records import RequestRecord
from dragoman.gateway.tasks import Tasks
from dragoman.gateway.translation import NO_SETTINGS, Settings, Translations
from dragoman.gateway.upstreams import Upstream
from dragoman.transport.direct import DirectTransport
from dragoman.transport.protocol import Transport

if TYPE_CHECKING:
    from dragoman.gateway.inbound import InboundRequest
    from dragoman.gateway.keys import Keys
    from dragoman.gateway.page.state import Page
    from dragoman.gateway.page.traffic_store import Traffic

_GLANCE = 0.2  # seconds between two looks at requests that are still in progress
Observer = Callable[[RequestRecord], None]


class Gateway:
    """What requests have in common. A new configuration takes effect for requests that follow."""

    def __init__(self, config: GatewayConfig, *, transport: Transport | None = None) -> None:
        self._owns_transport = transport is None
        self.transport = transport or DirectTransport()
        self.translations = Translations()
        self.observers: list[Observer] = []
        """Told of every request that is over."""
        self.in_flight: set[InboundRequest] = set()
        """Requests in progress."""
        self.exposition: Callable[[], Awaitable[bytes]] | None = None
        """The metrics of all workers, as Prometheus reads them; None: nobody counts."""
        self.is_draining = False
        self.keys: Keys | None = None
        self.traffic: Traffic | None = None
        """The latest requests; None: they are not remembered."""
        self.page: Page | None = None
        """What the page holds, once somebody has opened it."""
        self.histories: Histories | None = None
        """Where exchanges and responses are stored; None: nothing is."""
        self._former: list[Histories] = []
        self.background = Tasks()
        """Answers that go on when their client has left."""
        self.cache = Cache()
        self._upstreams: dict[int, Upstream] = {}  # by the place's identity
        self._settings: dict[int, tuple[RouteSettings, Settings]] = {}
        self._retired: list[Upstream] = []  # of configurations before, until nobody uses them
        self._closing: set[asyncio.Task[None]] = set()
        self.apply(config)

    def apply(self, config: GatewayConfig) -> None:
        """Take on a configuration. Requests in progress end with the one that they began with."""
        middleware = load_middleware(config)  # first: it may be refused
        self.cache.apply(config, middleware)
        self.config = config
        self.middleware = middleware
        """None where there is none: requests then take no notice of it."""
        self.prices = PricedModels(config.prices)
        self.router = Router(config)
        self.origin_guard = OriginGuard(config.server.host, config.server.allowed_hosts)
        before = list({id(upstream): upstream for upstream in self._upstreams.values()}.values())
        self._upstreams = {
            id(place): upstream
            for place in config.places.values()
            for upstream in before
            if upstream.place == place  # the same as before: a model in this process stays loaded
        }
        self._settings = {}
        kept = set(map(id, self._upstreams.values()))
        self._retire([upstream for upstream in before if id(upstream) not in kept])
        self._apply_history(config.server)

    def _apply_history(self, server: ServerSettings) -> None:
        """Another store, or another lifetime, counts for requests that follow."""
        now, url = self.histories, server.history
        if now is not None and (now.url, now.response_ttl) == (url, server.response_ttl):
            return
        if now is not None:
            self._former.append(now)
        self.histories = None if url is None else Histories(url, response_ttl=server.response_ttl)

    def _retire(self, upstreams: list[Upstream]) -> None:
        """Close places that are no longer served when the requests in progress are over."""
        if upstreams:
            self._retired += upstreams
            task = asyncio.create_task(self._close_retired(upstreams, frozenset(self.in_flight)))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _close_retired(
        self, upstreams: list[Upstream], in_flight: frozenset[InboundRequest]
    ) -> None:
        while in_flight & self.in_flight:  # noqa: ASYNC110 - it happens once in a blue moon
            await asyncio.sleep(_GLANCE)
        for upstream in upstreams:
            self._retired.remove(upstream)
            await upstream.close()

    @property
    def active(self) -> int:
        """How many requests are in progress."""
        return len(self.in_flight)

    def upstream(self, place: Place) -> Upstream:
        """The way to a place."""
        found = self._upstreams.get(id(place))
        if found is None:  # it holds the place, so that no other has its id
            found = self._upstreams[id(place)] = Upstream(place, self.transport)
        return found

    async def route(self, model: str | None) -> Route:
        """Where requests for a model go; raises `ModelNotFound`."""
        return self.router.find(model) or await self.router.resolve(model)

    def settings_of(self, route: Route) -> Settings:
        """What a route says about its requests; the same object each time."""
        given = route.settings
        if not (given.defaults or given.fixed):
            return NO_SETTINGS
        found = self._settings.get(id(given))
        if found is None:
            found = self._settings[id(given)] = (given, Settings(given.defaults, given.fixed))
        return found[1]

    def notify(self, record: RequestRecord) -> None:
        """Tell everybody who counts that a request is over."""
        for observer in self.observers:
            observer(record)

    async def close(self) -> None:
        """Let go of connections and models."""
        if self.page is not None:
            await self.page.close()
        await self.background.finish(self.config.server.drain_timeout)
        for task in self._closing:
            task.cancel()
        for upstream in {
            id(upstream): upstream for upstream in (*self._upstreams.values(), *self._retired)
        }.values():
            await upstream.close()
        if self.keys is not None:
            await self.keys.close()
        for histories in (*self._former, self.histories):
            if histories is not None:
                await histories.close()
        await self.cache.close()
        if self._owns_transport:
            await self.transport.close()
