"""A gateway worker process: serves on a listening socket until a graceful shutdown."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from dragoman.errors import ConfigError, DragomanError, Overloaded
from dragoman.gateway.access_log import AccessLog
from dragoman.gateway.app import App
from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from dragoman.gateway.envelopes import REFRESH
from dragoman.gateway.exposition import exposition
from dragoman.gateway.hangup import HANGUP, forget_terminal
from dragoman.gateway.metrics import Counts, Metrics
from dragoman.gateway.peers import Peers
from dragoman.gateway.protocol import GatewayProtocol, Sweeper
from dragoman.gateway.records import RequestRecord
from dragoman.gateway.request_spans import Traced, note_span, set_up_tracing
from dragoman.gateway.state import Gateway
from dragoman.gateway.uvicorn_check import expect_usable

if TYPE_CHECKING:
    from dragoman.gateway.keys import Keys
    from dragoman.gateway.page.traffic_store import Traffic

LOG = logging.getLogger("dragoman.gateway")
_GC_THRESHOLDS = 10_000, 20, 20  # few objects of a request are in cycles: Python's 700 cost 8 %
BACKLOG = 2048
_SHUTDOWN_GRACE = 2  # seconds for requests to report to their clients that the server stops
Loader = Callable[[], GatewayConfig]


class Worker:
    """Serves the gateway on given sockets until it is told to stop."""

    def __init__(
        self, config: GatewayConfig, load: Loader | None = None, *, number: int = 0,
        peers: Peers | None = None,
    ) -> None:  # fmt: skip
        """`load` reloads the configuration; `number` is the worker's, from 1, or 0 if alone."""
        self.gateway = Gateway(config, is_only_worker=number == 0)
        self.metrics = Metrics()
        self.metrics.apply(config)
        self._load = load
        self._started = config.server
        self._number = number
        self._peers = peers
        form = config.server.log
        self._log = None if form == "off" else AccessLog(form, worker=number)
        self._server = _server(self.gateway)
        self._adopting = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._running: asyncio.Task[None] | None = None

    # --- from start to end

    async def serve(
        self, sockets: Sequence[socket.socket], ready: Callable[[], object] = lambda: None
    ) -> None:
        """Serve requests; `ready` is called once they are accepted."""
        gateway = self.gateway
        self._running = asyncio.current_task()
        provider = set_up_tracing()
        gateway.keys = await _open_keys(gateway.config.server.keys)
        await gateway.envelopes.read(gateway.config.server, gateway.keys)
        gateway.observers += [self.metrics, note_span]
        gateway.traffic = await asyncio.to_thread(_open_traffic, gateway.config.server)
        if gateway.traffic is not None:
            gateway.observers.append(gateway.traffic)
        if self._log is not None:
            gateway.observers.append(self._log)
        gateway.exposition = self._exposed
        if self._peers is not None:
            await self._peers.start(self.metrics, self._counts)
        self._start(self._sweeper().run())
        self._start(self._refresh_envelopes())
        self._start(self._when_started(ready))
        try:
            await self._server.serve(list(sockets))
        except asyncio.CancelledError:
            await self._drop()
            raise
        finally:
            await self._close(provider)

    async def _refresh_envelopes(self) -> None:
        while True:
            await asyncio.sleep(REFRESH)
            await self.gateway.envelopes.refresh(self.gateway.config.server, self.gateway.keys)

    async def _when_started(self, ready: Callable[[], object]) -> None:
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        ready()

    async def _drop(self) -> None:
        """Close everything that uvicorn would have waited for."""
        for listening in getattr(self._server, "servers", ()):
            listening.close()
        for connection in tuple(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        for task in tuple(self._server.server_state.tasks):
            task.cancel()
        await asyncio.sleep(0)
        await self.gateway.close()

    async def _close(self, provider: Any) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        if self._peers is not None:
            await self._peers.close()
        if self._log is not None:
            await asyncio.to_thread(self._log.close)
        if self.gateway.traffic is not None:
            await asyncio.to_thread(self.gateway.traffic.close)
        if provider is not None:
            await asyncio.to_thread(provider.shutdown)

    def _sweeper(self) -> Sweeper:
        also = () if self._peers is None else (self._peers.save,)
        return Sweeper(self.gateway, self._server.server_state.connections, *also)

    def _start(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- stopping

    def stop(self) -> None:
        """Accept no more requests; stop when those in progress are done or the drain times out."""
        if self.gateway.is_draining:
            return
        self.gateway.is_draining = True
        self._server.should_exit = True
        limit = self.gateway.config.server.drain_timeout
        if self.gateway.active and not self._number:  # otherwise the supervisor logs it
            LOG.info("stopping; waiting %g s for %d requests", limit, self.gateway.active)
        asyncio.get_running_loop().call_later(limit, self._interrupt)

    def _interrupt(self) -> None:
        for inbound in tuple(self.gateway.in_flight):
            msg = "the server is shutting down; try again"
            inbound.interrupt(Overloaded(msg, status=503, retry_after=1.0))

    def stop_now(self) -> None:
        """Stop at once, dropping all requests."""
        if self._running is not None:
            self._running.cancel()

    def interrupted(self) -> None:
        """Handle Ctrl-C: stop gracefully, the second time at once."""
        if self.gateway.is_draining:
            self.stop_now()
        else:
            self.stop()

    def hung_up(self) -> None:
        """Stop gracefully after the terminal was closed."""
        forget_terminal()
        self.stop()

    # --- a new configuration

    def reload(self) -> None:
        """Reload the configuration; an invalid one is logged and the old one stays in effect."""
        if self._load is None:
            return
        try:
            config = self._load()
        except (DragomanError, OSError) as error:
            self.keep(error)
        else:
            self.adopt_soon(config)

    def keep(self, error: Exception) -> None:
        """Log why a configuration can't be used; the old one stays in effect."""
        self.metrics.failed_reloads += 1
        LOG.error("the configuration was not reloaded; the old one stays in effect:\n%s", error)

    def adopt_soon(self, config: GatewayConfig) -> None:
        """Apply a configuration in the background."""
        self._start(self.adopt(config))

    async def adopt(self, config: GatewayConfig) -> None:
        """Apply a configuration to requests that start later; one reload at a time."""
        async with self._adopting:
            await self._adopt(config)

    async def _adopt(self, config: GatewayConfig) -> None:
        gateway, before = self.gateway, self.gateway.config.server
        old = opened = gateway.keys
        try:
            if config.server.keys != before.keys:
                opened = await _open_keys(config.server.keys)
            await gateway.envelopes.read(config.server, opened)
            gateway.apply(config)
        except DragomanError as error:
            self.keep(error)
            if opened is not None and opened is not old:
                await opened.close()
            return
        gateway.keys = opened
        self.metrics.apply(config)
        self.metrics.reloads += 1
        if self._number <= 1:  # the first worker logs for all
            LOG.info("the configuration was reloaded")
            _warn_of_restart(self._started, config.server)
        if old is not None and old is not opened:
            self._start(self._close_later(old))

    async def _close_later(self, keys: Keys) -> None:
        """Close a key store once the requests that use it are done."""
        in_flight = set(self.gateway.in_flight)
        while in_flight & self.gateway.in_flight:  # noqa: ASYNC110 - rare: only after a reload
            await asyncio.sleep(0.2)
        await keys.close()

    # --- counting

    def _counts(self) -> Counts:
        connections = len(self._server.server_state.connections)
        counts = self.metrics.counts(self.gateway.active, connections)
        counts.dropped_log_lines = 0 if self._log is None else self._log.dropped
        return counts

    async def _exposed(self) -> bytes:
        if self._peers is None:
            return exposition(self._counts(), 1)
        return exposition(*await self._peers.total())


def _open_traffic(server: ServerSettings) -> Traffic | None:
    from dragoman.gateway.page.traffic_store import opened_traffic

    return opened_traffic(server)


async def _open_keys(url: str | None) -> Keys | None:
    if url is None:
        return None
    from dragoman.gateway.keys import Keys

    return await Keys.open(url)


def _warn_of_restart(before: Any, after: Any) -> None:
    for name in ("host", "port", "workers", "log", "history", "traffic", "traffic_rows"):
        if getattr(before, name) != getattr(after, name):
            LOG.warning("a change of `%s` takes effect after a restart", name)


# --- the process


class _Server(uvicorn.Server):
    """Uvicorn's server without its signal handling, which the worker does itself."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no signal handlers."""
        yield


def _protocol_class(gateway: Gateway) -> type[GatewayProtocol]:
    """The protocol class that also reports its refusals to the gateway's observers."""

    class Counting(GatewayProtocol):
        def note_refusal(self, status: int, seconds: float) -> None:
            kind = "malformed"
            gateway.notify(RequestRecord(kind, "", status, seconds, error="InvalidRequest"))

    return Counting


def _server(gateway: Gateway) -> _Server:
    expect_usable()
    server = gateway.config.server
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.CRITICAL)  # it logs tracebacks, which may quote client content
    settings = uvicorn.Config(
        Traced(App(gateway)),
        http=_protocol_class(gateway),
        ws_max_size=server.max_body,
        ws_per_message_deflate=False,  # a message would be decompressed as a whole, on the loop
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=int(server.drain_timeout) + _SHUTDOWN_GRACE,
    )
    return _Server(settings)


Watching = Callable[[Worker], AbstractAsyncContextManager[object]]
"""Context manager that passes new configurations to a worker."""


def run(
    worker: Callable[[], Worker], sockets: Sequence[socket.socket],
    ready: Callable[[], object], *, leash: int | None = None, watching: Watching | None = None,
    on_terminal: bool = False,
) -> None:  # fmt: skip
    """Run a worker in this process, with signal handlers.

    `leash`, for a worker under a supervisor: a pipe that is closed when the supervisor exits.
    `on_terminal`: SIGHUP stops it, instead of reloading the configuration.
    """
    raise_file_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner, suppress(asyncio.CancelledError):
        runner.run(_run(worker, sockets, ready, leash, watching, on_terminal=on_terminal))


async def _run(
    make: Callable[[], Worker], sockets: Sequence[socket.socket], ready: Callable[[], object],
    leash: int | None, watching: Watching | None, *, on_terminal: bool,
) -> None:  # fmt: skip
    worker, loop = make(), asyncio.get_running_loop()

    def started() -> None:
        gc.collect()
        gc.freeze()  # objects created at startup stay: the collector need not scan them
        gc.set_threshold(*_GC_THRESHOLDS)
        ready()

    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGTERM, worker.stop)
    if HANGUP is not None:
        loop.add_signal_handler(HANGUP, worker.hung_up if on_terminal else worker.reload)
    if leash is None:
        _on_interrupt(loop, worker)
    else:
        loop.add_reader(leash, worker.stop)
    async with nullcontext() if watching is None else watching(worker):
        await worker.serve(sockets, started)


def _on_interrupt(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGINT, worker.interrupted)
    else:  # event loops on Windows don't support signal handlers
        notify = partial(loop.call_soon_threadsafe, worker.interrupted)
        signal.signal(signal.SIGINT, lambda _number, _frame: notify())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not available on Windows
        return None
    return uvloop.new_event_loop


def raise_file_limit() -> None:
    """Raise the limit of open files, and so of connections, as far as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS reports a higher limit than it allows
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bind(host: str, port: int) -> socket.socket:
    """Create a listening socket; raises `ConfigError` if the address can't be used."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        msg = "the host to listen on can't be resolved; use an address of this machine: 127.0.0.1"
        raise ConfigError(msg) from None
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # on Windows it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        why = os.strerror(error.errno) if error.errno else "it can't be used"
        msg = f"port {port} of {address[0]}: {why.lower()}; choose another with --port"
        raise ConfigError(msg) from None
    listening.set_inheritable(True)
    return listening
