"""The addresses of clients: of the connection, or as trusted proxies report them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

UNKNOWN = "unknown"
"""The address of a client whose proxies contradict each other, or hide it."""
_FORWARDED, _X_FORWARDED_FOR = b"forwarded", b"x-forwarded-for"
_MAX_HOPS = 32
_GROUP_BITS = 64  # of IPv6: what one customer gets
_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*("[^"]*"|[^;,\s]*)', re.IGNORECASE)
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([\d.]+):\d+")


class ClientAddresses:
    """Finds out who a request is from."""

    def __init__(self, trusted: Iterable[str]) -> None:
        """`trusted` are addresses and networks of proxies, whose headers are believed."""
        self._trusted = tuple(map(ip_network, trusted))
        self._is_trusted = lru_cache(1024)(self._is_in_trusted)

    def of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The client's address: the last one that a trusted proxy reports and that is none itself.

        Any client can send these headers, so only what trusted proxies appended counts.
        """
        if not self._trusted or not self._is_trusted(peer):
            return peer
        found = {
            self._untrusted(read(value for name, value in headers if name == named), peer)
            for named, read in ((_X_FORWARDED_FOR, _listed), (_FORWARDED, _forwarded))
            if any(name == named for name, _ in headers)
        }
        if not found:
            return peer
        return found.pop() if len(found) == 1 else UNKNOWN  # a client sent the other header

    def _untrusted(self, reported: Iterator[str], peer: str) -> str:
        """The last address that is not trusted; if all are, the first."""
        address = peer
        for text in reversed(list(reported)[-_MAX_HOPS:]):
            known = _address(text)
            if known is None:
                return UNKNOWN
            address = str(known)
            if not self._is_trusted(address):
                break
        return address

    def _is_in_trusted(self, address: str) -> bool:
        known = _address(address)
        return known is not None and any(known in each for each in self._trusted)


def _listed(values: Iterable[bytes]) -> Iterator[str]:
    """The addresses of `X-Forwarded-For`, whose lines are one list."""
    for value in values:
        yield from value.decode("latin-1").split(",")


def _forwarded(values: Iterable[bytes]) -> Iterator[str]:
    """The addresses of `Forwarded` (RFC 7239); an element without one hides it."""
    for element in _listed(values):
        found = _FOR.search(element)
        yield "" if found is None else found[1].strip('"')


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address, perhaps with a port; IPv4 written as IPv6 is IPv4."""
    text = text.strip()
    found = _WITH_PORT.fullmatch(text)
    if found is not None:
        text = found[1] or found[2] or ""
    try:
        known = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = known.ipv4_mapped if isinstance(known, IPv6Address) else None
    return known if mapped is None else mapped


def group_of(address: str) -> str:
    """Who counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    >>> group_of("2001:db8::1") == group_of("2001:db8::2"), group_of("192.0.2.1")
    (True, '192.0.2.1')
    """
    known: Any = _address(address)
    if not isinstance(known, IPv6Address):
        return address if known is None else str(known)
    return str(IPv6Network((int(known), _GROUP_BITS), strict=False))
