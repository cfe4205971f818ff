"""A server on loopback that answers as OpenAI's Chat and Anthropic's Messages do, and does no more.

`python -m benchmarks.transport_server`, a process of its own: its work is no part of a client's.
It prints its port and ends with its standard input. Addresses begin with the number of pieces of
text that a stream has and the microseconds between them, `/200/0/…`; at 0, all go out at once.
`/60/tools/…` first calls two tools, and then answers with 60 characters.

With the path of a PEM file, its certificate and its key, it speaks TLS.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from functools import lru_cache
from typing import Any

_MODEL = {"/messages": "claude-sonnet-4-5", "/completions": "gpt-4.1"}


class Answering(asyncio.Protocol):
    """One connection: requests come one after the other, with the length of their bodies."""

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport = transport
        self._came = b""

    def data_received(self, data: bytes) -> None:
        """Answer, once a request is there as a whole."""
        self._came += data
        head, blank, body = self._came.partition(b"\r\n\r\n")
        if blank and len(body) >= _length(head):
            self._came = b""
            self._answer(head.split(b" ", 2)[1].decode().partition("?")[0], body)

    def _answer(self, path: str, body: bytes) -> None:
        _, pieces, pause, *_ = path.split("/")
        kind = "/messages" if path.endswith("/messages") else "/completions"
        if pause == "tools":
            self._transport.write(_text(int(pieces)) if b'"tool_call_id"' in body else _CALLS)
        elif b'"stream":true' not in body.replace(b": ", b":"):
            self._transport.write(plain(kind))
        elif pause == "0":
            self._transport.write(b"".join(streamed(kind, int(pieces))))
        else:
            self._go_on(streamed(kind, int(pieces)), 0, int(pause) / 1e6)

    def _go_on(self, parts: tuple[bytes, ...], place: int, pause: float) -> None:
        """Send one part, and the next one after a pause."""
        if self._transport.is_closing():
            return
        self._transport.write(parts[place])
        if place + 1 < len(parts):
            asyncio.get_running_loop().call_later(pause, self._go_on, parts, place + 1, pause)


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)


@lru_cache
def plain(kind: str) -> bytes:
    """A whole answer."""
    return _http(_PLAIN[kind])


def _http(answer: Any) -> bytes:
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\nx-request-id: req_1\r\n\r\n".encode() + body


@lru_cache
def streamed(kind: str, pieces: int) -> tuple[bytes, ...]:
    """A streamed answer in the parts that are sent: one for each piece of text.

    The head and what precedes the text go with the first one, what follows it with the last.
    """
    first, texts, last = (_chat if kind == "/completions" else _anthropic)(pieces)
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        b"x-request-id: req_1\r\n\r\n"
    )
    parts = [_chunk(text) for text in texts]
    parts[0] = head + b"".join(map(_chunk, first)) + parts[0]
    parts[-1] += b"".join(map(_chunk, last)) + b"0\r\n\r\n"
    return tuple(parts)


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _words(count: int) -> list[str]:
    """Each unlike the one before: litellm takes a model that repeats itself for broken."""
    return [f" bridge {number}" for number in range(count)]


def _chat(pieces: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        choices = [] if delta is None else [choice]
        kept = {**_CHAT_HEAD, "object": "chat.completion.chunk", "choices": choices, "usage": None}
        return b"data: " + json.dumps(kept | more, separators=(",", ":")).encode() + b"\n\n"

    usage = {"prompt_tokens": 9, "completion_tokens": pieces, "total_tokens": pieces + 9}
    last = [chunk({}, "stop"), chunk(None, usage=usage), b"data: [DONE]\n\n"]
    return (
        [chunk({"role": "assistant", "content": "", "refusal": None})],
        [chunk({"content": text}) for text in _words(pieces)],
        last,
    )


def _anthropic(pieces: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    def event(name: str, **fields: Any) -> bytes:
        data = json.dumps({"type": name, **fields}, separators=(",", ":"))
        return f"event: {name}\ndata: {data}\n\n".encode()

    message = {**_PLAIN["/messages"], "content": [], "stop_reason": None}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return (
        [
            event("message_start", message=message),
            event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        ],
        [
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
            for text in _words(pieces)
        ],
        [
            event("content_block_stop", index=0),
            event("message_delta", delta=delta, usage={"output_tokens": pieces}),
            event("message_stop"),
        ],
    )


_CHAT_HEAD = {
    "id": "chatcmpl-BXq1",
    "created": 1700000000,
    "model": _MODEL["/completions"],
    "service_tier": "default",
    "system_fingerprint": "fp_1",
}
_SAID = "The Old Bridge stands over the Neretva, in Mostar."
_PLAIN: dict[str, dict[str, Any]] = {
    "/completions": {
        **_CHAT_HEAD,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": _SAID, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
    },
    "/messages": {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": _MODEL["/messages"],
        "content": [{"type": "text", "text": _SAID}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 12},
    },
}


def _with(message: dict[str, Any], finish: str) -> bytes:
    """An answer in OpenAI's Chat format, with the usage that it reports."""
    none = {"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0}  # fmt: skip
    usage = {"prompt_tokens": 412, "completion_tokens": 260, "total_tokens": 672,
             "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
             "completion_tokens_details": none}  # fmt: skip
    said = {"role": "assistant", "content": None, "refusal": None, "annotations": [], **message}
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": finish}
    return _http({**_CHAT_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage})


def _call(number: int) -> dict[str, Any]:
    function = {"name": f"tool_{number}", "arguments": json.dumps({"city": "Mostar"})}
    return {"id": f"call_{number}", "type": "function", "function": function}


_CALLS = _with({"tool_calls": [_call(0), _call(1)]}, "tool_calls")


@lru_cache
def _text(length: int) -> bytes:
    said = _SAID * (length // len(_SAID) + 1)
    return _with({"content": said[:length]}, "stop")


def _tls() -> ssl.SSLContext | None:
    if not sys.argv[1:]:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1])
    return context


async def main() -> None:
    """Serve until nobody is interested any more."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0, backlog=2048, ssl=_tls())
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
