"""A model of the gateway's as the page talks to it: by its route, each of its places in turn."""

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
_NO_PLACE = "the route of this model leads nowhere"


class PlacedModel:
    """One place of a route, as a model."""

    def __init__(self, upstream: Upstream, model: str | None, settings: Settings, hop: Hop) -> None:
        self.upstream = upstream
        self.model = model
        self.hop = hop
        self._settings = settings

    @property
    def name(self) -> str:
        """The model, as `provider:model`."""
        if not self.upstream.is_wire:
            return self.upstream.place.model_url or self.upstream.name
        return f"{self.upstream.provider_name}:{self.model or ''}"

    @property
    def target(self) -> Target | None:
        """The facts about it, where it is asked over HTTP."""
        return self.upstream.target(self.model) if self.upstream.is_wire else None

    @property
    def dialect(self) -> str:
        """What it speaks; a model in this process speaks none, and is shown in the plainest."""
        return self.upstream.dialect(self.model).name if self.upstream.is_wire else CHAT

    def encoded(self, request: Request) -> Encoded:
        """What is sent there; a model in this process is shown as if it were asked over HTTP."""
        if self.upstream.is_wire:
            return encoded_for(request, self.upstream, self.model, self._settings).encoded
        asked = self._settings.applied(request.replace_unchecked(model=self.name))
        return dialect(CHAT).encode_request(asked)

    def _asked(self, request: Request) -> Request:
        return self._settings.applied(request.replace_unchecked(model=self.model))

    async def send(self, request: Request | Any) -> Response:
        """The answer."""
        asked = self._asked(request)
        return await (
            self.upstream.client.send(asked) if self.upstream.is_wire else self.upstream.send(asked)
        )

    def stream(self, request: Request | Any) -> ModelStream:
        """The answer as it comes."""
        asked = self._asked(request)
        return (
            self.upstream.client.stream(asked)
            if self.upstream.is_wire
            else self.upstream.stream(asked)
        )

    async def close(self) -> None:
        """The gateway has it open, and closes it."""


Tap = Callable[[Event], Awaitable[None]]
Sent = Callable[[PlacedModel, Request], Awaitable[None]]


def places_of(gateway: Gateway, route: Route) -> tuple[PlacedModel, ...]:
    """The places that a route leads to, in the order in which they are asked now."""
    settings = gateway.settings_of(route)
    hops = route.order()
    return tuple(PlacedModel(gateway.upstream(hop.place), hop.model, settings, hop) for hop in hops)


class RoutedModel:
    """The model of a name, wherever its route leads. What comes is told before the agent has it."""

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
        """The model that is asked first, as `provider:model`."""
        return self.places[0].name

    @property
    def target(self) -> Target | None:
        """The facts about it, where it is asked over HTTP."""
        return self.places[0].target

    async def send(self, request: Request | Any) -> Response:
        """The answer."""
        return await FallbackModel(*self.places).send(request)

    def stream(self, request: Request | Any) -> ModelStream:
        """The answer as it comes."""
        self._stream = _Tapped(self, request)
        return self._stream

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def heard(self) -> Response | None:
        """What has come of the answer that was asked for last; None: nobody was asked."""
        return None if self._stream is None else self._stream.response

    # --- for the stream

    async def tell_sent(self, place: PlacedModel, request: Request) -> None:
        """A place has begun to answer."""
        await self._sent(place, request)

    async def tell(self, event: Event) -> None:
        """More of the answer."""
        await self._tap(event)

    def note(self, place: PlacedModel, error: DragomanError | None) -> None:
        """Tell the route how one of its places did."""
        if error is None:
            self.route.note_success(place.hop)
        else:
            self.route.note_failure(place.hop, error)


class _Tapped:
    """The stream of the first place that begins to answer; each event is told on its way."""

    def __init__(self, routed: RoutedModel, request: Request) -> None:
        self._routed, self._request = routed, request
        self._stream: ModelStream | None = None

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        return Response() if self._stream is None else self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether the model said that it is done."""
        return self._stream is not None and self._stream.is_complete

    async def close(self) -> None:
        """Stop listening."""
        if self._stream is not None:
            await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Event]:
        routed = self._routed
        for number, place in enumerate(routed.places, 1):
            told = _Told(routed, place, self._request, number)
            try:
                self._stream = place.stream(self._request)
                async for event in self._stream:
                    await told.tell(event)
                    yield event
            except DragomanError as error:
                told.failed(error)
                is_last = number == len(routed.places)
                if told.first_event is not None or is_last or not another_may_answer(error):
                    raise
                if self._stream is not None:
                    await self._stream.close()
            else:
                told.ended()
                return
            finally:
                told.record(self.response)


class _Told:
    """What is told of one place's attempt at an answer, to the page, the route and the records."""

    def __init__(self, routed: RoutedModel, place: PlacedModel, request: Request, n: int) -> None:
        self._routed, self._place, self._request = routed, place, request
        self._attempt = n
        self._began = perf_counter()
        self._error: DragomanError | None = None
        self._is_over = False
        self.first_event: float | None = None

    async def tell(self, event: Event) -> None:
        """More of the answer."""
        if self.first_event is None:
            self.first_event = perf_counter() - self._began
            await self._routed.tell_sent(self._place, self._request)
        await self._routed.tell(event)

    def failed(self, error: DragomanError) -> None:
        """The place could not answer, or broke off."""
        self._error = error
        self._routed.note(self._place, error)

    def ended(self) -> None:
        """The answer is complete."""
        self._is_over = True
        if self._attempt > 1:
            self._routed.note(self._place, None)

    def record(self, response: Response) -> None:
        """Tell everybody who counts."""
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
