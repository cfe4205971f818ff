"""`/v1/conversations`: creates, reads, changes and deletes conversations and their items."""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidInputError, InvalidRequest
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import translated_aside
from dragoman.gateway.responses import state_errors
from dragoman.gateway.responses.conversations import ConversationStore
from dragoman.gateway.responses.creating import StateStores
from dragoman.gateway.responses.items import items_in, metadata_in, reference_in
from dragoman.gateway.responses.items import listed as listed_item
from dragoman.gateway.responses.paging import listed, page_in
from dragoman.gateway.responses.store import ResponseStore
from dragoman.model.jsontext import dumps, loads

_JSON = {"content-type": "application/json"}
_MAX_ADDED = 20


async def conversations(inbound: InboundRequest) -> None:
    """Handles all requests to `/v1/conversations`."""
    state, endpoint = StateStores.of(inbound), inbound.endpoint
    store = state.conversations
    if store is None:
        if not endpoint.name:
            raise state_errors.no_store(param="conversation")
        raise state_errors.no_conversation(endpoint.name)
    folder, _, item = endpoint.action.partition("/")
    if not endpoint.name:
        body = await _create(inbound, state)
    elif not endpoint.action:
        body = await _one(inbound, store)
    elif folder == "items" and not item:
        body = await _items(inbound, state)
    elif folder == "items" and "/" not in item:
        body = await _item(inbound, store, item)
    else:
        msg = "there is no endpoint at this path"
        raise InvalidRequest(msg, status=404)
    await inbound.call.respond(200, _JSON, dumps(body))


async def _create(inbound: InboundRequest, state: StateStores) -> Any:
    given = await _body(inbound)
    assert state.conversations is not None  # noqa: S101 - checked in `conversations`
    items = await _given(given.get("items"), state.responses)
    return await state.conversations.create(metadata_in(given.get("metadata")), items)


async def _one(inbound: InboundRequest, store: ConversationStore) -> Any:
    id = inbound.endpoint.name
    match inbound.method:
        case "GET" | "HEAD":
            return await store.head(id)
        case "POST":
            return await store.update(id, metadata_in((await _body(inbound)).get("metadata")))
        case _:
            await store.delete(id)
            return {"id": id, "object": "conversation.deleted", "deleted": True}


async def _items(inbound: InboundRequest, state: StateStores) -> Any:
    id, store = inbound.endpoint.name, state.conversations
    assert store is not None  # noqa: S101 - checked in `conversations`
    if inbound.method == "POST":
        await store.head(id)
        given = await _given((await _body(inbound)).get("items"), state.responses)
        added = await store.add(id, given)
        shown = [listed_item(each, each["id"]) for each in added]
        return {
            "object": "list", "data": shown, "has_more": False,
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
        }  # fmt: skip
    if inbound.method == "DELETE":
        raise _other_method()
    items = [listed_item(each, each["id"]) for each in await store.items(id)]
    return listed(items, page_in(inbound.query))


async def _item(inbound: InboundRequest, store: ConversationStore, item: str) -> Any:
    id = inbound.endpoint.name
    match inbound.method:
        case "GET" | "HEAD":
            found = await store.item(id, item)
            return listed_item(found, found["id"])
        case "DELETE":
            await store.remove(id, item)
            return await store.head(id)
        case _:
            raise _other_method()


async def _given(given: Any, responses: ResponseStore | None) -> list[dict[str, Any]]:
    """Returns the items that a client adds; resolves references to stored items."""
    if isinstance(given, str):
        msg = "`items` must be a list"
        raise state_errors.invalid(msg, "items")
    found: list[dict[str, Any]] = []
    for item in items_in(given, "items"):
        id = reference_in(item)
        target = item if id is None or responses is None else await responses.item(id)
        if target is None:
            raise state_errors.no_item(id or "", "items")
        found.append(target)
    if len(found) > _MAX_ADDED:
        msg = f"at most {_MAX_ADDED} items can be added per request"
        raise state_errors.invalid(msg, "items")
    return found


async def _body(inbound: InboundRequest) -> dict[str, Any]:
    raw = await inbound.body()
    try:
        found = await translated_aside(raw, loads, raw) if raw.strip() else {}
    except InvalidInputError:
        found = None
    if not isinstance(found, dict):
        msg = "the request body must be a JSON object"
        raise state_errors.invalid(msg)
    return found


def _other_method() -> InvalidRequest:
    return InvalidRequest("this path does not support the request's method", status=405)
