"""How a server is reached: as a process on this machine, or at an address.

Each transport opens the SDK's own, and notes what the SDK does not tell: what a process wrote to
stderr, and with which status an HTTP server refused.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.value import expect

Streams = tuple[Any, Any]
"""What the SDK's transports give: a stream to read from and one to write to."""
OpenTransport = Callable[[], AbstractAsyncContextManager[Streams]]

MAX_BYTES = 64 * 1024 * 1024
"""Of one HTTP response: twice what an agent takes of a result."""
MAX_PACKED_BYTES = 1024 * 1024
"""Of one that is compressed: it may be a thousand times as large as it comes."""

_STDERR_CHARS = 4_000
_STDERR_LINES = 12
_SECRET_CHARS = 6
_READ_TIMEOUT = 300.0  # seconds without a byte, on a stream that is held open
_FIRST_ERROR = 400


class Notes:
    """What is noted about a connection, to be told when it fails."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self.status: int | None = None
        """The HTTP status of the last answer, where that was an error."""
        self.lost: Callable[[], None] = _nothing
        """To be called when the connection is found to be gone."""
        self._secrets = [each for each in secrets if len(each) >= _SECRET_CHARS]
        self._written: deque[str] = deque(maxlen=_STDERR_LINES)
        self._reader: Thread | None = None

    def follow(self, descriptor: int) -> None:
        """Keep the last lines that are written to a pipe, on a thread of its own."""
        self._reader = Thread(target=self._read, args=(descriptor,), daemon=True, name="mcp-stderr")
        self._reader.start()

    def _read(self, descriptor: int) -> None:
        rest = b""
        with suppress(OSError):
            while piece := os.read(descriptor, 65_536):
                *lines, rest = (rest + piece).split(b"\n")
                rest = rest[-_STDERR_CHARS:]
                for line in lines[-_STDERR_LINES:]:
                    self._written.append(line[-_STDERR_CHARS:].decode("utf-8", "replace"))
        if rest:
            self._written.append(rest.decode("utf-8", "replace"))
        with suppress(OSError):
            os.close(descriptor)

    def stderr(self, patience: float = 0.0) -> str:
        """The last lines, harmless to a terminal, without what we gave as secrets."""
        if self._reader is not None and patience:
            self._reader.join(patience)  # the last words may still be on their way
        text = "\n".join(map(harmless, [*self._written]))
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text.strip()[-_STDERR_CHARS:]


def _nothing() -> None:
    pass


class _HttpClient(httpx2.AsyncClient):
    """Notes how requests end."""

    def __init__(self, notes: Notes, *, ends_with_a_failure: bool, **settings: Any) -> None:
        super().__init__(**settings)
        self._notes = notes
        self._ends_with_a_failure = ends_with_a_failure

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """As any client; of server-sent events, the SDK tells nobody that a message failed."""
        try:
            response = await super().send(request, **settings)
        except BaseException:
            self._note(None)
            raise
        self._note(response.status_code)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            # The SDK limits events, and nothing else.
            is_packed = "content-encoding" in response.headers
            most = MAX_PACKED_BYTES if is_packed else MAX_BYTES
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _Limited(response.stream, most)
        return response

    def _note(self, status: int | None) -> None:
        is_failure = status is None or status >= _FIRST_ERROR
        self._notes.status = status if is_failure else None
        if self._ends_with_a_failure and is_failure:
            self._notes.lost()


class _Limited(httpx2.AsyncByteStream):
    """A body of so many bytes at the most."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                msg = "the response is too large"
                raise httpx2.StreamError(msg)
            yield piece

    async def aclose(self) -> None:
        """Stop reading."""
        await self._stream.aclose()


def harmless(text: str) -> str:
    """The text without control characters, which could do things to a terminal."""
    return "".join(each if each.isprintable() else " " for each in text)


class Transport(Protocol):
    """One way to reach a server."""

    @property
    def place(self) -> str:
        """What is told of it in errors: a command, or a host."""
        ...

    def notes(self) -> Notes:
        """Where a new connection's notes go."""
        ...

    def open(self, notes: Notes) -> AbstractAsyncContextManager[Streams]:
        """The streams of a new connection."""
        ...


