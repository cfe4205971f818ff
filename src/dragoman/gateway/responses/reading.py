"""`/v1/responses/{id}`: reads, streams, cancels or deletes a stored response."""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidRequest
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.responses import state_errors
from dragoman.gateway.responses.creating import StateStores
from dragoman.gateway.responses.current_response import load_current
from dragoman.gateway.responses.items import listed as listed_item
from dragoman.gateway.responses.paging import fields_of, listed, number_in, page_in
from dragoman.gateway.responses.replaying import replay
from dragoman.gateway.responses.store import ResponseStore, StoredResponse
from dragoman.model.jsontext import dumps

_JSON = {"content-type": "application/json"}


async def response(inbound: InboundRequest) -> None:
    """Handles all requests for a stored response."""
    endpoint, method = inbound.endpoint, inbound.method
    store = StateStores.of(inbound).responses
    if store is None:
        raise state_errors.no_response(endpoint.name, state_errors.NOT_KEPT)
    match endpoint.action, method:
        case "", "GET":
            await _read(inbound, store)
        case "", "DELETE":
            await _delete(inbound, store)
        case "cancel", "POST":
            await _cancel(inbound, store)
        case "input_items", "GET":
            await _list(inbound, store)
        case "" | "cancel" | "input_items", _:
            msg = "this path does not support the request's method"
            raise InvalidRequest(msg, status=405)
        case _:
            msg = "there is no endpoint at this path"
            raise InvalidRequest(msg, status=404)


async def _found(inbound: InboundRequest, store: ResponseStore) -> StoredResponse:
    found = await load_current(store, inbound.endpoint.name)
    if found is None:
        raise state_errors.no_response(inbound.endpoint.name, store.retention)
    return found


async def _read(inbound: InboundRequest, store: ResponseStore) -> None:
    found = await _found(inbound, store)
    fields = fields_of(inbound.query)
    if fields.get("stream") not in {"true", "1"}:
        await _send(inbound, found.answer)
        return
    after = -1
    if fields.get("starting_after"):
        after = number_in(fields, "starting_after", 0)
    await inbound.body()  # empty; from here on, a disconnect is noticed
    await replay(inbound, store, found.id, after)


async def _delete(inbound: InboundRequest, store: ResponseStore) -> None:
    id = inbound.endpoint.name
    if not await store.delete(id):
        raise state_errors.no_response(id, store.retention)
    inbound.gateway.background.cancel(id)
    await _send(inbound, {"id": id, "object": "response", "deleted": True})


async def _cancel(inbound: InboundRequest, store: ResponseStore) -> None:
    found = await _found(inbound, store)
    if not found.request.background:
        msg = "Only responses that were created with background=true can be cancelled."
        raise state_errors.invalid(msg)
    ended = await store.end(found.id, "cancelled")
    if ended is None:
        raise state_errors.no_response(found.id, store.retention)
    inbound.gateway.background.cancel(found.id)
    await _send(inbound, ended.answer)


async def _list(inbound: InboundRequest, store: ResponseStore) -> None:
    found = await _found(inbound, store)
    request = found.request
    items = [listed_item(*pair) for pair in zip(request.input, request.ids, strict=True)]
    await _send(inbound, listed(items, page_in(inbound.query)))


async def _send(inbound: InboundRequest, body: Any) -> None:
    await inbound.call.respond(200, _JSON, dumps(body))
