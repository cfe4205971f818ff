"""`POST /v1/responses`: a request with its state put in, and an answer that is kept."""

from __future__ import annotations

from time import time
from typing import Any, Final

from msgspec import Struct

from dragoman.errors import InvalidRequest
from dragoman.gateway.chat import answer, read_client_request
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.endpoints import RESPONSES
from dragoman.gateway.exchange import Exchange, Stamp
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.responses import refusals
from dragoman.gateway.responses.connections import Connection
from dragoman.gateway.responses.context import Finder, Found, Wanted
from dragoman.gateway.responses.conversations import ConversationStore
from dragoman.gateway.responses.ids import is_own, new_response_id, response_of
from dragoman.gateway.responses.items import REFERENCE, ids_of, items_in, size_of
from dragoman.gateway.responses.keeping import Keeping
from dragoman.gateway.responses.store import Asked, ResponseStore
from dragoman.model.jsontext import dumps, loads

_STATE: Final = frozenset({"previous_response_id", "conversation", "background", "generate"})
_OURS: Final = (*sorted(_STATE), "stream_id")
"""What is said to the gateway, and not sent on."""
_UNSTORED = Stamp(says={"store": False}, is_firm=False)
_SEALED = "reasoning.encrypted_content"
_NOT_THERE = "`background` is not supported over a WebSocket"
_STORES_NOTHING = "background responses are stored: `store` can't be false"


async def create(inbound: InboundRequest) -> None:
    """Answer; with what it continues, and kept where it is to be kept."""
    if inbound.method != "POST":
        msg = "this path takes POST, or a WebSocket"
        raise InvalidRequest(msg, status=405)
    client_request = read_client_request(inbound, await inbound.body())
    if (
        inbound.gateway.histories is None
        and inbound.connection is None
        and not _names_state(client_request)
    ):
        await answer(inbound, _passed_on(inbound, client_request))
        return
    creation = await Creation.of(inbound, client_request)
    if creation is None:  # it is about what the place behind holds
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
    """The exchange of a request that has nothing to do with state of ours."""
    return Exchange(
        client_request,
        inbound.call,
        inbound.gateway.translations,
        stamp=_UNSTORED,
        required_dialect=required_dialect,
    )


def _names_state(client_request: ClientRequest) -> bool:
    return not _STATE.isdisjoint(client_request.fields) or REFERENCE.encode() in client_request.body


class Places(Struct):
    """Where a request's state may be."""

    responses: ResponseStore | None
    conversations: ConversationStore | None
    connection: Connection | None

    @classmethod
    def of(cls, inbound: InboundRequest) -> Places:
        """Those of the key that asks."""
        histories = inbound.gateway.histories
        key = None if inbound.key is None else inbound.key.id
        if histories is None:
            return cls(None, None, inbound.connection)
        conversations = ConversationStore(histories, key)
        return cls(ResponseStore(histories, key), conversations, inbound.connection)


