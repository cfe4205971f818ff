"""The network: aiohttp, and its errors in our words.

A session belongs to the event loop it was made on: a transport makes one for each loop that uses
it, so that one client object serves scripts, threads and servers alike.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from time import monotonic
from typing import Any, Self
from weakref import ref

import aiohttp

from dragoman.errors import (
    ConfigError,
    ConnectError,
    StreamInterrupted,
    TimeoutError,  # noqa: A004 - ours, which is the builtin's as well
    TransportError,
)
from dragoman.transport.connections import Sessions
from dragoman.transport.protocol import HttpRequest, Timeouts

_PIECE = 512 * 1024


class HttpTransport:
    """Requests over the network.

    Proxies are taken from the environment (`HTTPS_PROXY`, `NO_PROXY` …), and so is a file of
    certificate authorities (`SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`). Redirects are not followed: a
    key would go where nobody meant it to.
    """

    def __init__(self, *, connections: int = 1000) -> None:
        self._sessions = Sessions(connections)

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> HttpReply:
        """Send a request; returns when the head of the reply is there."""
        way = self._sessions.way(request.url, timeouts)
        # aiohttp's limit is for each piece: a head may come byte by byte, for ever.
        # Who sends a body in pieces sees to its time; the reply's is the session's limit.
        limit = None if request.pieces is not None else timeouts.head(len(request.body or b""))
        deadline = Deadline(limit)
        try:
            response = await way.session.request(
                request.method,
                request.url,
                data=request.pieces or _piecewise(request.body),
                headers=request.headers,
                proxy=way.proxy,
                timeout=way.limits,
                allow_redirects=False,
            )
        except asyncio.CancelledError:
            if not deadline.took_over():
                raise
            raised = _explained(builtins.TimeoutError())
        except (aiohttp.ClientError, builtins.TimeoutError, ValueError, OSError) as error:
            raised = _explained(error)
        else:
            reply = HttpReply(response, timeouts.between)
            way.replies.add(reply)
            return reply
        finally:
            deadline.cancel()
        raise raised

    async def close(self) -> None:
        """Close the connections of this loop; those of others end with their loops."""
        await self._sessions.close()


class Deadline:
    """Cancels the running task after so many seconds: `asyncio.timeout` at a third of its cost."""

    __slots__ = ("_before", "_handle", "_is_over", "_task")

    def __init__(self, seconds: float | None) -> None:
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()
        self._is_over = False
        loop = asyncio.get_running_loop()
        self._handle = None if seconds is None else loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    def took_over(self) -> bool:
        """Whether a cancellation was this one's alone; then the task goes on."""
        return self._is_over and self._task is not None and self._task.uncancel() <= self._before

    def cancel(self) -> None:
        """It was in time."""
        if self._handle is not None:
            self._handle.cancel()


class HttpReply:
    """A reply of aiohttp's, and the iterator of its body.

    A class and not a generator: one that is dropped half way leaves nothing to be finished by a
    task of the loop's.
    """

    __slots__ = ("__weakref__", "_between", "_content", "_loop", "_response", "_since", "_timer")

    def __init__(self, response: aiohttp.ClientResponse, between: float | None) -> None:
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._content = response.content
        self._between = between
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        _stop_read_timeout(response)

    @property
    def status(self) -> int:
        """The status code."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._response.headers

    def chunks(self) -> Self:
        """The body as it comes."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._between is not None and not self._content.is_eof():
            self._since = monotonic()
            if self._timer is None:
                self._watch(self._between)
        try:
            piece = await self._content.readany()
        except (aiohttp.ClientError, builtins.TimeoutError, OSError) as error:
            raised = _broken_off(error)
        else:
            self._since = None
            if piece:
                return piece
            self._stop()
            raise StopAsyncIteration
        self._stop()
        raise raised

    async def close(self) -> None:
        """Let go of it; a body that has not ended takes its connection with it, at once."""
        self._stop()
        self._response.close()

    def __del__(self) -> None:
        # Somebody left a stream half way, without `async with`.
        self._stop()
        response = self._response
        if not response.closed:
            with suppress(RuntimeError, AttributeError):  # the loop is closed, or Python ends
                self._loop.call_soon_threadsafe(response.close)

    def look(self) -> None:
        """See whether it took too long."""
        most = self._between or 0.0
        left = most if self._since is None else self._since + most - monotonic()
        if left > 0:
            self._watch(left)
        else:
            self._content.set_exception(builtins.TimeoutError())

    def _watch(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, _look, ref(self))

    def _stop(self) -> None:
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _look(reply: ref[Any]) -> None:
    """See whether a body stalls.

    One timer, however many pieces come: it looks at the clock. Only waiting counts; a consumer may
    take as long as it likes. A reply that was dropped is not kept by its timer.
    """
    found = reply()
    if found is not None:
        found.look()


def _piecewise(body: bytes | None) -> bytes | BytesIO | None:
    """A body as aiohttp likes it: big ones in pieces, so that others get their turn in between."""
    return body if body is None or len(body) <= _PIECE else BytesIO(body)


def _stop_read_timeout(response: aiohttp.ClientResponse) -> None:
    """The head has come: from here on the pauses are watched by the reply."""
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = None
        connection.protocol.start_timeout()


def _explained(  # noqa: PLR0911 - a table, in the form of a match
    error: Exception,
) -> TransportError | ConfigError:
    """Why no reply came; theirs may quote addresses and headers."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return TimeoutError("no connection was made in time", sent=False)
        case builtins.TimeoutError():
            return TimeoutError("the server did not answer in time", sent=True)
        case aiohttp.ClientConnectorCertificateError():
            msg = "the server's certificate is not trusted"
            return ConnectError(msg, sent=False, retryable=False)
        case aiohttp.ClientSSLError():
            return ConnectError("the server does not speak TLS as it should", sent=False)
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return ConnectError("the proxy could not be reached, or refused", sent=False)
        case aiohttp.ClientConnectorDNSError():
            return ConnectError("the server's name is not known", sent=False)
        case aiohttp.ClientConnectorError():
            return ConnectError("no connection to the server could be made", sent=False)
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return ConfigError("the address or a header is malformed")
        case aiohttp.ClientResponseError():  # another attempt would not read better
            return TransportError("the server did not answer in HTTP, or at length", sent=True)
        case _:
            text = f"the connection broke before an answer came ({type(error).__name__})"
            return ConnectError(text, sent=True)


def _broken_off(error: Exception) -> TransportError:
    if isinstance(error, builtins.TimeoutError):
        return TimeoutError("the server stopped sending in the middle of its answer", sent=True)
    if isinstance(error, aiohttp.ClientPayloadError):
        return StreamInterrupted("the connection ended before the answer did")
    return StreamInterrupted(f"the connection broke off ({type(error).__name__})")
