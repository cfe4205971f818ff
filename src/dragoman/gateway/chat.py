"""Chats: the endpoints at which clients of every dialect ask for an answer."""

from __future__ import annotations

from time import perf_counter
from urllib.parse import quote

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config.routing import Route
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http import as_mapping
from dragoman.gateway.middleware import ExchangeFilters, Stopped
from dragoman.gateway.sessions import join_session
from dragoman.gateway.spending import Spending
from dragoman.gateway.visits import Visit
from dragoman.gateway.whole_calls import agent_form
from dragoman.gateway.work import Work
from dragoman.wire.dialect import dialect
from dragoman.wire.front import front_form


async def chat(visit: Visit) -> None:
    """Answer a chat."""
    client_request = read_client_request(visit, await visit.body())
    await answer(visit, Exchange(client_request, visit.call, visit.gateway.translations))


def read_client_request(visit: Visit, body: bytes) -> ClientRequest:
    """What the client asks."""
    endpoint = visit.endpoint
    form = front_form(dialect(endpoint.front))
    names = form.request_headers
    headers = as_mapping(visit.call.headers, names) if names else None
    agent = agent_form(form, visit.call.headers) if form.agents else None
    if agent is not None:
        return ClientRequest(endpoint.front, body, headers=headers, agent=agent)
    if not endpoint.action:
        return ClientRequest(endpoint.front, body, headers=headers)
    # The path names the model and what to do with it; the query says in which form.
    path = f"/models/{quote(endpoint.name, safe='')}:{endpoint.action}"
    query = visit.path.partition("?")[2]
    return ClientRequest(
        endpoint.front, body, model=endpoint.name, stream=endpoint.streams,
        path=f"{path}?{query}" if query else path, headers=headers,
    )  # fmt: skip


async def answer(visit: Visit, work: Work) -> None:
    """Answer by the route of the model that is asked for."""
    filters = _filters(visit, work)
    try:
        model = work.asked_model if filters is None else filters.model()
        route = await visit.gateway.route(model)
        visit.route, visit.exchange, visit.routed = route.name, work, perf_counter()
        if isinstance(work, Exchange):
            join_session(visit, work, route.settings)
        async with Spending(visit, work, route):
            await _let_through(visit, work, route, filters)
    except Stopped as stopped:
        error = stopped.error
    else:
        return
    raise error


def _filters(visit: Visit, work: Work) -> ExchangeFilters | None:
    """What middleware does to a chat; embeddings and counts are none of its business."""
    middleware = visit.gateway.middleware
    if middleware is None or not isinstance(work, Exchange) or work.is_free:
        return None
    if not work.takes_filters:
        msg = "several prompts in one request are not taken here; send them one by one"
        raise InvalidRequest(msg, status=400, param="prompt")
    return middleware.meet(visit, work)


async def _let_through(
    visit: Visit, work: Work, route: Route, filters: ExchangeFilters | None
) -> None:
    """Answer as middleware wants it, if there is any."""
    if filters is None:
        await _remembered(visit, work, route)
        return
    try:
        way = await filters.before(route)
        if way is not None:
            visit.route = way.name
            await _remembered(visit, work, way, filters)
    except Stopped as stopped:
        if not work.sink.has_begun:
            raise
        await work.break_off(stopped.error)


async def _remembered(
    visit: Visit, work: Work, route: Route, filters: ExchangeFilters | None = None
) -> None:
    """Answer out of the cache, if the route has one."""
    if route.settings.cache is None or not isinstance(work, Exchange):
        await _answered(visit, work, route)
        return

    async def ask() -> None:
        await _answered(visit, work, route)

    await visit.gateway.cache.answer(visit, work, route, ask, filters)


async def _answered(visit: Visit, work: Work, route: Route) -> None:
    gateway = visit.gateway
    every = [(hop, gateway.upstream(hop.place)) for hop in route.order()]
    suited = [(hop, upstream) for hop, upstream in every if work.suits(upstream, hop.model)]
    if not suited:
        raise work.unsuited()
    hops = [hop for hop, _ in suited]
    try:
        used = await work.run(
            [(upstream, hop.model) for hop, upstream in suited],
            gateway.settings_of(route),
            route.settings.timeouts,
        )
    except DragomanError as error:
        for hop in hops[: work.attempts]:
            route.note_failure(hop, error)
        if not work.sink.has_begun:
            raise
        await work.break_off(error)
    else:
        if used or len(hops) > 1:
            for hop, tried in zip(hops[:used], work.tried, strict=False):
                route.note_failure(hop, kind=tried[3])
            route.note_success(hops[used])
