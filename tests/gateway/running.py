"""A gateway on a real socket, in its own thread, and scripted servers behind it."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import uvicorn
import uvloop
from aiohttp import web

from dragoman.gateway.app import App
from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.gateway.state import Gateway
from dragoman.providers.registry import provider
from dragoman.transport.protocol import Timeouts

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Serving:
    """A running gateway: its address, and its objects."""

    def __init__(self, gateway: Gateway, url: str) -> None:
        self.gateway = gateway
        self.url = url


class _Server:
    """A uvicorn in a thread, whose gateway changes from test to test: starting one takes long."""

    def __init__(self, http: Any) -> None:
        self.app = App(Gateway(GatewayConfig()))
        settings = uvicorn.Config(
            self.app, host="127.0.0.1", port=0, log_level="critical", access_log=False, http=http
        )
        self._server = uvicorn.Server(settings)
        threading.Thread(target=self._run, daemon=True).start()
        while not self._server.started:
            threading.Event().wait(0.002)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._server.serve())

    def stop(self) -> None:
        """Stop the server itself."""
        self._server.should_exit = True

    def end(self, gateway: Gateway) -> None:
        """Close a gateway, on its own loop."""
        asyncio.run_coroutine_threadsafe(gateway.close(), self._loop).result(10)


_idle: dict[Any, list[_Server]] = defaultdict(list)


@contextmanager
def running(
    config: GatewayConfig, *, stops: bool = False, http: Any = "auto", **changes: Any
) -> Generator[Serving]:
    """A gateway on a free port, until the block ends; with `http`, on our own protocol."""
    idle = _idle[http]
    server = idle.pop() if idle else _Server(http)
    gateway = server.app.gateway = Gateway(config, **changes)
    try:
        yield Serving(gateway, server.url)
    finally:
        if stops:
            server.stop()
        else:
            server.end(gateway)
            idle.append(server)


class _Upstreams:
    """Scripted servers, each on its own port, in one thread."""

    def __init__(self) -> None:
        self._answers: dict[int, Answering] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._do(self._set_up())

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _set_up(self) -> None:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        port = request.transport.get_extra_info("sockname")[1]
        return await self._answers[port](request)

    def add(self, answer: Answering) -> tuple[web.TCPSite, int]:
        """Serve on a free port."""
        before = {port for _, port in self._runner.addresses}
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        self._do(site.start())
        [port] = {port for _, port in self._runner.addresses} - before
        self._answers[port] = answer
        return site, port

    def remove(self, site: web.TCPSite) -> None:
        """Stop listening."""
        self._do(site.stop())


@cache
def _upstreams() -> _Upstreams:
    return _Upstreams()


@contextmanager
def upstream(answer: Answering) -> Generator[str]:
    """A server that answers every path by this function, on a free port; yields its address."""
    site, port = _upstreams().add(answer)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        _upstreams().remove(site)


def place(name: str, kind: str, base_url: str, **changes: Any) -> Place:
    """A provider at an address, without retries and with an unchecked key."""
    given: dict[str, Any] = {
        "retries": 0,
        "timeouts": Timeouts(connect=5, first_byte=20),
        **changes,
    }
    return Place(
        name=name, provider=provider(kind), base_url=base_url,
        headers={"authorization": "Bearer upstream-key"}, **given,
    )  # fmt: skip


def routed(*places: Place, **server: Any) -> GatewayConfig:
    """A configuration in which every model is served by these providers, in turn."""
    hops = tuple(Hop(place=each) for each in places)
    route = RouteSettings(model="*", to=hops)
    config = GatewayConfig(places={each.name: each for each in places}, routes=(route,))
    if not server:
        return config
    from msgspec.structs import replace

    return replace(config, server=replace(config.server, **server))
