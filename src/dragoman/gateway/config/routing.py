"""Finds the route of a request by the requested model."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from dragoman.errors import ConnectError, ModelNotFound
from dragoman.gateway.config.catalogue import Catalogue
from dragoman.gateway.config.health import Health
from dragoman.gateway.config.matching import NamedRoutes, known_place, model_at
from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings
from dragoman.model.spelling import did_you_mean
from dragoman.transport.retries import is_passing

_MAX_CACHED_NAMES = 4096  # bounded, because clients choose them
_MAX_NAME_LENGTH = 256
_MAX_COMPARED = 200
_NO_MODEL = "the request does not name a model"
_UNKNOWN = "there is no model of that name"
_sample: Callable[[], float] = random.Random().random  # noqa: S311 - only for load balancing


class Route:
    """The hops to try for one model name, and the settings of its requests."""

    __slots__ = ("_draw", "_groups", "_health", "_is_weighted", "hops", "name", "settings")

    def __init__(
        self,
        settings: RouteSettings,
        hops: Iterable[Hop],
        health: Health,
        draw: Callable[[], float],
    ) -> None:
        self.name = settings.name or settings.model
        self.settings = settings
        self.hops = tuple(hops)
        """In the order of the file, each with the model's name there."""
        self._health, self._draw = health, draw
        self._groups = [
            (is_weighted, list(hops))
            for is_weighted, hops in groupby(self.hops, lambda hop: hop.weight is not None)
        ]
        self._is_weighted = any(is_weighted for is_weighted, _ in self._groups)

    def __repr__(self) -> str:
        return f"Route({self.name}, {len(self.hops)} hops)"

    def order(self) -> Sequence[Hop]:
        """The hops in the order to try: weighted ones shuffled, recently failed ones last."""
        if len(self.hops) == 1 or not (self._is_weighted or self._health):
            return self.hops
        hops = self._drawn() if self._is_weighted else list(self.hops)
        if self._health:
            hops.sort(key=self._health.penalty)  # stable: healthy hops keep their order
        return hops

    def note_failure(
        self, hop: Hop, error: BaseException | None = None, *, kind: str | None = None
    ) -> None:
        """Record that a hop failed. Only transient errors affect its health."""
        if error is None or is_passing(error):
            self._health.note_failure(
                hop,
                getattr(error, "retry_after", None),
                is_whole_place=isinstance(error, ConnectError),  # no model there is reachable then
                error=kind if error is None else type(error).__name__,
            )

    def note_success(self, hop: Hop) -> None:
        """Record that a hop responded."""
        self._health.note_success(hop)

    def _drawn(self) -> list[Hop]:
        found: list[Hop] = []
        for is_weighted, hops in self._groups:
            found += sorted(hops, key=self._rank) if is_weighted else hops
        return found

    def _rank(self, hop: Hop) -> float:
        # Sorting by u^(1/w) is weighted sampling without replacement (Efraimidis, Spirakis 2006).
        return -(self._draw() ** (1 / hop.weight)) if hop.weight else 0.0


class Router:
    """Finds the route for a model name.

    ```python
    route = router.find(name) or await router.resolve(name)
    for hop in route.order():
        ...
    ```
    """

    def __init__(
        self,
        config: GatewayConfig,
        catalogue: Catalogue | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = _sample,
    ) -> None:
        self.config = config
        self.catalogue = catalogue or Catalogue(config)
        self._named = NamedRoutes(config.routes)
        self._health, self._draw = Health(clock), draw
        self._found: dict[str | None, Route] = {}
        self._remembered: deque[str] = deque()

    @property
    def health(self) -> Health:
        """The recent failures in this process."""
        return self._health

    def find(self, model: str | None) -> Route | None:
        """The route for a name; None: only `resolve` can tell."""
        found = self._found.get(model)
        return found if found is not None else self._looked_up(model)

    async def resolve(self, model: str | None) -> Route:
        """Like `find`, but also fetches the providers' model lists; raises `ModelNotFound`."""
        found = self.find(model)
        if found is not None:
            return found
        if model is None:
            raise _not_found(_NO_MODEL)
        meant = self.config.aliases.get(model, model)
        if not self.config.routes:
            hop = await self._listed(meant)
            if hop is not None:
                return self._kept(model, self._plain(meant, hop))
        message = _UNKNOWN + did_you_mean(model, _comparable(model, await self._names()))
        raise _not_found(message, model)

    def _looked_up(self, model: str | None) -> Route | None:
        meant = None if model is None else self.config.aliases.get(model, model)
        if self.config.routes:
            settings = self._named.find(meant)
            return None if settings is None else self._kept(model, self._route(settings, meant))
        hop = self._unlisted(meant)
        return None if hop is None else self._kept(model, self._plain(meant or "", hop))

    def _route(self, settings: RouteSettings, model: str | None) -> Route:
        hops = [
            Hop(place=hop.place, model=hop.model or model_at(hop.place, model), weight=hop.weight)
            for hop in settings.to
        ]
        return Route(settings, hops, self._health, self._draw)

    def _plain(self, model: str, hop: Hop) -> Route:
        """A route with a single hop, for a name without a `[[routes]]` table."""
        settings = RouteSettings(model=model, to=(hop,), name=hop.place.name)
        return Route(settings, (hop,), self._health, self._draw)

    def _unlisted(self, model: str | None) -> Hop | None:
        """The hop for a name without `[[routes]]`, if known without fetching model lists."""
        places = self.config.places
        if model is None:
            return Hop(place=next(iter(places.values()))) if len(places) == 1 else None
        place = known_place(model, places)
        return None if place is None else Hop(place=place, model=model_at(place, model))

    async def _listed(self, model: str) -> Hop | None:
        """The hop for a plain name, by the providers' model lists."""
        found = await self.catalogue.holder(model)
        if found is not None:
            return Hop(place=found.place, model=found.model)
        # Some clients write provider/model. Tried last: names at OpenRouter and Groq have slashes.
        head, slash, rest = model.partition("/")
        return self._unlisted(f"{head}:{rest}") if slash and rest else None

    async def _names(self) -> list[str]:
        if self.config.routes:
            exact = [each.model for each in self.config.routes if not each.is_pattern]
            return [*exact, *self.config.aliases]
        return [info.id for info in await self.catalogue.models()]

    def _kept(self, model: str | None, route: Route) -> Route:
        if model is None or len(model) <= _MAX_NAME_LENGTH:
            if model is not None:
                self._make_room(model)
            self._found[model] = route
        return route

    def _make_room(self, model: str) -> None:
        while len(self._remembered) >= _MAX_CACHED_NAMES:
            self._found.pop(self._remembered.popleft(), None)
        self._remembered.append(model)


def _comparable(model: str, names: list[str]) -> list[str]:
    """The names to compare an unknown one with; limited, because comparing takes time."""
    first = model[:1].lower()
    return sorted(names, key=lambda name: name[:1].lower() != first)[:_MAX_COMPARED]


def _not_found(message: str, model: str | None = None) -> ModelNotFound:
    error = ModelNotFound(message, status=404, code="model_not_found")
    error.add_request_info(provider=None, host=None, model=model)
    return error
