"""The HTTP transport, on aiohttp, with its errors translated to ours.

An aiohttp session belongs to one event loop: a transport has one for each loop that uses it, so
that one client object serves scripts, threads and servers alike.
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

from dragoman.errors import ConfigError, TransportError
from dragoman.transport import failures
from dragoman.transport.connections import Sessions
from dragoman.transport.protocol import HttpRequest, Timeouts

_CHUNK_BYTES = 512 * 1024


class HttpTransport:
    """Sends requests over the network.

    Proxies are read from the environment (`HTTPS_PROXY`, `NO_PROXY` …), and so is a file of
    certificate authorities (`SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`). Redirects are not followed,
    because they could send a key elsewhere.
    """

    def __init__(self, *, connections: int = 1000) -> None:
        self._sessions = Sessions(connections)

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> HttpReply:
        """Send a request; returns when the status and headers have arrived."""
        way = self._sessions.way(request.url, timeouts)
        # aiohttp's limit is per read: headers could arrive byte by byte, forever. Callers that send
        # a body in pieces limit its time themselves; the session limits the reply's.
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
            reply = HttpReply(response, timeouts.between_chunks)
            way.replies.add(reply)
            return reply
        finally:
            deadline.cancel()
        raise raised

    async def close(self) -> None:
        """Close the connections of this loop; those of other loops end with their loops."""
        await self._sessions.close()


class Deadline:
    """Cancels the current task after a time, at a third of the cost of `asyncio.timeout`."""

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
        """Whether the cancellation was only ours; then the task goes on."""
        return self._is_over and self._task is not None and self._task.uncancel() <= self._before

    def cancel(self) -> None:
        """Stop the timer."""
        if self._handle is not None:
            self._handle.cancel()


class HttpReply:
    """An aiohttp response, and the iterator over its body.

    A class rather than a generator, so that dropping it leaves nothing for the loop to finalise.
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
        """The body as it arrives."""
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
        """Close it; if the body has not ended, its connection is closed at once."""
        self._stop()
        self._response.close()

    def __del__(self) -> None:
        # A stream was dropped before its end, without `async with`.
        self._stop()
        response = self._response
        if not response.closed:
            with suppress(RuntimeError, AttributeError):  # the loop is closed, or Python exits
                self._loop.call_soon_threadsafe(response.close)

    def look(self) -> None:
        """Check whether it took too long."""
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
    """Check whether a body stalls.

    One timer serves any number of chunks: it compares times. Only waiting counts; the consumer may
    take any time. The timer doesn't keep a dropped reply alive.
    """
    found = reply()
    if found is not None:
        found.look()


def _piecewise(body: bytes | None) -> bytes | BytesIO | None:
    """A body for aiohttp: large ones in pieces, so that other tasks get their turn."""
    return body if body is None or len(body) <= _CHUNK_BYTES else BytesIO(body)


def _stop_read_timeout(response: aiohttp.ClientResponse) -> None:
    """The headers have arrived: from here on, the reply itself watches for stalls."""
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = None
        connection.protocol.start_timeout()


def _explained(  # noqa: PLR0911 - a table, in the form of a match
    error: Exception,
) -> TransportError | ConfigError:
    """Our error for an aiohttp error, whose own text may quote addresses and headers."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return failures.connect_timeout()
        case builtins.TimeoutError():
            return failures.response_timeout()
        case aiohttp.ClientConnectorCertificateError():
            return failures.untrusted_certificate()
        case aiohttp.ClientSSLError():
            return failures.tls_failure()
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return failures.proxy_failure()
        case aiohttp.ClientConnectorDNSError():
            return failures.unknown_host()
        case aiohttp.ClientConnectorError():
            return failures.unreachable()
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return failures.malformed_request()
        case aiohttp.ClientResponseError():
            return failures.not_http()
        case _:
            return failures.lost_before_response(type(error).__name__)


def _broken_off(error: Exception) -> TransportError:
    if isinstance(error, builtins.TimeoutError):
        return failures.stalled()
    if isinstance(error, aiohttp.ClientPayloadError):
        return failures.incomplete()
    return failures.lost(type(error).__name__)
