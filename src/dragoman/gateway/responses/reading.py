"""`/v1/responses/{id}`: a stored response is read, streamed, cancelled or deleted."""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidRequest
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.responses import refusals
from dragoman.gateway.responses.creating import Places
from dragoman.gateway.responses.items import listed as listed_item
from dragoman.gateway.responses.paging import fields_of, listed, number_in, page_in
from dragoman.gateway.responses.reading_state import settled
from dragoman.gateway.responses.replaying import replay
from dragoman.gateway.responses.store import ResponseStore, Stored
from dragoman.model.jsontext import dumps

_JSON = {"content-type": "application/json"}


async def response(inbound: InboundRequest) -> None:
    """Whatever is asked of a stored response."""
    endpoint, method = inbound.endpoint, inbound.method
    store = Places.of(inbound).responses
    if store is None:
        raise refusals.no_response(endpoint.name)
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
            msg = "this path takes another method"
            raise InvalidRequest(msg, status=405)
        case _:
            msg = "there is nothing at this path"
            raise InvalidRequest(msg, status=404)


async def _found(inbound: InboundRequest, store: ResponseStore) -> Stored:
    found = await settled(store, inbound.endpoint.name)
    if found is None:
        raise refusals.no_response(inbound.endpoint.name)
    return found


async def _read(inbound: InboundRequest, store: ResponseStore) -> None:
    found = await _found(inbound, store)
    fields = fields_of(inbound.query)
    if fields.get("stream") not in {"true", "1"}:
        await _tell(inbound, found.answer)
        return
    after = -1
    if fields.get("starting_after"):
        after = number_in(fields, "starting_after", 0)
    await inbound.body()  # none; from here on, a client that leaves is noticed
    await replay(inbound, store, found.id, after)


async def _delete(inbound: InboundRequest, store: ResponseStore) -> None:
    id = inbound.endpoint.name
    if not await store.delete(id):
        raise refusals.no_response(id)
    inbound.gateway.background.cancel(id)
    await _tell(inbound, {"id": id, "object": "response", "deleted": True})


async def _cancel(inbound: InboundRequest, store: ResponseStore) -> None:
    found = await _found(inbound, store)
    if not found.asked.background:
        msg = "Only responses that were created with background=true can be cancelled."
        raise refusals.invalid(msg)
    ended = await store.end(found.id, "cancelled")
    if ended is None:
        raise refusals.no_response(found.id)
    inbound.gateway.background.cancel(found.id)
    await _tell(inbound, ended.answer)


async def _list(inbound: InboundRequest, store: ResponseStore) -> None:
    found = await _found(inbound, store)
    asked = found.asked
    items = [listed_item(*pair) for pair in zip(asked.input, asked.ids, strict=True)]
    await _tell(inbound, listed(items, page_in(inbound.query)))


async def _tell(inbound: InboundRequest, body: Any) -> None:
    await inbound.call.respond(200, _JSON, dumps(body))
