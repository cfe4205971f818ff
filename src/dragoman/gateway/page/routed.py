"""The models that the page talks to: a route, with fallback from one provider to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter
from typing import Any

from dragoman.errors import DragomanError, ModelNotFound
from dragoman.gateway.config.routing import Route
from dragoman.gateway.config.settings import Hop
from dragoman.gateway.endpoints import CHAT
from dragoman.gateway.records import RequestRecord
from dragoman.gateway.state import Gateway
from dragoman.gateway.translation import Settings, encoded_for
from dragoman.gateway.upstreams import Upstream
from dragoman.model.events import Event
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.prices import LISTED
from dragoman.transport.fallback import FallbackModel, another_may_answer
from dragoman.transport.model import ModelStream
from dragoman.wire.dialect import dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.target import Target

_FRONT = "page"
_OK, _LEFT, _FAILED = 200, 499, 502
_NO_PLACE = "the route of this model has no provider"


class PlacedModel:
    """One provider of a route, as a model."""

    def __init__(self, upstream: Upstream, model: str | None, settings: Settings, hop: Hop) -> None:
        self.upstream = upstream
        self.model = model
        self.hop = hop
        self._settings = settings

    @property
    def name(self) -> str:
        """The model as `provider:model`."""
        if not self.upstream.is_wire:
            return self.upstream.place.model_url or self.upstream.name
        return f"{self.upstream.provider_name}:{self.model or ''}"

    @property
    def target(self) -> Target | None:
        """The target; None for an in-process model."""
        return self.upstream.target(self.model) if self.upstream.is_wire else None

    @property
    def dialect(self) -> str:
        """The model's dialect. An in-process model has none and is shown as OpenAI Chat."""
        return self.upstream.dialect(self.model).name if self.upstream.is_wire else CHAT

    def encoded(self, request: Request) -> Encoded:
        """Encodes a request for this model. In-process models are shown as if called over HTTP."""
        if self.upstream.is_wire:
            return encoded_for(request, self.upstream, self.model, self._settings).encoded
        prepared = self._settings.applied(request.replace_unchecked(model=self.name))
        return dialect(CHAT).encode_request(prepared)

    def _prepared(self, request: Request) -> Request:
        return self._settings.applied(request.replace_unchecked(model=self.model))

    async def send(self, request: Request | Any) -> Response:
        """Returns the whole response."""
        prepared = self._prepared(request)
        is_wire = self.upstream.is_wire
        return await (self.upstream.client if is_wire else self.upstream).send(prepared)

    def stream(self, request: Request | Any) -> ModelStream:
        """Streams the response."""
        prepared = self._prepared(request)
        return (self.upstream.client if self.upstream.is_wire else self.upstream).stream(prepared)

    async def close(self) -> None:
        """Does nothing: the gateway owns the connection."""


Tap = Callable[[Event], Awaitable[None]]
Sent = Callable[[PlacedModel, Request], Awaitable[None]]


def places_of(gateway: Gateway, route: Route) -> tuple[PlacedModel, ...]:
    """Returns the providers of a route, in the order in which they are tried now."""
    settings = gateway.settings_of(route)
    hops = route.order()
    return tuple(PlacedModel(gateway.upstream(hop.place), hop.model, settings, hop) for hop in hops)