class Creation:
    """A response in the making."""

    def __init__(self, body: dict[str, Any], wanted: Wanted, found: Found, places: Places) -> None:
        self.id = new_response_id()
        self.body = body
        self.wanted = wanted
        self.found = found
        self.places = places
        self.stores = False
        self.is_background = body.get("background") is True
        self.is_warming = places.connection is not None and (
            body.get("generate") is False or not found.whole
        )
        self.client_request: ClientRequest

    @property
    def is_plain(self) -> bool:
        """Whether nothing is stored, and nothing continued."""
        wanted = self.wanted
        is_joined = wanted.previous is not None or wanted.conversation is not None
        is_kept = self.stores or self.places.connection is not None
        return not (is_joined or is_kept or wanted.references)

    @classmethod
    async def of(cls, inbound: InboundRequest, client_request: ClientRequest) -> Creation | None:
        """What is asked, looked up; None where none of it is ours."""
        body = loads(client_request.body)
        wanted, places = wanted_in(body), Places.of(inbound)
        finder = Finder(
            places.responses, places.conversations, places.connection,
            inbound.gateway.config.server.max_body,
        )  # fmt: skip
        if await _is_foreign(wanted, places):
            return None
        made = cls(body, wanted, await finder.find(wanted), places)
        await made._decide(inbound)
        return made

    async def _decide(self, inbound: InboundRequest) -> None:
        """Whether it is stored, and what the model is asked."""
        store = self.body.get("store")
        if store is not None and not isinstance(store, bool):
            msg = "`store` must be true or false"
            raise refusals.invalid(msg, "store")
        route = await inbound.gateway.route(_text(self.body, "model"))
        may = self.places.responses is not None and route.settings.store is not False
        self.stores = may and store is not False and not self.is_warming
        if self.is_background:
            self._expect_background(may=may)
        self.client_request = ClientRequest(RESPONSES, dumps(self._sent()), headers=None)

    def _expect_background(self, *, may: bool) -> None:
        if self.places.connection is not None:
            raise refusals.invalid(_NOT_THERE, "background")
        if not may:
            raise refusals.no_store(param="background")
        if not self.stores:
            raise refusals.invalid(_STORES_NOTHING, "background")

    def _sent(self) -> dict[str, Any]:
        """The body as the model is to get it: with all input, and nothing of our state."""
        sent = {name: value for name, value in self.body.items() if name not in _OURS}
        sent["input"] = self.found.whole
        if self.stores:  # here, and nowhere else; reasoning has to come sealed then (W25)
            sent["store"] = False
            include = sent.get("include")
            known = include if isinstance(include, list) else []
            sent["include"] = known if _SEALED in known else [*known, _SEALED]
        return sent

    @property
    def says(self) -> dict[str, Any]:
        """What the answer says of its state."""
        wanted = self.wanted
        said: dict[str, Any] = {
            "store": self.stores,
            "background": self.is_background,
            "previous_response_id": wanted.previous,
        }
        if wanted.conversation is not None:
            said["conversation"] = {"id": wanted.conversation}
        return said

    def exchange(self, inbound: InboundRequest, sink: Any) -> Exchange:
        """The exchange that answers it."""
        is_kept = self.stores or self.places.connection is not None
        stamp = Stamp(self.id if is_kept else None, self.says)
        return Exchange(self.client_request, sink, inbound.gateway.translations, stamp=stamp)

    def asked(self, created_at: float) -> Asked:
        """What is stored of the request."""
        own = self.found.own
        return Asked(
            created_at=created_at,
            input=own,
            ids=ids_of(own, self.id),
            previous=self.wanted.previous,
            conversation=self.wanted.conversation,
            background=self.is_background,
            stream=self.client_request.stream,
        )

    async def answer(self, inbound: InboundRequest) -> None:
        """Answer, and keep the answer."""
        exchange = self.exchange(inbound, Keeping(inbound.call, self.keep))
        if self.stores and self.places.responses is not None:
            with self.places.responses.awaiting(self.id):
                await answer(inbound, exchange)
        else:
            await answer(inbound, exchange)

    async def keep(self, given: dict[str, Any]) -> None:
        """Keep an answer: in the store, in its conversation, and on its connection."""
        store = self.places.responses
        if self.stores and store is not None and not store.is_deleted(self.id):
            await store.add(self.id, self.asked(time()), given)
        await self.join(given)

    async def join(self, given: dict[str, Any]) -> None:
        """Add an answer that is complete to what it continues."""
        if given.get("status") not in {"completed", "incomplete"}:
            return
        output = [item for item in given.get("output", ()) if isinstance(item, dict)]
        conversation, connection = self.wanted.conversation, self.places.connection
        if conversation is not None and self.places.conversations is not None:
            await self.places.conversations.add(conversation, [*self.found.own, *output])
        if connection is not None:
            link = self.found.link
            before = size_of(self.found.before) if link is None else link.size
            size = before + size_of([*self.found.own, *output])
            connection.remember(self.id, [*self.found.whole, *output], size)

    async def warm(self, inbound: InboundRequest) -> None:
        """Answer without a model: the connection remembers the input."""
        from dragoman.gateway.responses.lifecycle import blank, lifecycle_event

        body = blank(self.client_request, self.id, self.says, "completed")
        await self.join(body)
        begun = {**body, "status": "in_progress", "completed_at": None, "usage": None}
        await inbound.call.begin({"content-type": "text/event-stream"})
        await inbound.call.write(lifecycle_event("response.created", begun, 0))
        await inbound.call.end(lifecycle_event("response.completed", body, 1))


def wanted_in(body: Any) -> Wanted:
    """The state that a body names."""
    previous = _text(body, "previous_response_id")
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    if conversation is not None and not isinstance(conversation, str):
        msg = "`conversation` must be an id, or an object with one"
        raise refusals.invalid(msg, "conversation")
    if previous and conversation:
        msg = "`previous_response_id` and `conversation` can't be used together"
        raise refusals.invalid(msg, "previous_response_id")
    return Wanted(
        previous=previous or None,
        conversation=conversation or None,
        items=items_in(body.get("input")),
    )


async def _is_foreign(wanted: Wanted, places: Places) -> bool:
    """Whether the state that is named was made by the place behind, which knows it."""
    connection = places.connection
    if wanted.previous is not None:
        is_here = connection is not None or is_own(wanted.previous)
        return not is_here
    if wanted.conversation is not None:
        return not is_own(wanted.conversation)
    for id in wanted.references:
        if response_of(id) is not None:
            return False
        if places.responses is not None and await places.responses.item(id) is not None:
            return False
    return bool(wanted.references)


def _text(body: dict[str, Any], name: str) -> str | None:
    found = body.get(name)
    if found is not None and not isinstance(found, str):
        msg = f"`{name}` must be a text"
        raise refusals.invalid(msg, name)
    return found
