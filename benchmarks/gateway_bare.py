"""The least that a proxy does: starlette takes a request, aiohttp sends it on, bytes go back.

`python -m benchmarks.gateway_bare PORT BASE_URL`
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

_base = sys.argv[2] if len(sys.argv) > 2 else ""
_sessions: list[aiohttp.ClientSession] = []


async def _pass(request: Request) -> Response:
    body = await request.body()
    path = request.url.path.removeprefix("/v1")
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    reply = await _sessions[0].post(f"{_base}{path}", data=body, headers=headers)
    kind = reply.headers["content-type"]
    if "event-stream" not in kind:
        return Response(await reply.read(), reply.status, media_type=kind)

    async def pieces() -> AsyncIterator[bytes]:
        async for piece in reply.content.iter_any():
            yield piece

    return StreamingResponse(pieces(), reply.status, media_type=kind)


@asynccontextmanager
async def _lifespan(_app: Starlette) -> AsyncGenerator[None]:
    _sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
    yield
    await _sessions[0].close()


if __name__ == "__main__":
    paths = ("/v1/chat/completions", "/v1/messages")
    routes = [Route(path, _pass, methods=["POST"]) for path in paths]
    app = Starlette(routes=routes, lifespan=_lifespan)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
