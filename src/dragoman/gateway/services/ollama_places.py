"""Places that are Ollamas, asked for what only Ollama tells."""

from __future__ import annotations

from typing import Any

from dragoman.errors import ServerError
from dragoman.gateway.backs import Back
from dragoman.gateway.endpoints import OLLAMA
from dragoman.transport.protocol import HttpRequest, Timeouts, read_body, within
from dragoman.wire.json_values import opened

_TAGS = "/api/tags"
_LONGEST_WAIT = 5.0  # seconds
_MOST_BYTES = 16 * 1024 * 1024
_LIMITS = Timeouts(connect=_LONGEST_WAIT, first_byte=_LONGEST_WAIT)


def is_ollama(back: Back) -> bool:
    """Whether a place speaks Ollama's dialect."""
    return back.is_wire and back.dialect(None).name == OLLAMA


async def ask_ollama(back: Back, path: str, body: bytes | None = None) -> Any:
    """What an Ollama answers at a path; raises where it does not, or not soon."""
    known = back.deployment(None).request("models", method="GET")
    if not known.url.endswith(_TAGS):
        msg = "the address of the place is none of Ollama's"
        raise ServerError(msg, status=502)
    message = HttpRequest(
        url=f"{known.url.removesuffix(_TAGS)}{path}", method="GET" if body is None else "POST",
        headers=known.headers, body=body,
    )  # fmt: skip
    return opened(await within(_LONGEST_WAIT, _answer(back, message)), OLLAMA)


async def _answer(back: Back, message: HttpRequest) -> bytes:
    reply = await back.accept(message, _LIMITS, None)
    try:
        return await read_body(reply, _MOST_BYTES)
    finally:
        await reply.close()
