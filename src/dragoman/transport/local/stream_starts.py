"""The beginning that llama.cpp leaves out of some Anthropic streams.

It comes along with the first token's text, and with it the count of the prompt. A token that is
half a character has no text yet, so there is no beginning either. What it would have said, the
server knows: it counts tokens, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from dragoman.errors import DragomanError
from dragoman.model.jsontext import dumps, loads
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport, read_body

MESSAGES = "/messages"
_COUNT = "/count_tokens"
_OK = 200
_MOST = 64 * 1024
_NAMED = b"event:"
_LATE = (b"content_block_start", b"message_delta")


def is_stream(reply: Reply) -> bool:
    """Whether an answer comes piece by piece."""
    kind = reply.headers.get("Content-Type") or ""
    return reply.status == _OK and kind.startswith("text/event-stream")


class BegunReply:
    """A stream of messages, which begins as all of them should."""

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
        """The body as it comes, but for its very beginning."""
        held: bytes | None = b""
        async for piece in self._reply.chunks():
            if held is None:
                yield piece
                continue
            held += piece
            first = _first_event(held)
            if first is None:
                continue
            if first in _LATE:
                yield await self._start()
            yield held
            held = None
        if held:
            yield held

    async def close(self) -> None:
        """Let go of it."""
        await self._reply.close()


def _first_event(data: bytes) -> bytes | None:
    """The name of the first event; None where it is not here yet."""
    for line in data.split(b"\n")[:-1]:
        if line.startswith(_NAMED):
            return line.removeprefix(_NAMED).strip()
    return None


async def counted_start(http: Transport, request: HttpRequest, timeouts: Timeouts) -> bytes:
    """The event that a stream in answer to this request should have begun with.

    Nothing where the tokens can't be counted: the answer is worth more than its price.
    """
    asked = HttpRequest(url=request.url + _COUNT, headers=request.headers, body=request.body)
    try:
        reply = await http.open(asked, timeouts)
        try:
            counts = loads(await read_body(reply, _MOST))
        finally:
            await reply.close()
        model = loads(request.body or b"{}")["model"]
        usage = {"input_tokens": counts["input_tokens"], "output_tokens": 0}
    except (DragomanError, LookupError, TypeError):
        return b""
    message = {"type": "message", "role": "assistant", "model": model, "usage": usage}
    event = dumps({"type": "message_start", "message": message})
    return b"event: message_start\ndata: " + event + b"\n\n"
