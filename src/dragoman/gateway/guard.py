"""Finds the API key of a request, and protects a gateway without keys from web pages.

Without keys, every program on this machine may use the gateway. Any web page open in a local
browser could as well: through its scripts (checked by `Origin`), or through a domain name that
resolves to this machine (DNS rebinding, checked by `Host`). Both are refused on every path.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from dragoman.errors import InvalidRequest, PermissionDenied
from dragoman.gateway.http import Call

_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_NAMES = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})


def presented_key(call: Call, query: bytes) -> str | None:
    """The API key of a request, from the first header or parameter of the supported APIs."""
    named = call.named
    for name in _HEADERS:
        if name in named:
            text = named[name].decode("latin-1")
            if name == b"authorization":
                scheme, _, text = text.partition(" ")
                if scheme.lower() != "bearer":
                    continue
            text = text.strip()
            if text:
                return text
    if b"key=" in query:
        return next((v for k, v in parse_qsl(query.decode("latin-1")) if k == "key" and v), None)
    return None


def is_loopback(host: str) -> bool:
    """Whether a host is reachable from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower().rstrip(".") in _NAMES or host.lower().endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class OriginGuard:
    """Rejects cross-site and DNS-rebinding requests if the gateway has no keys."""

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        self._allowed = {name.lower() for name in allowed} | {host.lower()}
        self._known: set[bytes] = set()  # `Host` values that passed the check

    def check(self, call: Call) -> None:
        """Raise unless the request addresses this server and comes from a program or its page."""
        host = origin = None
        for name, value in call.headers:
            if name == b"host":
                if host is not None:  # whoever looks at one of them may not look at the other
                    msg = "the request has several Host headers"
                    raise InvalidRequest(msg, status=400)
                host = value
            elif name == b"origin":
                origin = value
        if host is not None and host not in self._known:
            if not self._is_ours(host.decode("latin-1")):
                msg = (
                    "this Host is not allowed without keys; add it to allowed_hosts, or set up keys"
                )
                raise PermissionDenied(msg, status=403)
            if len(self._known) < 64:  # noqa: PLR2004 - bounded: clients choose them
                self._known.add(host)
        if origin is not None and not _is_same(origin, host):
            msg = "requests from other websites are not allowed without keys"
            raise PermissionDenied(msg, status=403)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.lower() in self._allowed or is_loopback(name)


def _is_same(origin: bytes, host: bytes | None) -> bool:
    """Whether a page was served by this server."""
    scheme, _, place = origin.partition(b"://")
    return scheme in {b"http", b"https"} and host is not None and place.lower() == host.lower()
