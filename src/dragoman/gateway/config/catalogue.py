"""The list of available models: names from the routes, and the providers' own model lists."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from dragoman.errors import (
    AuthenticationError,
    DragomanError,
    PermissionDenied,
    ProviderError,
    WireError,
)
from dragoman.gateway.config.matching import NamedRoutes
from dragoman.gateway.config.settings import GatewayConfig, Hop, Place
from dragoman.model.catalogue import ModelInfo
from dragoman.transport.client import Client
from dragoman.transport.protocol import Timeouts, Transport
from dragoman.transport.retries import Retries

_KEPT = 300.0  # seconds that a provider's list is cached
_KEPT_FOR_UNKNOWN = 10.0  # seconds that it is cached when a requested name is not in it
_MAX_WAIT = 5.0
_SERVER_ERROR = 500
_MAX_MODELS = 10_000  # per provider
_MAX_BYTES = 32 * 1024 * 1024
_MAX_NAME_LENGTH = 256

Lists = Mapping[str, tuple[ModelInfo, ...]]
Answer = tuple[ModelInfo, ...] | Exception
"""What a provider lists, or why it can't be told."""


class ListedModel(NamedTuple):
    """A model that a provider lists, by its name there."""

    place: Place
    model: str


class ModelLists(NamedTuple):
    """The providers' latest model lists."""

    shown: tuple[ModelInfo, ...]
    """All models that clients can request."""
    held: Mapping[str, ListedModel]
    """By plain name: the first provider that lists it."""
    lists: Lists
    """What each provider lists, by its own names."""


