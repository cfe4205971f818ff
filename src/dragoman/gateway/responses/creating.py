"""`POST /v1/responses`: resolves the request's state and stores the response."""

from __future__ import annotations

from time import time
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.errors import InvalidRequest, ModelNotFound
from dragoman.gateway.chat import answer, read_client_request
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.config.routing import Route
from dragoman.gateway.endpoints import RESPONSES
from dragoman.gateway.exchange import Exchange, Stamp
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import (
    LARGE,
    MANY,
    aside,
    aside_if_large,
    has_more_values,
    translated_aside,
)
from dragoman.gateway.responses import state_errors
from dragoman.gateway.responses.connections import Connection
from dragoman.gateway.responses.context import ResolvedState, StateReferences, StateResolver
from dragoman.gateway.responses.conversations import ConversationStore
from dragoman.gateway.responses.ids import is_own, new_response_id, response_of
from dragoman.gateway.responses.items import REFERENCE, ids_of, items_in, size_of
from dragoman.gateway.responses.store import ResponseStore, StoredRequest
from dragoman.gateway.responses.storing_sink import StoringSink
from dragoman.gateway.state import Gateway
from dragoman.model.jsontext import dumps, loads
from dragoman.wire.losses import Loss

_STATE: Final = frozenset({"previous_response_id", "conversation", "background", "generate"})
_value: Final = msgspec.json.Decoder().decode
_OURS: Final = (*sorted(_STATE), "stream_id")
"""Fields for the gateway that are not sent upstream."""
_UNSTORED = Stamp(says={"store": False}, is_firm=False)
_SETTLED: Final = frozenset({"state.store"})
"""Settings that the gateway carries out itself, wherever the response is from."""
_SEALED = "reasoning.encrypted_content"
_NO_BACKGROUND = "`background` is not supported over a WebSocket"
_MUST_STORE = "background responses are always stored: `store` can't be false"


async def create(inbound: InboundRequest) -> None:
    """Handles `POST /v1/responses`, with stored state where the request uses it."""
    if inbound.method != "POST":
        inbound.call.more_headers["allow"] = "POST"
        msg = "this path supports only POST or a WebSocket connection"
        raise InvalidRequest(msg, status=405)
    client_request = await read_client_request(inbound, await inbound.body())
    if (
        inbound.connection is None
        and not _names_state(client_request)
        and not await _may_store(inbound.gateway, client_request)
    ):
        await answer(inbound, _passed_on(inbound, client_request))
        return
    creation = await Creation.of(inbound, client_request)
    if creation is None:  # it refers to state of the upstream provider
        await answer(
            inbound, _passed_on(inbound, client_request, required_dialect=client_request.front.name)
        )
    elif creation.is_plain:
        await answer(inbound, _passed_on(inbound, client_request))
    elif creation.is_background:
        from dragoman.gateway.responses.background import run_in_background

        await run_in_background(inbound, creation)
    elif creation.is_warming:
        await creation.warm(inbound)
    else:
        await creation.answer(inbound)


def _passed_on(
    inbound: InboundRequest, client_request: ClientRequest, required_dialect: str | None = None
) -> Exchange:
    """Returns the exchange of a request that doesn't use the gateway's state."""
    return Exchange(
        client_request,
        inbound.call,
        inbound.gateway.translations,
        stamp=_UNSTORED,
        required_dialect=required_dialect,
    )


def _names_state(client_request: ClientRequest) -> bool:
    return not _STATE.isdisjoint(client_request.fields) or REFERENCE.encode() in client_request.body


async def _may_store(gateway: Gateway, client_request: ClientRequest) -> bool:
    """Whether the response to a request that names no state may be stored here."""
    if gateway.histories is not None:
        return True
    if not gateway.recent.is_on:
        return False
    try:
        store = _value(client_request.fields.get("store", b"null"))
        return is_kept_in_memory(gateway, await gateway.route(client_request.model), store)
    except (msgspec.MsgspecError, UnicodeDecodeError, ModelNotFound):
        return False  # `answer` raises an error that says what is wrong, unless middleware helps


def is_kept_in_memory(gateway: Gateway, route: Route, store: Any) -> bool:
    """Whether a response that continues nothing is kept without a history store.

    Not where its provider stores it, and not in place of a cache: only if the client says so.
    """
    if store is False or (store is None and route.settings.cache is not None):
        return False
    return not any(
        upstream.is_wire and upstream.dialect(hop.model).name == RESPONSES
        for hop in route.hops
        for upstream in (gateway.upstream(hop.place),)
    )


