"""The state of a gateway worker: its configuration, upstreams, keys, caches and stores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.gateway.caching import Cache
from dragoman.gateway.clients import ClientAddresses
from dragoman.gateway.config.routing import Route, Router
from dragoman.gateway.config.settings import GatewayConfig, Place, RouteSettings, ServerSettings
from dragoman.gateway.envelopes import EnvelopeKeys
from dragoman.gateway.guard import OriginGuard
from dragoman.gateway.histories import Histories
from dragoman.gateway.intake import BodyRoom
from dragoman.gateway.memory import MemoryReturn
from dragoman.gateway.middleware import load_middleware
from dragoman.gateway.pricing import PricedModels
from dragoman.gateway.recent_responses import RecentResponses
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

_POLL_INTERVAL = 0.2  # seconds between checks for requests still in progress
Observer = Callable[[RequestRecord], None]


class Gateway:
    """State shared by all requests. A new configuration applies to requests that start later."""

    def __init__(
        self,
        config: GatewayConfig,
        *,
        transport: Transport | None = None,
        is_only_worker: bool = True,
    ) -> None:
        """`is_only_worker`: no other process serves the same clients."""
        self._is_only_worker = is_only_worker
        self._owns_transport = transport is None
        self.transport = transport or DirectTransport()
        self.translations = Translations()
        self.observers: list[Observer] = []
        """Called with the record of every completed request."""
        self.in_flight: set[InboundRequest] = set()
        """Requests in progress."""
        self.bodies = BodyRoom()
        """What their bodies take."""
        self.exposition: Callable[[], Awaitable[bytes]] | None = None
        """Renders the metrics of all workers for Prometheus; None: metrics are off."""
        self.is_draining = False
        self.keys: Keys | None = None
        self.traffic: Traffic | None = None
        """Store of recent requests; None: they are not recorded."""
        self.page: Page | None = None
        """State of the web page, created when it is first opened."""
        self.histories: Histories | None = None
        """Store of sessions and responses; None: none is configured."""
        self._former: list[Histories] = []
        self.recent = RecentResponses()
        """Responses in this worker's memory, if there is no store."""
        self.background = Tasks()
        """Responses that continue after their client disconnected."""
        self.cache = Cache()
        self.memory = MemoryReturn()
        self.envelopes = EnvelopeKeys()
        self._upstreams: dict[int, Upstream] = {}  # by `id()` of the `Place`
        self._settings: dict[int, tuple[RouteSettings, Settings]] = {}
        self._retired: list[Upstream] = []  # of earlier configurations, until no request uses them
        self._closing: set[asyncio.Task[None]] = set()
        self.apply(config)

    def apply(self, config: GatewayConfig) -> None:
        """Apply a configuration. Requests in progress keep the one that they started with."""
        middleware = load_middleware(config)  # first, because it may raise
        self.cache.apply(config, middleware)
        self.config = config
        self.middleware = middleware
        """None if none is configured: requests then skip it entirely."""
        self.prices = PricedModels(config.prices)
        self.router = Router(config)
        self.origin_guard = OriginGuard(config.server.host, config.server.allowed_hosts)
        self.clients = ClientAddresses(config.server.trusted_proxies)
        before = list({id(upstream): upstream for upstream in self._upstreams.values()}.values())
        self._upstreams = {
            id(place): upstream
            for place in config.places.values()
            for upstream in before
            if upstream.place == place  # unchanged: a model in this process stays loaded
        }
        self._settings = {}
        kept = set(map(id, self._upstreams.values()))
        self._retire([upstream for upstream in before if id(upstream) not in kept])
        self._apply_history(config.server)
        self.recent.apply(config.server, is_only_worker=self._is_only_worker)

    def _apply_history(self, server: ServerSettings) -> None:
        """Replace the history store if its URL or response lifetime changed."""
        now, url = self.histories, server.history
        if now is not None and (now.url, now.response_ttl) == (url, server.response_ttl):
            return
        if now is not None:
            self._former.append(now)
        self.histories = None if url is None else Histories(url, response_ttl=server.response_ttl)

    def _retire(self, upstreams: list[Upstream]) -> None:
        """Close upstreams that are no longer configured once the current requests are done."""
        if upstreams:
            self._retired += upstreams
            task = asyncio.create_task(self._close_retired(upstreams, frozenset(self.in_flight)))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _close_retired(
        self, upstreams: list[Upstream], in_flight: frozenset[InboundRequest]
    ) -> None:
        while in_flight & self.in_flight:  # noqa: ASYNC110 - rare: only after a reload
            await asyncio.sleep(_POLL_INTERVAL)
        for upstream in upstreams:
            self._retired.remove(upstream)
            await upstream.close()

    @property
    def active(self) -> int:
        """How many requests are in progress."""
        return len(self.in_flight)

    def upstream(self, place: Place) -> Upstream:
        """The upstream for a configured place."""
        found = self._upstreams.get(id(place))
        if found is None:  # the upstream keeps the place alive, so its id stays unique
            found = self._upstreams[id(place)] = Upstream(place, self.transport, self.secrets)
        return found

    def secrets(self) -> Iterator[str]:
        """What the configuration holds that nobody may read: keys, and the stores' passwords."""
        for place in self.config.places.values():
            yield from place.secrets(os.environ)
        server = self.config.server
        for url in filter(None, (server.keys, server.history, server.cache)):
            with suppress(ValueError):
                yield urlsplit(url).password or ""

    async def route(self, model: str | None) -> Route:
        """The route for a model; raises `ModelNotFound`."""
        return self.router.find(model) or await self.router.resolve(model)

    def settings_of(self, route: Route) -> Settings:
        """The request settings of a route; returns the same object each time."""
        settings = route.settings
        if not (settings.defaults or settings.fixed):
            return NO_SETTINGS
        found = self._settings.get(id(settings))
        if found is None:
            found = self._settings[id(settings)] = (
                settings,
                Settings(settings.defaults, settings.fixed),
            )
        return found[1]

    def notify(self, record: RequestRecord) -> None:
        """Pass the record of a completed request to all observers."""
        for observer in self.observers:
            observer(record)

    async def close(self) -> None:
        """Close connections, models and stores."""
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
        for histories in (*self._former, self.histories, self.recent):
            if histories is not None:
                await histories.close()
        await self.cache.close()
        if self._owns_transport:
            await self.transport.close()
