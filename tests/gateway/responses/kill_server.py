"""A gateway in a process of its own, for a test that kills it; prints its port."""

from __future__ import annotations

import asyncio
import sys

import uvicorn

from dragoman.gateway.app import App
from dragoman.gateway.state import Gateway
from tests.gateway.responses.conftest import config_for


async def main(history: str, url: str) -> None:
    """Serve until the end."""
    app = App(Gateway(config_for(url, history=history)))
    settings = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", access_log=False)
    server = uvicorn.Server(settings)
    serving = asyncio.get_running_loop().create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)  # noqa: T201 - to the test
    await serving


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
