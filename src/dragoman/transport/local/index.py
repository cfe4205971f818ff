"""Finds files on the package index (PEP 503, PEP 691)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from dragoman.errors import ConfigError, InvalidInputError, TransportError
from dragoman.model.jsontext import loads
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport, read_body

_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX")
_PYPI = "https://pypi.org/simple"
_FORMS = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_MAX_BYTES = 16 * 1024 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5


def index_url() -> str:
    """The URL of the package index: as configured for pip or uv in the environment, or PyPI."""
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), _PYPI)


async def file_url(transport: Transport, timeouts: Timeouts, project: str, name: str) -> str:
    """The URL of a project's file."""
    page = f"{index_url().rstrip('/')}/{project}/"
    reply, page = await opened(transport, timeouts, page, {"Accept": _FORMS})
    try:
        body = await read_body(reply, _MAX_BYTES, None)
    finally:
        await reply.close()
    for link in _links(body):
        if unquote(urlsplit(link).path).rpartition("/")[2] == name:
            return urljoin(page, link.partition("#")[0])
    msg = f"the package index does not have {name}; {SET_INDEX}"
    raise ConfigError(msg)


SET_INDEX = "set PIP_INDEX_URL to use another index"


async def opened(
    transport: Transport, timeouts: Timeouts, url: str, headers: dict[str, str]
) -> tuple[Reply, str]:
    """A successful reply, and its URL. No key is sent, so redirects can be followed."""
    for _ in range(_MAX_REDIRECTS):
        if not url.startswith(("https://", "http://")):
            msg = f"the URL of the package index must start with https:// or http://; {SET_INDEX}"
            raise ConfigError(msg)
        message = HttpRequest(url=url, method="GET", headers=headers)
        reply = await transport.open(message, timeouts)
        if reply.status < min(_REDIRECTS):
            return reply, url
        status, place = reply.status, reply.headers.get("Location")
        await reply.close()
        if status not in _REDIRECTS or not place:
            raise _refused(status)
        url = _next(url, place)
    msg = f"the package index redirects too many times; {SET_INDEX}"
    raise TransportError(msg, sent=True)


def _next(url: str, place: str) -> str:
    target = urljoin(url, place)
    if url.startswith("https://") and not target.startswith("https://"):
        msg = "the package index redirects to a URL without TLS, which is not followed"
        raise TransportError(msg, sent=True)
    return target


def _refused(status: int) -> TransportError | ConfigError:
    msg = f"the package index returned status {status}; {SET_INDEX}"
    return ConfigError(msg) if status < 500 else TransportError(msg, sent=True)  # noqa: PLR2004


def _links(body: bytes) -> Iterator[str]:
    try:
        page: Any = loads(body)
    except InvalidInputError:  # HTML, from an older index
        page = _Page()
        page.feed(body.decode("utf-8", "replace"))
        yield from page.links
        return
    files = page.get("files") if isinstance(page, dict) else None
    for file in files if isinstance(files, list) else ():
        url = file.get("url") if isinstance(file, dict) else None
        if isinstance(url, str):
            yield url


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]
