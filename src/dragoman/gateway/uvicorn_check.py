"""Whether the installed uvicorn lets our protocol answer: tried before the server says it listens.

What uvicorn's server and its `Config` hand to a protocol class is not documented. If a release
changes it, no request would be answered, and nothing would say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import uvicorn

from dragoman.errors import ConfigError
from dragoman.gateway.protocol import GatewayProtocol

_REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
_OVERRIDDEN = "capture_signals", "serve"
_USED = "started", "should_exit", "server_state"


def expect_usable() -> None:
    """Raise `ConfigError` if a request to a server of the installed uvicorn isn't answered."""
    try:
        _try_it()
    except Exception as error:
        version = getattr(uvicorn, "__version__", "(of unknown version)")
        msg = (
            f"the installed uvicorn {version} doesn't work with this gateway"
            f" ({type(error).__name__}: {error}); install one that does:"
            " pip install --upgrade 'dragoman[gateway]'"
        )
        raise ConfigError(msg) from error


def _try_it() -> None:
    config = uvicorn.Config(
        _answering, http=GatewayProtocol, ws="none", interface="asgi3", lifespan="off",
        log_config=None,
    )  # fmt: skip
    config.load()
    server = uvicorn.Server(config)
    lacking = [name for name in _OVERRIDDEN if not hasattr(uvicorn.Server, name)]
    lacking += [name for name in _USED if not hasattr(server, name)]
    if lacking:
        msg = f"its Server has no {', '.join(lacking)}"
        raise AttributeError(msg)
    make: Any = config.http_protocol_class
    made = make(config=config, server_state=server.server_state, app_state={}, _loop=_Loop())
    client = _Client()
    made.connection_made(client)
    made.data_received(_REQUEST)
    made.shutdown()
    made.connection_lost(None)
    if not client.received.startswith(b"HTTP/1.1 204 "):
        msg = "a request was not answered"
        raise RuntimeError(msg)


async def _answering(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers at once."""
    del scope, receive
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class _Client(asyncio.Transport):
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.received = b""
        self._is_closed = False

    def write(self, data: Any) -> None:
        self.received += data

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class _Done:
    """A task that has ended."""

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        function(self)


class _Loop:
    """Runs a coroutine that waits for nothing: there may be no event loop yet, or a busy one."""

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> _Done:
        try:
            coroutine.send(None)
        except StopIteration:
            return _Done()
        coroutine.close()
        msg = "answering had to wait"
        raise RuntimeError(msg)