class Catalogue:
    """Fetches the providers' model lists concurrently and caches them for a few minutes.

    A provider that fails or takes too long is left out.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        environ: Mapping[str, str] = os.environ,
        transport: Transport | None = None,
        seconds: float = _MAX_WAIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._environ, self._transport = environ, transport
        self._seconds, self._clock = seconds, clock
        self._named = NamedRoutes(config.routes)
        self._known: ModelLists | None = None
        self._asked_at = 0.0
        self._lock = asyncio.Lock()
        self._failed: Mapping[str, str] | None = None
        self._failed_at = 0.0
        self._asking = asyncio.Lock()

    async def models(self) -> list[ModelInfo]:
        """The models, each name once: aliases first, then routes or each provider's models."""
        return list((await self._current(_KEPT)).shown)

    async def holder(self, model: str) -> ListedModel | None:
        """The first provider that lists a model of that name."""
        for age in (_KEPT, _KEPT_FOR_UNKNOWN):  # it may have been added a moment ago
            found = (await self._current(age)).held.get(model)
            if found is not None:
                return found
        return None

    async def failures(self) -> Mapping[str, str]:
        """The providers that can't be asked for their models, each with the type of the error."""
        async with self._asking:
            if self._failed is None or self._clock() - self._failed_at >= _KEPT_FOR_UNKNOWN:
                places = [each for each in self._config.places.values() if each.provider]
                self._failed = {
                    place.name: type(answer).__name__
                    for place, answer in await self._answers(places)
                    if isinstance(answer, Exception) and _is_down(answer)
                }
                self._failed_at = self._clock()
            return self._failed

    def _index(self, lists: Lists) -> ModelLists:
        """Index the providers' lists once, for all later lookups."""
        found = self._route_models(lists) if self._config.routes else self._place_models(lists)
        aliases = (ModelInfo(name) for name in self._config.aliases)
        each_once: dict[str, ModelInfo] = {}
        for info in (*aliases, *found):
            each_once.setdefault(info.id, info)
        held: dict[str, ListedModel] = {}
        for place in self._config.places.values():
            for info in lists.get(place.name, ()):
                held.setdefault(info.id, ListedModel(place, info.id))
        for name, each in list(held.items()):  # Ollama leaves out `:latest`
            held.setdefault(name.removesuffix(":latest"), each)
        return ModelLists(tuple(each_once.values()), held, lists)

    async def listed_at(self, place: Place) -> tuple[ModelInfo, ...]:
        """What a provider lists, by its own names; empty if it was not requested or failed."""
        return (await self._current(_KEPT)).lists.get(place.name, ())

    def _route_models(self, lists: Lists) -> Iterator[ModelInfo]:
        routes = self._config.routes
        yield from (ModelInfo(route.model) for route in routes if not route.is_pattern)
        for route in routes:
            for hop in route.to if route.is_pattern else ():
                for info in _models_of(hop, lists):
                    if self._named.find(info.id) is route:
                        yield info

    def _place_models(self, lists: Lists) -> Iterator[ModelInfo]:
        for place in self._config.places.values():
            if place.model_url is not None:
                yield ModelInfo(place.model_url)
            for info in lists.get(place.name, ()):
                yield info.replace(id=f"{place.name}:{info.id}")
        for infos in lists.values():
            yield from infos

    async def _current(self, age: float) -> ModelLists:
        async with self._lock:  # one fetches, the others wait for its result
            if self._known is None or self._clock() - self._asked_at >= age:
                self._known = self._index(await self._fetch())
                self._asked_at = self._clock()
            return self._known

    async def _fetch(self) -> Lists:
        answers = await self._answers(list(self._places_to_list()))
        # Leave out those that failed, and serve the others.
        return {
            place.name: () if isinstance(answer, Exception) else answer for place, answer in answers
        }

    async def _answers(self, places: list[Place]) -> list[tuple[Place, Answer]]:
        if not places:
            return []
        transport = self._transport or _network()
        try:
            answers = await asyncio.gather(*(self._models_at(each, transport) for each in places))
        finally:
            if self._transport is None:
                await transport.close()
        return list(zip(places, answers, strict=True))

    def _places_to_list(self) -> Iterable[Place]:
        """The providers whose lists are shown: all without routes, else those of patterns."""
        if not self._config.routes:
            places = list(self._config.places.values())
        else:
            patterns = (route for route in self._config.routes if route.is_pattern)
            hops = (hop for route in patterns for hop in route.to if hop.model is None)
            places = list({hop.place.name: hop.place for hop in hops}.values())
        return (place for place in places if place.provider is not None)

    async def _models_at(self, place: Place, transport: Transport) -> Answer:
        try:
            async with asyncio.timeout(self._seconds):
                models = await self._client(place, transport).models()
        except (DragomanError, TimeoutError) as error:
            return error
        named = (info for info in models if 0 < len(info.id) <= _MAX_NAME_LENGTH)
        return tuple(islice(named, _MAX_MODELS))

    def _client(self, place: Place, transport: Transport) -> Client:
        assert place.provider is not None  # noqa: S101 - `_places_to_list` checked it
        return Client(
            place.provider,
            key=place.key(self._environ),
            base_url=place.base_url,
            headers=place.headers,
            parameters=place.parameters,
            dialect=place.dialect,
            timeouts=Timeouts(connect=self._seconds, total=self._seconds),
            retries=Retries(attempts=1),
            transport=transport,
            max_bytes=_MAX_BYTES,
        )


def _is_down(error: Exception) -> bool:
    """Whether a provider that answers so to a request for its models can't serve requests."""
    if isinstance(error, ProviderError):  # not every provider has such a list
        is_refused = isinstance(error, (AuthenticationError, PermissionDenied))
        return is_refused or (error.status or _SERVER_ERROR) >= _SERVER_ERROR
    return not isinstance(error, WireError)  # or has it in this dialect


def _models_of(hop: Hop, lists: Lists) -> tuple[ModelInfo, ...]:
    """The models that a hop of a pattern serves: the one named, or those of its provider."""
    named = hop.model or hop.place.model_url
    return lists.get(hop.place.name, ()) if named is None else (ModelInfo(named),)


def _network() -> Transport:
    from dragoman.transport.http import HttpTransport  # aiohttp is slow to import

    return HttpTransport()
