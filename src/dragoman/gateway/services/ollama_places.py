"""Places that are Ollamas, asked for what only Ollama tells."""

from __future__ import annotations

from typing import Any

from dragoman.errors import ServerError
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.upstreams import Upstream
from dragoman.transport.protocol import HttpRequest, Timeouts, read_body, within
from dragoman.wire.json_values import opened

_TAGS = "/api/tags"
_LONGEST_WAIT = 5.0  # seconds
_MOST_BYTES = 16 * 1024 * 1024
_LIMITS = Timeouts(connect=_LONGEST_WAIT, first_byte=_LONGEST_WAIT)


def is_ollama(upstream: Upstream) -> bool:
    """Whether a place speaks Ollama's dialect."""
    return upstream.is_wire and upstream.dialect(None).name == OLLAMA


async def ask_ollama(upstream: Upstream, path: str, body: bytes | None = None) -> Any:
    """What an Ollama answers at a path; raises where it does not, or not soon."""
    known = upstream.deployment(None).request("models", method="GET")
    if not known.url.endswith(_TAGS):
        msg = "the address of the place is none of Ollama's"
        raise ServerError(msg, status=502)
    message = HttpRequest(
        url=f"{known.url.removesuffix(_TAGS)}{path}", method="GET" if body is None else "POST",
        headers=known.headers, body=body,
    )  # fmt: skip
    return opened(await within(_LONGEST_WAIT, _answer(upstream, message)), OLLAMA)


async def _answer(upstream: Upstream, message: HttpRequest) -> bytes:
    reply = await upstream.accept(message, _LIMITS, None)
    try:
        return await read_body(reply, _MOST_BYTES)
    finally:
        await reply.close()
