"""Opens a reply, and raises the provider's error unless the status is a success."""

from __future__ import annotations

from dragoman.errors import DragomanError, TransportError
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport, read_body
from dragoman.wire.dialect import Dialect

_MAX_ERROR_BYTES = 1024 * 1024
_REDIRECT, _FAILED = 300, 400


async def accepted(
    transport: Transport, message: HttpRequest, timeouts: Timeouts, dialect: Dialect
) -> Reply:
    """The reply to a request if its status is a success; otherwise raises the provider's error."""
    reply = await transport.open(message, timeouts)
    if reply.status < _REDIRECT:
        return reply
    try:
        refusal = await _refusal(dialect, reply, timeouts.attempt)
    finally:
        await reply.close()
    raise refusal


async def _refusal(dialect: Dialect, reply: Reply, seconds: float | None) -> DragomanError:
    if reply.status < _FAILED:
        msg = "the server redirects, which is not followed: correct the base_url"
        return TransportError(msg, sent=True)
    try:
        body = await read_body(reply, _MAX_ERROR_BYTES, seconds)
    except TransportError:
        body = b""  # the status is enough
    return dialect.decode_error(reply.status, body, reply.headers)
