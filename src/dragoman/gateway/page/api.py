"""The API behind the page: which view answers at which path, and in what form it fails.

`VIEWS` is the whole table. A view is an async function of a `PageCall`; what it returns is sent as
JSON, a `Content` as it is, and None means that it has answered itself (server-sent events).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from dragoman.errors import (
    AllFailed,
    Conflict,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    LossError,
    NotFound,
    ProviderError,
    TransportError,
    WireError,
)
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.page.calls import HEADERS, Content, PageCall, View
from dragoman.gateway.page.guarding import check
from dragoman.model.jsontext import dumps

_TALK = "dragoman.gateway.page"
VIEWS: dict[str, str | View] = {
    "GET info": f"{_TALK}.facts:info",
    "GET models": f"{_TALK}.facts:models",
    "GET conversations": f"{_TALK}.conversations:listed",
    "POST conversations": f"{_TALK}.conversations:made",
    "GET conversations/{id}": f"{_TALK}.conversations:opened",
    "PATCH conversations/{id}": f"{_TALK}.conversations:changed",
    "DELETE conversations/{id}": f"{_TALK}.conversations:deleted",
    "POST conversations/{id}/fork": f"{_TALK}.conversations:forked",
    "GET conversations/{id}/sent": f"{_TALK}.sent:sent",
    "GET conversations/{id}/export": f"{_TALK}.transfers:exported",
    "POST import": f"{_TALK}.transfers:imported",
    "POST forget": f"{_TALK}.conversations:forgotten",
    "GET media/{id}/{message}/{place}": f"{_TALK}.media:media",
    "POST lens": f"{_TALK}.lens:lens",
    "POST snippet": f"{_TALK}.code_snippets:snippet",
    "GET rules": f"{_TALK}.rule_texts:rules",
    "GET traffic": f"{_TALK}.traffic:listed",
    "GET traffic/live": f"{_TALK}.traffic:live",
    "GET traffic/series": f"{_TALK}.traffic:series",
    "GET traffic/{id}": f"{_TALK}.traffic:shown",
    "GET keys": f"{_TALK}.keys_and_routes:keys",
    "POST keys": f"{_TALK}.keys_and_routes:made",
    "POST keys/{id}/revoke": f"{_TALK}.keys_and_routes:revoked",
    "GET keys/{id}/usage": f"{_TALK}.keys_and_routes:usage",
    "GET routes": f"{_TALK}.keys_and_routes:routes",
    "POST talk": f"{_TALK}.talk:talk",
    "POST talk/{run}/approve": f"{_TALK}.talk:approve",
    "POST talk/{run}/stop": f"{_TALK}.talk:stop",
}
"""By method and path: a view, or where one is (`module:name`), loaded when it is first asked for.

A place in a path, `{name}`, stands for one segment; a path that is spelled out comes first.
"""

_STATUSES: tuple[tuple[type[DragomanError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (InvalidInputError, 400),
    (WireError, 400),
    (LossError, 400),
    (AllFailed, 502),
    (TransportError, 502),
)
_SERVER = 500
_JSON = {"content-type": "application/json", **HEADERS}
_NOTHING = "there is nothing at this path"


class _Found(NamedTuple):
    key: str
    names: dict[str, str]


async def page_api(inbound: InboundRequest) -> None:
    """Answer a request to the API."""
    check(inbound)
    found = _find(inbound.method, inbound.endpoint.name)
    answer = await _view(found.key)(PageCall(inbound, found.names))
    if isinstance(answer, Content):
        headers = {**HEADERS, "content-type": answer.mime, **answer.headers}
        await inbound.call.respond(200, headers, answer.body)
    elif not inbound.call.has_begun:
        await inbound.call.respond(200, _JSON, dumps({} if answer is None else answer))


def error_body(error: DragomanError) -> dict[str, dict[str, str]]:
    """What the page is told of an error; none of them quotes content."""
    return {"error": {"message": str(error), "kind": type(error).__name__}}


def error_status(error: DragomanError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, ProviderError):
        return error.status or 502
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), _SERVER)


async def refuse(inbound: InboundRequest, error: DragomanError) -> None:
    """Tell the page what is wrong, in its own form."""
    await inbound.call.respond(error_status(error), _JSON, dumps(error_body(error)))


# --- finding the view


def _find(method: str, path: str) -> _Found:
    segments = path.split("/")
    allowed: list[str] = []
    for key in sorted(VIEWS, key=lambda key: key.count("{")):
        verb, _, pattern = key.partition(" ")
        names = _matched(pattern.split("/"), segments)
        if names is None:
            continue
        if verb == method:
            return _Found(key, names)
        allowed.append(verb)
    if allowed:
        msg = f"this path takes {', '.join(sorted(allowed))}"
        raise InvalidRequest(msg, status=405)
    raise InvalidRequest(_NOTHING, status=404)


def _matched(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    names: dict[str, str] = {}
    for wanted, segment in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            if not segment:
                return None
            names[wanted[1:-1]] = segment
        elif wanted != segment:
            return None
    return names


def _view(key: str) -> View:
    """The view at a key; its module is loaded once."""
    found = VIEWS[key]
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = VIEWS[key] = getattr(import_module(module), name)
    return found


def registered(views: Mapping[str, str | View]) -> None:
    """Add views to the table."""
    VIEWS.update(views)
