"""Adds the start event that llama.cpp omits from some Anthropic streams.

The event is sent with the text of the first token, along with the prompt's token count. A token
that is half a character has no text yet, and then there is no start event. Its content can be
obtained from the server, which also counts tokens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from dragoman.errors import DragomanError
from dragoman.model.jsontext import dumps, loads
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport, read_body

MESSAGES = "/messages"
_COUNT = "/count_tokens"
_OK = 200
_MAX_BYTES = 64 * 1024
_EVENT_PREFIX = b"event:"
_NOT_FIRST = (b"content_block_start", b"message_delta")


def is_stream(reply: Reply) -> bool:
    """Whether a reply is an event stream."""
    kind = reply.headers.get("Content-Type") or ""
    return reply.status == _OK and kind.startswith("text/event-stream")


class BegunReply:
    """A message stream that has its start event."""

    def __init__(self, reply: Reply, start: Callable[[], Awaitable[bytes]]) -> None:
        self._reply = reply
        self._start = start

    @property
    def status(self) -> int:
        """The status code."""
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, with a start event if it is missing."""
        held: bytes | None = b""
        async for piece in self._reply.chunks():
            if held is None:
                yield piece
                continue
            held += piece
            first = _first_event(held)
            if first is None:
                continue
            if first in _NOT_FIRST:
                yield await self._start()
            yield held
            held = None
        if held:
            yield held

    async def close(self) -> None:
        """Close it."""
        await self._reply.close()


def _first_event(data: bytes) -> bytes | None:
    """The name of the first event; None if it has not arrived yet."""
    for line in data.split(b"\n")[:-1]:
        if line.startswith(_EVENT_PREFIX):
            return line.removeprefix(_EVENT_PREFIX).strip()
    return None


async def counted_start(http: Transport, request: HttpRequest, timeouts: Timeouts) -> bytes:
    """The start event that the stream for this request should have.

    Empty if the tokens can't be counted: the response matters more than its count.
    """
    asked = HttpRequest(url=request.url + _COUNT, headers=request.headers, body=request.body)
    try:
        reply = await http.open(asked, timeouts)
        try:
            counts = loads(await read_body(reply, _MAX_BYTES, None))
        finally:
            await reply.close()
        model = loads(request.body or b"{}")["model"]
        usage = {"input_tokens": counts["input_tokens"], "output_tokens": 0}
    except (DragomanError, LookupError, TypeError):
        return b""
    message = {"type": "message", "role": "assistant", "model": model, "usage": usage}
    event = dumps({"type": "message_start", "message": message})
    return b"event: message_start\ndata: " + event + b"\n\n"
