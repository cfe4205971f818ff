"""Applies middleware before a request, on each event of a response, and after it.

Requests pass through the list from first to last, responses from last to first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from dragoman.errors import DragomanError
from dragoman.gateway.middleware.calling import LOG, Stopped, await_hook, call_hook, hook_failure
from dragoman.gateway.middleware.info import Headers, Info
from dragoman.gateway.middleware.texts import Texts
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, PartDelta, ResponseEnd, StreamError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.transport.answers import events_of
from dragoman.wire.lane.plain import Summary

if TYPE_CHECKING:
    from dragoman.gateway.config.routing import Route
    from dragoman.gateway.exchange import Exchange
    from dragoman.gateway.inbound import InboundRequest

HOOKS = ("route", "before", "on_event", "after")
_EVENTS = frozenset(Event.__args__)
_FIXED = (ResponseEnd, StreamError)
"""Events that middleware can't change: they state whether a response is complete."""
_SESSION = b"x-dragoman-session"


class Hooks(Struct, frozen=True):
    """The hook functions of one middleware."""

    name: str
    route: Callable[..., Any] | None = None
    before: Callable[..., Any] | None = None
    on_event: Callable[..., Any] | None = None
    after: Callable[..., Any] | None = None


class Middleware:
    """All middleware of a gateway, in order."""

    def __init__(self, hooks: Sequence[Hooks], timeout: float, digest: str = "") -> None:
        self.hooks = tuple(hooks)
        self.timeout = timeout
        self.digest = digest
        """Identifies this version of the middleware: a changed file has another digest."""
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"<middleware {', '.join(each.name for each in self.hooks)}>"

    def warn_of_streams(self, name: str) -> None:
        """Warn once that `after` can't change a response that was already streamed."""
        if name not in self._warned:
            self._warned.add(name)
            message = "the middleware %s changed a streamed response in `after`: this has no effect"
            LOG.warning(message, name)

    def start(self, inbound: InboundRequest, exchange: Exchange) -> ExchangeFilters:
        """The filters for one exchange."""
        return ExchangeFilters(self, inbound, exchange)


