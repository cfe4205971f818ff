"""What the page shows of a request that was sent, at once and later."""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import Any

from dragoman.errors import DragomanError, InvalidRequest, ModelNotFound, NotFound
from dragoman.gateway.page.branches import Branches, BranchPage
from dragoman.gateway.page.calls import PageCall
from dragoman.gateway.page.conversations import found_in
from dragoman.gateway.page.gateway_info import page_tools
from dragoman.gateway.page.routed import PlacedModel, places_of
from dragoman.gateway.page.views import view_of
from dragoman.gateway.state import Gateway
from dragoman.history.branches import read_tail, stretches
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.history.live_windows import Window
from dragoman.history.storage.protocol import NO_MESSAGE, Storage
from dragoman.interop.text_files import stamp_of
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.providers.documents.naming import Named
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Loss, Repair

# --- stored messages, and a summary of the request sent

_MAX_NOTES = 200


class Viewer:
    """Builds the views of one conversation's messages, each with its sibling branches."""

    def __init__(self, storage: Storage, identity: SessionIdentity, branches: Branches) -> None:
        self._storage, self._identity, self._branches = storage, identity, branches

    async def view(self, message: Message) -> dict[str, Any]:
        """Returns the view of a stored message."""
        view = view_of(message, self._identity.digest)
        view["created_at"] = message.created_at or time()
        session = await self._storage.session(self._identity)
        if session is None or not session.forks:
            return view
        row = await self._storage.row(self._identity, message.id)
        if row is None:
            return view
        path = stretches(session, row.branch, row.seq)
        rows = await read_tail(self._storage, self._identity, path, 2)
        found = BranchPage([row], rows[0] if len(rows) > 1 else None, has_more=False)
        siblings = (await self._branches.siblings(session, found)).get(row.id)
        if siblings:
            view |= {"siblings": siblings, "sibling": siblings.index(row.branch)}
        return view


def sent_view(place: PlacedModel, request: Request, omitted: int) -> dict[str, Any]:
    """Summarises the request sent to a provider. The body is available at a separate endpoint."""
    try:
        encoded = place.encoded(request)
    except DragomanError:  # an in-process model accepts what can't be encoded
        return {"dialect": place.dialect, "losses": [], "repairs": [], "omitted": omitted}
    return {
        "dialect": place.dialect,
        "target": place.name,
        "omitted": omitted,
        **notes_of(encoded),
    }


def notes_of(encoded: Encoded) -> dict[str, Any]:
    """Returns the losses and repairs of an encoded request, up to a limit."""
    return {
        "losses": [loss_view(each) for each in encoded.losses[:_MAX_NOTES]],
        "repairs": [repair_view(each) for each in encoded.repairs[:_MAX_NOTES]],
    }


def loss_view(loss: Loss) -> dict[str, Any]:
    """Returns the view of a loss."""
    return {"path": loss.path, "reason": loss.reason}


def repair_view(repair: Repair) -> dict[str, Any]:
    """Returns the view of a repair."""
    return {
        "path": repair.path, "rule": repair.rule, "action": repair.action, "reason": repair.reason,
    }  # fmt: skip


# --- the request, encoded once more

_NO_RESPONSE = "this message is not a model's response"
_UNKNOWN_MODEL = "the gateway no longer knows the model of this response"
_SETTINGS = ("max_tokens", "temperature", "thinking")


async def sent(call: PageCall) -> Any:
    """Returns the request that was sent for a response."""
    storage, session = await found_in(call)
    history = await ChatHistory.open(session.identity, storage)
    id = call.query.get("message", "")
    if not id:
        raise NotFound(NO_MESSAGE)
    path = await history.path(id)
    answer = path.last
    if answer is None or answer.role is not Role.ASSISTANT:
        raise InvalidRequest(_NO_RESPONSE, status=400)
    return await _encoded(call.gateway, history, path[:-1], answer)


async def _encoded(
    gateway: Gateway, history: ChatHistory, before: Messages, answer: Message
) -> dict[str, Any]:
    stamp = stamp_of(answer)
    request = _request(stamp)
    place = await _place(gateway, stamp, answer)
    name = place.name if place is not None else _origin(answer)
    window = await _window(history, before, name, request)
    request = request.replace(messages=tuple(window))
    if place is not None:
        encoded, dialect = place.encoded(request), place.dialect
    else:
        named = Named(name)
        spoken, target = named.fitting(named.model)
        encoded = spoken.encode_request(request.replace(model=named.model), target)
        dialect = spoken.name
    return {
        "dialect": dialect,
        "target": name,
        "path": encoded.path,
        "body": encoded.body,
        "omitted": window.omitted,
        **notes_of(encoded),
    }


async def _window(history: ChatHistory, before: Messages, name: str, request: Request) -> Window:
    """Truncates the earlier messages to the model's window, exactly as sending does."""
    copied = ChatHistory(history.identity, "memory:")
    async with copied:
        if before:
            await copied.extend(before)
        return await copied.window(name, tools=request.tools, system=request.system)


# --- the settings of the request


def _request(stamp: Mapping[str, Any]) -> Request:
    system, settings = stamp.get("system"), stamp.get("settings")
    given = settings if isinstance(settings, dict) else {}
    made = Request(stream=True).with_settings(
        **{name: given[name] for name in _SETTINGS if name in given}
    )
    if isinstance(system, str):
        made = made.replace(system=(Text(system),))
    if stamp.get("tools") is True:
        made = made.replace(tools=tuple(each.definition for each in page_tools()))
    return made


async def _place(gateway: Gateway, stamp: Mapping[str, Any], answer: Message) -> PlacedModel | None:
    """Returns the provider that responded, or None if the gateway no longer has it."""
    asked, origin = stamp.get("model"), answer.origin
    if not isinstance(asked, str):
        return None
    try:
        places = places_of(gateway, await gateway.route(asked))
    except ModelNotFound:
        return None
    wanted = None if origin is None else origin.provider
    same = (each for each in places if each.upstream.provider_name == wanted)
    return next(same, places[0] if places else None)


def _origin(answer: Message) -> str:
    """Returns `provider:model` from the response's own origin."""
    origin = answer.origin
    if origin is None or origin.provider is None:
        raise InvalidRequest(_UNKNOWN_MODEL, status=404)
    return f"{origin.provider}:{origin.model or ''}"
