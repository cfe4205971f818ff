"""A provider on loopback, defined by a function from request to reply, on aiohttp's server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

NONE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Came:
    """A request that the server received."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The request body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Goes:
    """A reply: JSON, or chunks that are sent one by one."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: NONE)
    pieces: Sequence[bytes] | None = None
    is_cut: bool = False
    """Whether the connection ends before the body does."""
    until: asyncio.Event | None = None
    """What is waited for before the last piece."""


@dataclass
class Vendor:
    """A running server."""

    url: str
    came: list[Came] = field(default_factory=list)


@asynccontextmanager
async def serving(answer: Callable[[Came], Goes]) -> AsyncGenerator[Vendor]:
    """Serve these replies while the block runs."""
    vendor = Vendor("")

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        came = Came(request.method, request.path, request.query, request.headers, body)
        vendor.came.append(came)
        return await _sent(request, answer(came))

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", handle)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0.1)
    vendor.url = str(server.make_url("")).rstrip("/")
    try:
        yield vendor
    finally:
        await server.close()


async def _sent(request: web.Request, goes: Goes) -> web.StreamResponse:
    if goes.pieces is None:
        return web.json_response(goes.body, status=goes.status, headers=goes.headers)
    response = web.StreamResponse(status=goes.status, headers=goes.headers)
    response.content_type = "text/event-stream"
    await response.prepare(request)
    for place, piece in enumerate(goes.pieces):
        if goes.until is not None and place == len(goes.pieces) - 1:
            await goes.until.wait()
        await response.write(piece)
        await asyncio.sleep(0.005)  # so that chunks stay separate; nothing depends on it
    if goes.is_cut:
        assert request.transport is not None
        request.transport.abort()
    else:
        await response.write_eof()
    return response


# --- OpenAI's responses


def said(text: str = "Hello", model: str = "m") -> Goes:
    """A Chat Completions response."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Goes({"id": "c1", "object": "chat.completion", "model": model, "choices": [choice]})


def streamed(*words: str, **options: Any) -> Goes:
    """The same response, streamed."""
    ends = b"" if options.get("is_cut") else _chunk({}, "stop") + b"data: [DONE]\n\n"
    pieces = [_chunk({"role": "assistant", "content": word}, None) for word in words]
    return Goes(pieces=[*pieces, ends] if ends else pieces, **options)


def failed(status: int, code: str = "odd", **headers: str) -> Goes:
    """An OpenAI error."""
    error = {"message": "hush: sk-secret", "type": code, "code": code}
    return Goes({"error": error}, status, headers)


def _chunk(delta: Mapping[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"
