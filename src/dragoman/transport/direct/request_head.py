"""The head of a request, and the server that it goes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from yarl import URL

from dragoman._version import __version__
from dragoman.transport.failures import malformed_request
from dragoman.transport.protocol import HttpRequest
from dragoman.transport.proxies import proxy_for

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_RESERVED = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection"})
Server = tuple[str, str, int]
"""Scheme, host and port."""


class RequestHead(NamedTuple):
    """Where requests to one URL go, and what they begin with."""

    server: Server | None
    """None: the request needs `HttpTransport`."""
    start: bytes
    """Everything before the value of `content-length`, which comes last."""


def request_head(request: HttpRequest) -> RequestHead:
    """Build the head of a request; raises `ConfigError` if it is not valid HTTP."""
    try:
        url = URL(request.url)
        port = url.port
    except ValueError:
        raise malformed_request() from None
    host, query = url.raw_host, url.raw_path_qs
    if url.scheme not in {"http", "https"} or not host or port is None:
        raise malformed_request()
    if request.method not in {"GET", "POST"} or url.raw_user is not None:
        return RequestHead(None, b"")
    if proxy_for(request.url) is not None:
        return RequestHead(None, b"")
    try:
        lines = [
            f"{request.method} {query or '/'} HTTP/1.1".encode("ascii"),
            f"host: {url.host_port_subcomponent}".encode("ascii"),
            *_header_lines(request.headers),
        ]
    except UnicodeEncodeError:
        raise malformed_request() from None
    if any(_CONTROL.search(line) for line in lines):
        raise malformed_request()
    head = b"\r\n".join([*lines, b"content-length: "])
    return RequestHead((url.scheme, host, port), head)


def _header_lines(headers: Mapping[str, str]) -> list[bytes]:
    given: dict[bytes, bytes] = {
        b"accept": b"*/*",
        b"accept-encoding": b"identity",  # decompression costs more than it saves
        b"user-agent": f"dragoman/{__version__}".encode(),
    }
    for name, value in headers.items():
        raw = name.encode("latin-1", "replace").lower()
        if _NAME.fullmatch(raw) is None:
            raise malformed_request()
        if raw not in _RESERVED:
            given[raw] = value.encode("utf-8", "surrogateescape").strip(b" \t")
    return [b"%b: %b" % pair for pair in given.items()]