@dataclass(frozen=True, repr=False)
class Stdio:
    """A process that is started, and spoken to through its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None

    def __post_init__(self) -> None:
        expect(self.command, str, "the command of an MCP server")
        if not self.command or any("\0" in each for each in (self.command, *self.args)):
            msg = "the command of an MCP server is empty, or has a NUL character in it"
            raise InvalidInputError(msg)

    @property
    def place(self) -> str:
        """The command's name; arguments may hold keys."""
        return Path(self.command).name

    def notes(self) -> Notes:
        """With the values of the environment as secrets."""
        return Notes(tuple(self.env.values()))

    @asynccontextmanager
    async def open(self, notes: Notes) -> AsyncGenerator[Streams]:
        """Start the process; leaving stops it, with all that it started."""
        parameters = StdioServerParameters(
            command=self.command, args=[*self.args], env=dict(self.env), cwd=self.cwd,
            encoding_error_handler="replace",
        )  # fmt: skip
        reading, writing = os.pipe()
        notes.follow(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                errors.close()  # the process has its own: the pipe ends when it does
                yield streams


@dataclass(frozen=True, repr=False)
class Http:
    """A server at an address: streamable HTTP, or the older server-sent events."""

    url: str
    headers: Mapping[str, str] = EMPTY
    auth: Any = None
    is_sse: bool = False

    def __post_init__(self) -> None:
        expect(self.url, str, "the address of an MCP server")
        if self.auth is not None and not isinstance(self.auth, httpx2.Auth):
            msg = (
                "auth of an MCP server must be an httpx2.Auth, such as the OAuthClientProvider of"
                f" mcp.client.auth; not {type(self.auth).__name__}"
            )
            raise InvalidInputError(msg)
        try:
            parts = urlsplit(self.url)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            is_address = False
        if not is_address:
            msg = "the address of an MCP server must be like https://example.com/mcp"
            raise InvalidInputError(msg)

    @property
    def place(self) -> str:
        """The host; the rest of the address may hold keys."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def notes(self) -> Notes:
        """With no secrets: nothing that the server says is told."""
        return Notes()

    @asynccontextmanager
    async def open(self, notes: Notes) -> AsyncGenerator[Streams]:
        """Connect. Redirects are followed only within the address's own origin."""

        def client(
            headers: Any = None,  # noqa: ARG001 - the SDK's signature
            timeout: Any = None,  # noqa: ARG001
            auth: Any = None,  # noqa: ARG001
        ) -> httpx2.AsyncClient:
            return _HttpClient(
                notes,
                ends_with_a_failure=self.is_sse,
                headers=dict(self.headers),
                auth=self.auth,
                timeout=httpx2.Timeout(30.0, read=_READ_TIMEOUT),
            )

        if self.is_sse:
            async with sse_client(self.url, httpx_client_factory=client) as streams:
                yield streams
        else:
            async with (
                client() as http_client,
                streamable_http_client(self.url, http_client=http_client) as streams,
            ):
                yield streams


@dataclass(frozen=True, repr=False)
class Custom:
    """A transport of the user's own, as the SDK has them: in memory, or over a websocket."""

    function: OpenTransport
    place: str = "custom transport"

    def __post_init__(self) -> None:
        given: object = self.function
        if not callable(given):
            msg = "a transport must be a function that returns an async context manager"
            raise InvalidInputError(msg)

    def notes(self) -> Notes:
        """With no secrets."""
        return Notes()

    def open(self, notes: Notes) -> AbstractAsyncContextManager[Streams]:  # noqa: ARG002 - others note something
        """The streams that the function gives."""
        return self.function()


_ALLOWED_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII).fullmatch


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """HTTP headers as people give them; raises without quoting a value."""
    expect(headers, Mapping, "headers of an MCP server")
    given: Mapping[Any, Any] = headers
    for name, value in given.items():
        if not isinstance(name, str) or not _ALLOWED_HEADER(name):
            msg = "the name of an HTTP header may have letters, digits and hyphens only"
            raise InvalidInputError(msg)
        if not isinstance(value, str) or not value.isascii() or {"\r", "\n", "\0"} & {*value}:
            msg = f"the value of the HTTP header {name} must be ASCII text on one line"
            raise InvalidInputError(msg)
    return dict(headers)
