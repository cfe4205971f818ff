"""The chat endpoints of all dialects, and the path every model request takes to its upstreams."""

from __future__ import annotations

from collections.abc import Coroutine
from time import perf_counter
from typing import Any
from urllib.parse import quote

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config.routing import Route
from dragoman.gateway.config.settings import Hop
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http import as_mapping
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import aside_if_large, translated_aside
from dragoman.gateway.middleware import ExchangeFilters, Stopped
from dragoman.gateway.selection import Selection
from dragoman.gateway.sessions import join_session
from dragoman.gateway.spending import Spending
from dragoman.gateway.upstream_task import UpstreamTask
from dragoman.gateway.upstreams import Upstream
from dragoman.gateway.whole_calls import agent_form
from dragoman.wire.dialect import dialect
from dragoman.wire.front import front_form
from dragoman.wire.known_fields import without_lookalikes


async def chat(inbound: InboundRequest) -> None:
    """Serve a chat request."""
    client_request = await read_client_request(inbound, await inbound.body())
    await answer(inbound, Exchange(client_request, inbound.call, inbound.gateway.translations))


async def read_client_request(inbound: InboundRequest, body: bytes) -> ClientRequest:
    """Parse the client's request."""
    return await aside_if_large(len(body), _read_client_request, inbound, body)


def _read_client_request(inbound: InboundRequest, body: bytes) -> ClientRequest:
    endpoint = inbound.endpoint
    form = front_form(dialect(endpoint.front))
    names = form.request_headers
    headers = as_mapping(inbound.call.headers, names) if names else None
    user_agent = inbound.call.named.get(b"user-agent")
    agent = None if user_agent is None else agent_form(form, user_agent)
    if agent is not None:
        return ClientRequest(endpoint.front, body, headers=headers, agent=agent)
    if not endpoint.action:
        return ClientRequest(endpoint.front, body, headers=headers)
    # The path names the model and the action; the query may choose the stream's format.
    path = f"/models/{quote(endpoint.name, safe='')}:{endpoint.action}"
    query = inbound.path.partition("?")[2]
    return ClientRequest(
        endpoint.front, body, model=endpoint.name, stream=endpoint.streams,
        path=f"{path}?{query}" if query else path, headers=headers,
    )  # fmt: skip


async def answer(inbound: InboundRequest, task: UpstreamTask) -> None:
    """Route a request by its model, and respond to the client."""
    filters = await _filters(inbound, task)
    try:
        model = task.requested_model if filters is None else filters.model()
        gateway = inbound.gateway
        route = gateway.router.find(model) or await gateway.route(model)
        inbound.route, inbound.exchange, inbound.routed = route.name, task, perf_counter()
        if isinstance(task, Exchange):
            join_session(inbound, task, route.settings)
        async with Spending(inbound, task, route):
            if filters is None:
                await _answer_from_cache(inbound, task, route)
            else:
                await _answer_with_middleware(inbound, task, route, filters)
    except Stopped as stopped:
        error = stopped.error
    else:
        return
    raise error


async def _filters(inbound: InboundRequest, task: UpstreamTask) -> ExchangeFilters | None:
    """The middleware of a chat; embeddings and token counts don't pass through middleware."""
    middleware = inbound.gateway.middleware
    if middleware is None or not isinstance(task, Exchange) or task.is_free:
        return None
    if not task.supports_middleware:
        msg = (
            "several prompts in one request are not supported with middleware; send them one by one"
        )
        raise InvalidRequest(msg, status=400, param="prompt")
    if task.override is None:
        await task.client_request.decoded()
    front, given = task.client_request.front, task.override or task.client_request.request
    body = task.client_request.body
    request, losses = await translated_aside(body, without_lookalikes, given, front)
    if losses:  # middleware would not see what a provider does
        task.override, task.ignored = request, (*task.ignored, *losses)
    return middleware.start(inbound, task)


async def _answer_with_middleware(
    inbound: InboundRequest, task: UpstreamTask, route: Route, filters: ExchangeFilters
) -> None:
    """Respond, with middleware."""
    try:
        way = await filters.before(route)
        if way is not None:
            inbound.route = way.name
            await _answer_from_cache(inbound, task, way, filters)
    except Stopped as stopped:
        if not task.sink.has_begun:
            raise
        await task.abort(stopped.error)


def _answer_from_cache(
    inbound: InboundRequest,
    task: UpstreamTask,
    route: Route,
    filters: ExchangeFilters | None = None,
) -> Coroutine[Any, Any, None]:
    """Respond from the cache if the route has one, else from the upstreams."""
    if route.settings.cache is None or not isinstance(task, Exchange):
        return _answer_from_upstreams(inbound, task, route)

    async def ask() -> None:
        await _answer_from_upstreams(inbound, task, route)

    return inbound.gateway.cache.answer(inbound, task, route, ask, filters)


async def _answer_from_upstreams(inbound: InboundRequest, task: UpstreamTask, route: Route) -> None:
    gateway = inbound.gateway
    hops: list[Hop] = []
    upstreams: list[tuple[Upstream, str | None]] = []
    for hop in route.order():
        upstream = gateway.upstream(hop.place)
        if task.supports(upstream, hop.model):
            hops.append(hop)
            upstreams.append((upstream, hop.model))
    if not hops:
        raise task.unsupported()
    task.selection = Selection(inbound, route, task.requested_model)
    try:
        used = await task.run(
            upstreams,
            gateway.settings_of(route),
            route.settings.timeouts,
        )
    except DragomanError as error:
        for hop in hops[: task.attempts]:
            route.note_failure(hop, error)
        if not task.sink.has_begun:
            raise
        await task.abort(error)
    else:
        if used or len(hops) > 1:
            for hop, tried in zip(hops[:used], task.tried, strict=False):
                route.note_failure(hop, kind=tried[3])
            route.note_success(hops[used])
