"""Requests to Ollama servers for data that only Ollama's API has."""

from __future__ import annotations

from typing import Any

from dragoman.errors import ServerError
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.upstreams import Upstream
from dragoman.transport.protocol import HttpRequest, Timeouts, read_body, within
from dragoman.wire.json_values import opened

_TAGS = "/api/tags"
_TIMEOUT = 5.0  # seconds
_MAX_BYTES = 16 * 1024 * 1024
_LIMITS = Timeouts(connect=_TIMEOUT, first_byte=_TIMEOUT)


def is_ollama(upstream: Upstream) -> bool:
    """Whether a provider speaks Ollama's dialect."""
    return upstream.is_wire and upstream.dialect(None).name == OLLAMA


async def ask_ollama(upstream: Upstream, path: str, body: bytes | None = None) -> Any:
    """Sends a request to an Ollama server and parses the response; raises on failure or timeout."""
    known = upstream.deployment(None).request("models", method="GET")
    if not known.url.endswith(_TAGS):
        msg = "the provider's URL is not that of an Ollama server"
        raise ServerError(msg, status=502)
    message = HttpRequest(
        url=f"{known.url.removesuffix(_TAGS)}{path}", method="GET" if body is None else "POST",
        headers=known.headers, body=body,
    )  # fmt: skip
    return opened(await within(_TIMEOUT, _answer(upstream, message)), OLLAMA)


async def _answer(upstream: Upstream, message: HttpRequest) -> bytes:
    reply = await upstream.accept(message, _LIMITS, None)
    try:
        return await read_body(reply, _MAX_BYTES, None)
    finally:
        await reply.close()
