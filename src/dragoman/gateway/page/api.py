"""The page's API: the routing table and the format of errors.

`VIEWS` lists all endpoints. A view is an async function that takes a `PageCall`. Its return value
is sent as JSON, a `Content` is sent as is, and None means that the view has sent its own response
(server-sent events).
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
from dragoman.gateway.page.access import check
from dragoman.gateway.page.calls import HEADERS, Content, PageCall, View
from dragoman.gateway.page.errors import error_view
from dragoman.model.jsontext import dumps

_PACKAGE = "dragoman.gateway.page"
VIEWS: dict[str, str | View] = {
    "GET info": f"{_PACKAGE}.gateway_info:info",
    "GET models": f"{_PACKAGE}.gateway_info:models",
    "GET conversations": f"{_PACKAGE}.conversations:listed",
    "POST conversations": f"{_PACKAGE}.conversations:made",
    "GET conversations/{id}": f"{_PACKAGE}.conversations:opened",
    "PATCH conversations/{id}": f"{_PACKAGE}.conversations:changed",
    "DELETE conversations/{id}": f"{_PACKAGE}.conversations:deleted",
    "POST conversations/{id}/title": f"{_PACKAGE}.title_by_model:entitled",
    "POST conversations/{id}/fork": f"{_PACKAGE}.conversations:forked",
    "GET conversations/{id}/sent": f"{_PACKAGE}.sent:sent",
    "GET conversations/{id}/export": f"{_PACKAGE}.transfers:exported",
    "GET tags": f"{_PACKAGE}.tags:listed",
    "GET prompts": f"{_PACKAGE}.prompts:listed",
    "GET prompts/{name}": f"{_PACKAGE}.prompts:opened",
    "POST prompts/{name}": f"{_PACKAGE}.prompts:written",
    "DELETE prompts/{name}": f"{_PACKAGE}.prompts:deleted",
    "POST prompts/{name}/fill": f"{_PACKAGE}.prompts:filled",
    "POST import": f"{_PACKAGE}.transfers:imported",
    "POST forget": f"{_PACKAGE}.conversations:forgotten",
    "GET media/{id}/{message}/{place}": f"{_PACKAGE}.media:media",
    "POST lens": f"{_PACKAGE}.lens:lens",
    "POST snippet": f"{_PACKAGE}.code_snippets:snippet",
    "GET rules": f"{_PACKAGE}.rule_texts:rules",
    "GET traffic": f"{_PACKAGE}.traffic:listed",
    "GET traffic/live": f"{_PACKAGE}.traffic:live",
    "GET traffic/series": f"{_PACKAGE}.traffic:series",
    "GET traffic/{id}": f"{_PACKAGE}.traffic:shown",
    "GET keys": f"{_PACKAGE}.keys_and_routes:keys",
    "POST keys": f"{_PACKAGE}.keys_and_routes:made",
    "POST keys/{id}/revoke": f"{_PACKAGE}.keys_and_routes:revoked",
    "GET keys/{id}/usage": f"{_PACKAGE}.keys_and_routes:usage",
    "GET routes": f"{_PACKAGE}.keys_and_routes:routes",
    "POST talk": f"{_PACKAGE}.talk:talk",
    "GET talk/{run}": f"{_PACKAGE}.talk:followed",
    "POST talk/{run}/approve": f"{_PACKAGE}.talk:approve",
    "POST talk/{run}/stop": f"{_PACKAGE}.talk:stop",
}
"""Maps a method and path to a view, or to its `module:name`, which is imported on first use.

`{name}` in a path matches one segment; literal paths take precedence.
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
_NO_ENDPOINT = "there is no endpoint at this path"


class _Found(NamedTuple):
    key: str
    names: dict[str, str]


async def page_api(inbound: InboundRequest) -> None:
    """Handles a request to the API."""
    check(inbound)
    found = _find(inbound.method, inbound.endpoint.name)
    answer = await _view(found.key)(PageCall(inbound, found.names))
    if isinstance(answer, Content):
        headers = {**HEADERS, "content-type": answer.mime, **answer.headers}
        await inbound.call.respond(200, headers, answer.body)
    elif not inbound.call.has_begun:
        await inbound.call.respond(200, _JSON, dumps({} if answer is None else answer))


def error_body(error: DragomanError) -> dict[str, dict[str, str]]:
    """Returns the JSON body of an error."""
    return {"error": error_view(error)}


def error_status(error: DragomanError) -> int:
    """Returns the HTTP status of an error."""
    if isinstance(error, ProviderError):
        return error.status or 502
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), _SERVER)


async def refuse(inbound: InboundRequest, error: DragomanError) -> None:
    """Sends an error in the format of the page's API."""
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
        msg = f"this path supports only {', '.join(sorted(allowed))}"
        raise InvalidRequest(msg, status=405)
    raise InvalidRequest(_NO_ENDPOINT, status=404)


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
    """Returns the view for a key; imports its module on first use."""
    found = VIEWS[key]
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = VIEWS[key] = getattr(import_module(module), name)
    return found


def registered(views: Mapping[str, str | View]) -> None:
    """Adds views to the table."""
    VIEWS.update(views)
