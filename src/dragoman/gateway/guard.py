"""Who may come in: the key that a request shows, and what browsers are made to send.

Without keys everybody on this machine is let in, and so would be any web page that is open in a
browser here: by its script (`Origin`), or by a name that its owner lets point to this machine
(`Host`, DNS rebinding). Both are refused on every path.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from dragoman.errors import PermissionDenied
from dragoman.gateway.http import Call

_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_NAMES = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})


def presented_key(call: Call, query: bytes) -> str | None:
    """The key that a request shows, where any of the APIs' clients has it."""
    for name, value in call.headers:
        if name in _HEADERS:
            text = value.decode("latin-1")
            if name == b"authorization":
                scheme, _, text = text.partition(" ")
                if scheme.lower() != "bearer":
                    continue
            if text.strip():
                return text.strip()
    if b"key=" in query:
        return next((v for k, v in parse_qsl(query.decode("latin-1")) if k == "key" and v), None)
    return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone.

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
    """Refuses what a browser may have been tricked into sending, where there are no keys."""

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        self._allowed = {name.lower() for name in allowed} | {host.lower()}
        self._known: set[bytes] = set()  # hosts that were let in

    def check(self, call: Call) -> None:
        """Raise unless the request was meant for this server, by a program or by its own page."""
        host = origin = None
        for name, value in call.headers:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        if host is not None and host not in self._known:
            if not self._is_ours(host.decode("latin-1")):
                msg = "this Host is not served without keys; add it to allowed_hosts, or use keys"
                raise PermissionDenied(msg, status=403)
            if len(self._known) < 64:  # noqa: PLR2004 - a handful, whatever is sent
                self._known.add(host)
        if origin is not None and not _is_same(origin, host):
            msg = "requests of other sites' pages are not served without keys"
            raise PermissionDenied(msg, status=403)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.lower() in self._allowed or is_loopback(name)


def _is_same(origin: bytes, host: bytes | None) -> bool:
    """Whether a page is this server's own."""
    scheme, _, place = origin.partition(b"://")
    return scheme in {b"http", b"https"} and host is not None and place.lower() == host.lower()