class StateStores(Struct):
    """The stores where a request's state may be."""

    responses: ResponseStore | None
    conversations: ConversationStore | None
    connection: Connection | None

    @classmethod
    def of(cls, inbound: InboundRequest) -> StateStores:
        """Returns the stores of the request's key."""
        histories, recent = inbound.gateway.histories, inbound.gateway.recent
        key = None if inbound.key is None else inbound.key.id
        if histories is not None:
            conversations = ConversationStore(histories, key)
            return cls(ResponseStore(histories, key), conversations, inbound.connection)
        if recent.is_on:
            return cls(ResponseStore(recent, key), None, inbound.connection)
        return cls(None, None, inbound.connection)


class Creation:
    """A response that is being created."""

    def __init__(
        self,
        body: dict[str, Any],
        wanted: StateReferences,
        found: ResolvedState,
        state: StateStores,
    ) -> None:
        self.id = new_response_id()
        self.body = body
        self.wanted = wanted
        self.found = found
        self.state = state
        self.stores = False
        self._size = LARGE + 1
        self.is_background = body.get("background") is True
        self.is_warming = state.connection is not None and (
            body.get("generate") is False or not found.whole
        )
        self.client_request: ClientRequest

    @property
    def is_plain(self) -> bool:
        """Whether the request neither stores nor continues anything."""
        wanted = self.wanted
        is_joined = wanted.previous is not None or wanted.conversation is not None
        is_kept = self.stores or self.state.connection is not None
        return not (is_joined or is_kept or wanted.references)

    @classmethod
    async def of(cls, inbound: InboundRequest, client_request: ClientRequest) -> Creation | None:
        """Resolves a request; None if its state belongs to the upstream provider."""
        raw, state = client_request.body, StateStores.of(inbound)
        body, wanted = await translated_aside(raw, _with_references, raw)
        resolver = StateResolver(
            state.responses, state.conversations, state.connection,
            inbound.gateway.config.server.max_body,
        )  # fmt: skip
        if await _is_foreign(wanted, state):
            return None
        made = cls(body, wanted, await resolver.resolve(wanted), state)
        made._size = len(raw) if not has_more_values(raw, MANY) else LARGE + 1
        await made._decide(inbound.gateway, client_request.losses, len(raw))
        return made

    async def _decide(self, gateway: Gateway, losses: tuple[Loss, ...], size: int) -> None:
        """Decides whether the response is stored, and builds the upstream request."""
        store = self.body.get("store")
        if store is not None and not isinstance(store, bool):
            msg = "`store` must be true or false"
            raise state_errors.invalid(msg, "store")
        route = await gateway.route(_text(self.body, "model"))
        may = self.state.responses is not None and route.settings.store is not False
        self.stores = may and store is not False and not self.is_warming
        if gateway.histories is None:
            is_fitting = self._continues or is_kept_in_memory(gateway, route, store)
            self.stores = self.stores and is_fitting and size <= gateway.recent.most_input
        if self.is_background:
            self._expect_background(may=may and gateway.histories is not None)
        is_alone = not self.found.before and not self.wanted.references
        self.client_request = await aside_if_large(
            self._size if is_alone else LARGE + 1,
            lambda: ClientRequest(RESPONSES, dumps(self._sent()), headers=None),
        )
        self.client_request.losses = losses

    @property
    def _continues(self) -> bool:
        """Whether it refers to responses that are stored here."""
        is_linked = self.wanted.previous is not None and self.found.link is None
        return is_linked or bool(self.wanted.references)

    def _expect_background(self, *, may: bool) -> None:
        if self.state.connection is not None:
            raise state_errors.invalid(_NO_BACKGROUND, "background")
        if not may:
            raise state_errors.no_store(param="background")
        if not self.stores:
            raise state_errors.invalid(_MUST_STORE, "background")

    def _sent(self) -> dict[str, Any]:
        """Returns the upstream body: with the full input, and without gateway fields."""
        sent = {name: value for name, value in self.body.items() if name not in _OURS}
        sent["input"] = self.found.whole
        if self.stores:  # only here, not upstream; so reasoning must come back encrypted (W25)
            sent["store"] = False
            include = sent.get("include")
            known = include if isinstance(include, list) else []
            sent["include"] = known if _SEALED in known else [*known, _SEALED]
        return sent

    @property
    def says(self) -> dict[str, Any]:
        """The response's fields about its state."""
        wanted = self.wanted
        fields: dict[str, Any] = {
            "store": self.stores,
            "background": self.is_background,
            "previous_response_id": wanted.previous,
        }
        if wanted.conversation is not None:
            fields["conversation"] = {"id": wanted.conversation}
        return fields

    def exchange(self, inbound: InboundRequest, sink: Any) -> Exchange:
        """Returns the exchange that produces the response."""
        is_kept = self.stores or self.state.connection is not None
        settled = _SETTLED if self.stores else frozenset()
        stamp = Stamp(self.id if is_kept else None, self.says, settled=settled)
        return Exchange(self.client_request, sink, inbound.gateway.translations, stamp=stamp)

    def stored_request(self, created_at: float) -> StoredRequest:
        """Returns the stored part of the request."""
        own = self.found.own
        return StoredRequest(
            created_at=created_at,
            input=own,
            ids=ids_of(own, self.id),
            previous=self.wanted.previous,
            conversation=self.wanted.conversation,
            background=self.is_background,
            stream=self.client_request.stream,
        )

    async def answer(self, inbound: InboundRequest) -> None:
        """Produces the response and stores it."""
        exchange = self.exchange(inbound, StoringSink(inbound.call, self.keep))
        if self.stores and self.state.responses is not None:
            with self.state.responses.awaiting(self.id):
                await answer(inbound, exchange)
        else:
            await answer(inbound, exchange)

    async def keep(self, given: dict[str, Any], size: int) -> None:
        """Stores a response of that many bytes; adds it to its conversation and connection."""
        store = self.state.responses
        if self.stores and store is not None and not store.is_deleted(self.id):
            asked = await aside_if_large(self._size, self.stored_request, time())
            await store.add(self.id, asked, given, size=self._size + size)
        await self.join(given)

    async def join(self, given: dict[str, Any]) -> None:
        """Adds a finished response to its conversation and connection."""
        if given.get("status") not in {"completed", "incomplete"}:
            return
        output = [item for item in given.get("output", ()) if isinstance(item, dict)]
        conversation, connection = self.wanted.conversation, self.state.connection
        if conversation is not None and self.state.conversations is not None:
            await self.state.conversations.add(conversation, [*self.found.own, *output])
        if connection is not None:
            link = self.found.link
            before = await aside(size_of, self.found.before) if link is None else link.size
            size = before + await aside(size_of, [*self.found.own, *output])
            connection.remember(self.id, [*self.found.whole, *output], size)

    async def warm(self, inbound: InboundRequest) -> None:
        """Responds without calling a model; the connection remembers the input."""
        from dragoman.gateway.responses.lifecycle import blank, lifecycle_event

        body = blank(self.client_request, self.id, self.says, "completed")
        await self.join(body)
        begun = {**body, "status": "in_progress", "completed_at": None, "usage": None}
        await inbound.call.begin({"content-type": "text/event-stream"})
        await inbound.call.write(lifecycle_event("response.created", begun, 0))
        await inbound.call.end(lifecycle_event("response.completed", body, 1))