class ExchangeFilters:
    """The middleware of one exchange, with its state."""

    def __init__(self, middleware: Middleware, inbound: InboundRequest, exchange: Exchange) -> None:
        self._middleware, self._timeout = middleware, middleware.timeout
        self._inbound, self._exchange = inbound, exchange
        self._headers = Headers(inbound.call.headers)
        self._chain = [(hooks, self._info(inbound, exchange)) for hooks in middleware.hooks]
        self._on_event = [pair for pair in reversed(self._chain) if pair[0].on_event]
        self._after = [pair for pair in reversed(self._chain) if pair[0].after]
        self._request = exchange.override or exchange.client_request.request
        self._texts = Texts()
        self._accumulator: MessageAccumulator | None = None
        """The response as the client receives it, if events may be changed."""
        self._has_seen = self._has_changed = False
        self.holds_end = bool(self._after)
        self.seen_headers: dict[str, str | None] = {}
        """The headers that middleware read before the model was called."""

    def _info(self, inbound: InboundRequest, exchange: Exchange) -> Info:
        key, client_request = inbound.key, exchange.client_request
        return Info(
            front=client_request.front.name,
            headers=self._headers,
            model=client_request.model,
            stream=client_request.stream,
            key_id=None if key is None else key.id,
            key_name=None if key is None else key.name,
            session=inbound.call.header(_SESSION),
        )

    # --- requests

    def model(self) -> str | None:
        """The model name for routing: the first one that a middleware returns, or the client's."""
        for hooks, info in self._chain:
            if hooks.route is None:
                continue
            name = call_hook(hooks.name, "route", hooks.route, self._request, info)
            if name is not None and not (isinstance(name, str) and name):
                raise hook_failure(hooks.name, "route", f"it returned {type(name).__name__}")
            if name is not None:
                for _, each in self._chain:
                    each.model = name
                return name
        return self._exchange.client_request.model

    async def before(self, route: Route) -> Route | None:
        """Run the `before` hooks; return the route to use, or None if one responded itself."""
        for _, info in self._chain:
            info.route = route.name
            info.session = info.session or route.settings.session
        request = self._request
        for hooks, info in self._chain:
            if hooks.before is None:
                continue
            found = await await_hook(
                hooks.name, "before", hooks.before, self._timeout, request, info
            )
            if isinstance(found, Response):
                await self._answer(found)
                return None
            if found is not None and not isinstance(found, Request):
                raise hook_failure(hooks.name, "before", f"it returned {type(found).__name__}")
            request = request if found is None else found
        return await self._changed(request, route)

    async def _answer(self, response: Response) -> None:
        """Send a response that middleware returned, at no cost."""
        exchange = self._exchange
        try:
            await exchange.answer_with(response)
        finally:
            exchange.summary = Summary(response.model, Usage())

    async def _changed(self, request: Request, route: Route) -> Route:
        original, exchange = self._request, self._exchange
        self.seen_headers = dict(self._headers.seen)
        if self._on_event or self._after:
            exchange.filters = self
        if request is original:
            return route
        # Middleware can't change `stream`: the client expects one form.
        exchange.filtered = self._request = request.replace_unchecked(stream=original.stream)
        if request.model == original.model:
            return route
        other = await self._inbound.gateway.route(request.model)
        for _, info in self._chain:
            info.model, info.route = request.model, other.name
        return other

    @property
    def is_cacheable(self) -> bool:
        """Whether the response depends only on what the cache key includes."""
        return all(info.is_cacheable for _, info in self._chain)

    @property
    def has_read_more_headers(self) -> bool:
        """Whether middleware read further headers after the cache lookup."""
        return self._headers.seen.keys() != self.seen_headers.keys()

    # --- responses

    async def response(self, response: Response) -> Response:
        """Filter a complete response: first as events, so that it equals a streamed one."""
        if self._on_event:
            response = self._through_events(response)
        return await self._run_after(response, may_change=True)

    def _through_events(self, response: Response) -> Response:
        self.events(list(events_of(response)))
        accumulator = (
            self._accumulator if self._has_changed else None
        )  # keep an unchanged response as it is
        return response if accumulator is None else accumulator.response

    def events(self, events: list[Event]) -> list[Event]:
        """Filter events of a stream."""
        self._has_seen = True
        if not self._on_event:
            return events
        texts, accumulator = self._texts, self._accumulator
        if accumulator is None:
            accumulator = self._accumulator = MessageAccumulator()
        found: list[Event] = []
        for event in events:
            for each in texts.received(event):
                found += [made for made in self._filtered(each, 0) if not _is_empty(made)]
        sent = [texts.sent(each) for each in found]
        accumulator.extend(sent)
        return sent

    def _filtered(self, event: Event, number: int) -> list[Event]:
        """Pass an event through the middleware from index `number` on."""
        if number == len(self._on_event) or isinstance(event, _FIXED):
            return [event]
        hooks, info = self._on_event[number]
        result = call_hook(hooks.name, "on_event", hooks.on_event or _none, event, info)
        if result is event:
            return self._filtered(event, number + 1)
        self._has_changed = True
        listed = result if isinstance(result, list | tuple) else [result] * (result is not None)
        found: list[Event] = []
        for each in listed:
            if type(each) not in _EVENTS:
                raise hook_failure(hooks.name, "on_event", f"it returned {type(each).__name__}")
            found += self._filtered(cast("Event", each), number + 1)
        return found

    async def ended(self, response: Response) -> Response:
        """Run the `after` hooks on a streamed response, before its end is sent."""
        sent = response if self._accumulator is None else self._accumulator.response
        return await self._run_after(sent, may_change=False)

    async def _run_after(self, response: Response, *, may_change: bool) -> Response:
        for hooks, info in self._after:
            found = await await_hook(
                hooks.name, "after", hooks.after or _none, self._timeout,
                self._request, response, info,
            )  # fmt: skip
            if found is None or found is response:
                continue
            if not isinstance(found, Response):
                raise hook_failure(hooks.name, "after", f"it returned {type(found).__name__}")
            if may_change:
                response = found
            else:
                self._middleware.warn_of_streams(hooks.name)
        return response

    def failed(self, error: DragomanError) -> Exception:
        """The exception for a failed response: no fallback once middleware has seen a part."""
        return Stopped(error) if self._has_seen else error


def _is_empty(event: Event) -> bool:
    """Whether an event is a delta without any content, such as a fully redacted text."""
    if type(event) is not PartDelta or event.text:
        return False
    return not (event.signature or event.data or event.citations or event.extras)


def _none(*_given: Any) -> None:
    """A hook that does nothing."""
