"""Serves the page's static files: exact names, gzip, ETags, a strict content security policy."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from dragoman.errors import InvalidRequest
from dragoman.gateway.inbound import InboundRequest
from dragoman.model.invisible import invisible_module

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; connect-src 'self'; font-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    # Makes the browser block innerHTML and similar sinks: nothing on the page needs them.
    "require-trusted-types-for 'script'; trusted-types dragoman-worker"
)
"""The content security policy of every file."""

HEADERS: Mapping[str, str] = {
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
    headers = {**HEADERS, "etag": etag}
    if etag in (call.header(b"if-none-match") or ""):
        await call.respond(304, {**headers, "content-length": "0"}, b"")
        return
    body = file.packed if is_packed else file.plain
    headers |= {"content-type": file.mime, "content-length": str(len(body))}
    if is_packed:
        headers["content-encoding"] = "gzip"
    await call.respond(200, headers, b"" if inbound.method == "HEAD" else body)
