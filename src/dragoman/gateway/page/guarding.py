"""Who may use the API behind the page: its own script, for somebody who may see everything.

A browser sends requests that a stranger's page makes it send. Every request to the API needs a
header that no form, image or link can carry, and that a script of another origin could only send
after the browser asked (which is answered with no). What browsers say about where a request comes
from must agree.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from dragoman.errors import PermissionDenied
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.inbound import InboundRequest

HEADER = b"x-dragoman-page"
_FOREIGN = "this is for the page's own requests"
_NO_ADMIN = "the page needs the key of an administrator"
_OFF = "without keys the page is served to this machine only"


def check(inbound: InboundRequest) -> None:
    """Raise unless the request is the page's own, and its user's to make."""
    if not _is_ours(inbound):
        raise PermissionDenied(_FOREIGN, status=403)
    if inbound.gateway.keys is not None:
        if inbound.key is None or not inbound.key.is_admin:
            raise PermissionDenied(_NO_ADMIN, status=403)
    elif inbound.peer and not is_loopback(inbound.peer):
        raise PermissionDenied(_OFF, status=403)


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
    """Whether an origin is the server itself, or a name that it is known by behind a proxy."""
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
