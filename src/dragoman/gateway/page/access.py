"""Access control and CSRF protection for the page's API.

Only the page's own script may call the API, and only for a user who may see everything. Every
request needs a custom header. Forms, images and links of other sites can't send it, and scripts of
other origins need a CORS preflight first, which the gateway denies. The `Sec-Fetch-*` and `Origin`
headers must match as well.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from dragoman.errors import PermissionDenied
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.inbound import InboundRequest

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
