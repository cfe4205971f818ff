"""Chats: the endpoints at which clients of every dialect ask for an answer."""

from __future__ import annotations

from time import perf_counter
from urllib.parse import quote

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config.routing import Route
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http import as_mapping
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.middleware import ExchangeFilters, Stopped
from dragoman.gateway.sessions import join_session
from dragoman.gateway.spending import Spending
from dragoman.gateway.upstream_task import UpstreamTask
from dragoman.gateway.whole_calls import agent_form
from dragoman.wire.dialect import dialect
from dragoman.wire.front import front_form


async def chat(inbound: InboundRequest) -> None:
    """Answer a chat."""
    client_request = read_client_request(inbound, await inbound.body())
    await answer(inbound, Exchange(client_request, inbound.call, inbound.gateway.translations))


def read_client_request(inbound: InboundRequest, body: bytes) -> ClientRequest:
    """What the client asks."""
    endpoint = inbound.endpoint
    form = front_form(dialect(endpoint.front))
    names = form.request_headers
    headers = as_mapping(inbound.call.headers, names) if names else None
    agent = agent_form(form, inbound.call.headers) if form.agents else None
    if agent is not None:
        return ClientRequest(endpoint.front, body, headers=headers, agent=agent)
    if not endpoint.action:
        return ClientRequest(endpoint.front, body, headers=headers)
    # The path names the model and what to do with it; the query says in which form.
    path = f"/models/{quote(endpoint.name, safe='')}:{endpoint.action}"
    query = inbound.path.partition("?")[2]
    return ClientRequest(
        endpoint.front, body, model=endpoint.name, stream=endpoint.streams,
        path=f"{path}?{query}" if query else path, headers=headers,
    )  # fmt: skip


async def answer(inbound: InboundRequest, task: UpstreamTask) -> None:
    """Answer by the route of the model that is asked for."""
    filters = _filters(inbound, task)
    try:
        model = task.requested_model if filters is None else filters.model()
        route = await inbound.gateway.route(model)
        inbound.route, inbound.exchange, inbound.routed = route.name, task, perf_counter()
        if isinstance(task, Exchange):
            join_session(inbound, task, route.settings)
        async with Spending(inbound, task, route):
            await _let_through(inbound, task, route, filters)
    except Stopped as stopped:
        error = stopped.error
    else:
        return
    raise error


def _filters(inbound: InboundRequest, task: UpstreamTask) -> ExchangeFilters | None:
    """What middleware does to a chat; embeddings and counts are none of its business."""
    middleware = inbound.gateway.middleware
    if middleware is None or not isinstance(task, Exchange) or task.is_free:
        return None
    if not task.supports_middleware:
        msg = "several prompts in one request are not taken here; send them one by one"
        raise InvalidRequest(msg, status=400, param="prompt")
    return middleware.start(inbound, task)


async def _let_through(
    inbound: InboundRequest, task: UpstreamTask, route: Route, filters: ExchangeFilters | None
) -> None:
    """Answer as middleware wants it, if there is any."""
    if filters is None:
        await _remembered(inbound, task, route)
        return
    try:
        way = await filters.before(route)
        if way is not None:
            inbound.route = way.name
            await _remembered(inbound, task, way, filters)
    except Stopped as stopped:
        if not task.sink.has_begun:
            raise
        await task.abort(stopped.error)


async def _remembered(
    inbound: InboundRequest,
    task: UpstreamTask,
    route: Route,
    filters: ExchangeFilters | None = None,
) -> None:
    """Answer out of the cache, if the route has one."""
    if route.settings.cache is None or not isinstance(task, Exchange):
        await _answered(inbound, task, route)
        return

    async def ask() -> None:
        await _answered(inbound, task, route)

    await inbound.gateway.cache.answer(inbound, task, route, ask, filters)


async def _answered(inbound: InboundRequest, task: UpstreamTask, route: Route) -> None:
    gateway = inbound.gateway
    every = [(hop, gateway.upstream(hop.place)) for hop in route.order()]
    suited = [(hop, upstream) for hop, upstream in every if task.supports(upstream, hop.model)]
    if not suited:
        raise task.unsupported()
    hops = [hop for hop, _ in suited]
    try:
        used = await task.run(
            [(upstream, hop.model) for hop, upstream in suited],
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