class RoutedModel:
    """A routed model. Each event is passed to `tap` before the agent receives it."""

    def __init__(self, gateway: Gateway, route: Route, *, sent: Sent, tap: Tap) -> None:
        self.route = route
        self.places = places_of(gateway, route)
        if not self.places:
            raise ModelNotFound(_NO_PLACE, status=404)
        self._sent, self._tap = sent, tap
        self.finished = gateway.notify
        self._stream: _Tapped | None = None

    @property
    def name(self) -> str:
        """The model that is tried first, as `provider:model`."""
        return self.places[0].name

    @property
    def target(self) -> Target | None:
        """The target; None for an in-process model."""
        return self.places[0].target

    async def send(self, request: Request | Any) -> Response:
        """Returns the whole response."""
        return await FallbackModel(*self.places).send(request)

    def stream(self, request: Request | Any) -> ModelStream:
        """Streams the response."""
        self._stream = _Tapped(self, request)
        return self._stream

    async def close(self) -> None:
        """Does nothing: no connection is held."""

    @property
    def heard(self) -> Response | None:
        """The received part of the last response; None before the first request."""
        return None if self._stream is None else self._stream.response

    # --- for the stream

    async def tell_sent(self, place: PlacedModel, request: Request) -> None:
        """Reports that a provider has started to respond."""
        await self._sent(place, request)

    async def tell(self, event: Event) -> None:
        """Reports an event of the response."""
        await self._tap(event)

    def note(self, place: PlacedModel, error: DragomanError | None) -> None:
        """Reports the outcome of an attempt to the route's health tracking."""
        if error is None:
            self.route.note_success(place.hop)
        else:
            self.route.note_failure(place.hop, error)


class _Tapped:
    """The stream of the first provider that starts to respond; reports each event."""

    def __init__(self, routed: RoutedModel, request: Request) -> None:
        self._routed, self._request = routed, request
        self._stream: ModelStream | None = None

    @property
    def response(self) -> Response:
        """The part of the response received so far."""
        return Response() if self._stream is None else self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether the model reported the end of its response."""
        return self._stream is not None and self._stream.is_complete

    async def close(self) -> None:
        """Closes the stream."""
        if self._stream is not None:
            await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Event]:
        routed = self._routed
        for number, place in enumerate(routed.places, 1):
            attempt = _Attempt(routed, place, self._request, number)
            try:
                self._stream = place.stream(self._request)
                async for event in self._stream:
                    await attempt.tell(event)
                    yield event
            except DragomanError as error:
                attempt.failed(error)
                is_last = number == len(routed.places)
                if attempt.first_event is not None or is_last or not another_may_answer(error):
                    raise
                if self._stream is not None:
                    await self._stream.close()
            else:
                attempt.ended()
                return
            finally:
                attempt.record(self.response)


class _Attempt:
    """Reports one provider's attempt at a response to the page, the route and the observers."""

    def __init__(self, routed: RoutedModel, place: PlacedModel, request: Request, n: int) -> None:
        self._routed, self._place, self._request = routed, place, request
        self._attempt = n
        self._began = perf_counter()
        self._error: DragomanError | None = None
        self._is_over = False
        self.first_event: float | None = None

    async def tell(self, event: Event) -> None:
        """Reports an event; the first one also reports what was sent."""
        if self.first_event is None:
            self.first_event = perf_counter() - self._began
            await self._routed.tell_sent(self._place, self._request)
        await self._routed.tell(event)

    def failed(self, error: DragomanError) -> None:
        """Notes that the provider failed, before or during the response."""
        self._error = error
        self._routed.note(self._place, error)

    def ended(self) -> None:
        """Notes that the response is complete."""
        self._is_over = True
        if self._attempt > 1:
            self._routed.note(self._place, None)

    def record(self, response: Response) -> None:
        """Passes the record of this attempt to the gateway's observers."""
        error = self._error
        status = getattr(error, "status", None) or _FAILED if error is not None else _OK
        provider, model = self._place.upstream.provider_name, self._place.model
        usage = response.usage
        self._routed.finished(
            RequestRecord(
                "talk", _FRONT, status if self._is_over or error is not None else _LEFT,
                perf_counter() - self._began, self.first_event, self._routed.route.name,
                provider=provider, model=model or self._place.name, usage=usage,
                cost=LISTED.cost_of_response(response, self._place.name),
                attempts=self._attempt, stream=True,
                error=None if error is None else type(error).__name__,
                left=not self._is_over and error is None,
            )
        )  # fmt: skip
