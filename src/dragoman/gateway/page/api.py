"""The page's files and API: who may use it, the routing table, and the format of errors.

`VIEWS` lists all endpoints. A view is an async function that takes a `PageCall`. Its return value
is sent as JSON, a `Content` is sent as is, and None means that the view has sent its own response
(server-sent events).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple
from urllib.parse import urlsplit

from dragoman.errors import (
    AllFailed,
    Conflict,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    LossError,
    NotFound,
    PermissionDenied,
    ProviderError,
    TransportError,
    WireError,
)
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.page.calls import HEADERS, Content, PageCall, View, error_view
from dragoman.model.invisible import invisible_module
from dragoman.model.jsontext import dumps

# --- access control and CSRF protection
#
# Only the page's own script may call the API, and only for a user who may see everything. Every
# request needs a custom header. Forms, images and links of other sites can't send it, and scripts
# of other origins need a CORS preflight first, which the gateway denies. The `Sec-Fetch-*` and
# `Origin` headers must match as well.

HEADER = b"x-dragoman-page"
_NOT_FROM_PAGE = "this API accepts requests from the gateway's own page only"
_NO_ADMIN = "the page requires an admin key"
_LOCAL_ONLY = "without keys, the page is available on the gateway's own machine only"


def check(inbound: InboundRequest) -> None:
    """Raises unless the page made the request and its user has access."""
    if not _is_ours(inbound):
        raise PermissionDenied(_NOT_FROM_PAGE, status=403)
    if inbound.gateway.keys is not None:
        if inbound.key is None or not inbound.key.is_admin:
            raise PermissionDenied(_NO_ADMIN, status=403)
    elif inbound.peer and not is_loopback(inbound.peer):
        raise PermissionDenied(_LOCAL_ONLY, status=403)


def _is_ours(inbound: InboundRequest) -> bool:
    call = inbound.call
    if call.header(HEADER) != "1":
        return False
    if call.header(b"sec-fetch-site") not in {None, "same-origin"}:
        return False
    if call.header(b"sec-fetch-mode") == "navigate":
        return False
    origin = call.header(b"origin")
    return origin is None or _is_same(origin, call.header(b"host"), inbound)


def _is_same(origin: str, host: str | None, inbound: InboundRequest) -> bool:
    """Whether an origin is this server, by its own host or an allowed host behind a proxy."""
    try:
        parts = urlsplit(origin)
        name = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"}:
        return False
    if host is not None and parts.netloc.lower() == host.lower():
        return True
    return name in {each.lower() for each in inbound.gateway.config.server.allowed_hosts}


# --- static files: exact names, gzip, ETags, a strict content security policy

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; connect-src 'self'; font-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    # Makes the browser block innerHTML and similar sinks: nothing on the page needs them.
    "require-trusted-types-for 'script'; trusted-types dragoman-worker"
)
"""The content security policy of every file."""

FILE_HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # cached, but revalidated by ETag: an update shows at once
    "vary": "accept-encoding",
}
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "md": "text/plain; charset=utf-8",
}
_INDEX, _INVISIBLE = "index.html", "invisible.js"


class StaticFile(NamedTuple):
    """A file with its precomputed response data."""

    mime: str
    etag: str
    plain: bytes
    packed: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Returns all files by their path below `/ui/`; reads them once."""
    found = _walk(files("dragoman.gateway.page") / "static", "")
    made = {name: _loaded(name, entry.read_bytes()) for name, entry in found}
    return made | {_INVISIBLE: _loaded(_INVISIBLE, invisible_module().encode())}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in _TYPES:
            yield f"{prefix}{entry.name}", entry


def _loaded(name: str, plain: bytes) -> StaticFile:
    mime = _TYPES[name.rpartition(".")[2]]
    return StaticFile(mime, sha256(plain).hexdigest()[:20], plain, gzip.compress(plain, 9, mtime=0))


async def page(inbound: InboundRequest) -> None:
    """Serves one of the page's files; redirects `/ui` to `/ui/`."""
    if inbound.call.path == "/ui":
        # Relative, so that it works behind any path prefix.
        await inbound.call.respond(308, {"location": "ui/"}, b"")
        return
    found = static_files().get(inbound.endpoint.name or _INDEX)
    if found is None:
        msg = "the page has no such file"
        raise InvalidRequest(msg, status=404)
    await _send(inbound, found)


async def _send(inbound: InboundRequest, file: StaticFile) -> None:
    call = inbound.call
    is_packed = "gzip" in (call.header(b"accept-encoding") or "")
    etag = f'"{file.etag}-gz"' if is_packed else f'"{file.etag}"'
    headers = {**FILE_HEADERS, "etag": etag}
    if etag in (call.header(b"if-none-match") or ""):
        await call.respond(304, {**headers, "content-length": "0"}, b"")
        return
    body = file.packed if is_packed else file.plain
    headers |= {"content-type": file.mime, "content-length": str(len(body))}
    if is_packed:
        headers["content-encoding"] = "gzip"
    await call.respond(200, headers, b"" if inbound.method == "HEAD" else body)


# --- the API

_PACKAGE = "dragoman.gateway.page"
VIEWS: dict[str, str | View] = {
    "GET info": f"{_PACKAGE}.gateway_info:info",
    "GET models": f"{_PACKAGE}.gateway_info:models",
    "GET conversations": f"{_PACKAGE}.conversations:listed",
    "POST conversations": f"{_PACKAGE}.conversations:made",
    "GET conversations/{id}": f"{_PACKAGE}.conversations:opened",
    "PATCH conversations/{id}": f"{_PACKAGE}.conversations:changed",
    "DELETE conversations/{id}": f"{_PACKAGE}.conversations:deleted",
    "POST conversations/{id}/title": f"{_PACKAGE}.conversations:entitled",
    "POST conversations/{id}/fork": f"{_PACKAGE}.conversations:forked",
    "GET conversations/{id}/sent": f"{_PACKAGE}.sent:sent",
    "GET conversations/{id}/export": f"{_PACKAGE}.transfers:exported",
    "GET tags": f"{_PACKAGE}.listing:listed",
    "GET prompts": f"{_PACKAGE}.prompts:listed",
    "GET prompts/{name}": f"{_PACKAGE}.prompts:opened",
    "POST prompts/{name}": f"{_PACKAGE}.prompts:written",
    "DELETE prompts/{name}": f"{_PACKAGE}.prompts:deleted",
    "POST prompts/{name}/fill": f"{_PACKAGE}.prompts:filled",
    "POST import": f"{_PACKAGE}.transfers:imported",
    "POST forget": f"{_PACKAGE}.conversations:forgotten",
    "GET media/{id}/{message}/{place}": f"{_PACKAGE}.transfers:media",
    "POST lens": f"{_PACKAGE}.lens:lens",
    "POST snippet": f"{_PACKAGE}.code_snippets:snippet",
    "GET rules": f"{_PACKAGE}.lens:rules",
    "GET traffic": f"{_PACKAGE}.traffic:listed",
    "GET traffic/live": f"{_PACKAGE}.traffic:live",
    "GET traffic/series": f"{_PACKAGE}.traffic:series",
    "GET traffic/{id}": f"{_PACKAGE}.traffic:shown",
    "GET keys": f"{_PACKAGE}.gateway_info:keys",
    "POST keys": f"{_PACKAGE}.gateway_info:made",
    "POST keys/{id}/revoke": f"{_PACKAGE}.gateway_info:revoked",
    "GET keys/{id}/usage": f"{_PACKAGE}.gateway_info:usage",
    "GET routes": f"{_PACKAGE}.gateway_info:routes",
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