def _with_references(raw: bytes) -> tuple[Any, StateReferences]:
    body = loads(raw)
    return body, state_references(body)


def state_references(body: Any) -> StateReferences:
    """Returns the state that a body refers to."""
    previous = _text(body, "previous_response_id")
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    if conversation is not None and not isinstance(conversation, str):
        msg = "`conversation` must be an id, or an object with one"
        raise state_errors.invalid(msg, "conversation")
    if previous and conversation:
        msg = "`previous_response_id` and `conversation` can't be used together"
        raise state_errors.invalid(msg, "previous_response_id")
    return StateReferences(
        previous=previous or None,
        conversation=conversation or None,
        items=items_in(body.get("input")),
    )


async def _is_foreign(wanted: StateReferences, state: StateStores) -> bool:
    """Whether the state belongs to the upstream provider rather than the gateway."""
    connection = state.connection
    if wanted.previous is not None:
        is_here = connection is not None or is_own(wanted.previous)
        return not is_here
    if wanted.conversation is not None:
        return not is_own(wanted.conversation)
    for id in wanted.references:
        if response_of(id) is not None:
            return False
        if state.responses is not None and await state.responses.item(id) is not None:
            return False
    return bool(wanted.references)


def _text(body: dict[str, Any], name: str) -> str | None:
    found = body.get(name)
    if found is not None and not isinstance(found, str):
        msg = f"`{name}` must be a string"
        raise state_errors.invalid(msg, name)
    return found
