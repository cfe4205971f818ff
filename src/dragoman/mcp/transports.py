"""Transports to a server: as a process on this machine, or over HTTP.

Each wraps the SDK's transport, and records what the SDK doesn't report: a process's stderr, and the
status of failed HTTP requests.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from contextvars import ContextVar
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

ENCODING = "dragoman_utf8_lines"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum size of a message from a process: twice what an agent accepts as a result."""
_overflow: ContextVar[Callable[[], None] | None] = ContextVar("dragoman_mcp_line", default=None)


@contextmanager
def ending(end: Callable[[], None]) -> Generator[None]:
    """Readers that start in the block call this when a line is too long.

    The SDK alone would go on to read, and drop, whatever the process writes.
    """
    token = _overflow.set(end)
    try:
        yield
    finally:
        _overflow.reset(token)


class _Lines(codecs.IncrementalDecoder):
    """Holds back an incomplete line."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._end = _overflow.get()
        self.reset()

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002, FBT001, FBT002 - its signature
        """The lines that this completes; at the end, the rest."""
        lines, newline, rest = bytes(input).rpartition(b"\n")
        if final:
            lines, newline, rest = bytes(input), b"", b""
        text = ""
        if newline or final:
            held = b"".join(self._held)
            self.reset()
            text = codecs.decode(held + lines + newline, "utf-8", self.errors)
        self._held.append(rest)
        self._size += len(rest)
        if self._size > MAX_LINE_BYTES:
            self.reset()
            if self._end is not None:
                self._end()
            msg = f"a message has more than {MAX_LINE_BYTES:,} bytes"
            raise ConnectionError(msg)  # which the SDK's reader expects
        return text

    def reset(self) -> None:
        """Forget what is held back."""
        self._held: list[bytes] = []
        self._size = 0


def _found(name: str) -> codecs.CodecInfo | None:
    if name != ENCODING:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        name=ENCODING, encode=utf8.encode, decode=utf8.decode, incrementaldecoder=_Lines
    )


codecs.register(_found)


Streams = tuple[Any, Any]
"""The SDK's pair of streams: one to read from, one to write to."""
OpenTransport = Callable[[], AbstractAsyncContextManager[Streams]]

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of an HTTP response: twice what an agent accepts as a result."""
MAX_PACKED_BYTES = 1024 * 1024
"""Maximum size of a compressed response, which may expand a thousandfold."""

_STDERR_CHARS = 4_000
_STDERR_LINES = 12
_SECRET_CHARS = 6
_READ_TIMEOUT = 300.0  # seconds without data, on an open stream
_FIRST_ERROR = 400


class Notes:
    """Notes about a connection, for error messages."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self.status: int | None = None
        """The HTTP status of the last response, if it was an error."""
        self.lost: Callable[[], None] = _nothing
        """Called when the connection turns out to be lost."""
        self._secrets = [each for each in secrets if len(each) >= _SECRET_CHARS]
        self._written: deque[str] = deque(maxlen=_STDERR_LINES)
        self._reader: Thread | None = None

    def follow(self, descriptor: int) -> None:
        """Keep the last lines written to a pipe, read on a separate thread."""
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
        """The last lines, without control characters and secrets."""
        if self._reader is not None and patience:
            self._reader.join(patience)  # the last lines may still be on their way
        text = "\n".join(map(harmless, [*self._written]))
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text.strip()[-_STDERR_CHARS:]


def _nothing() -> None:
    pass


class _HttpClient(httpx2.AsyncClient):
    """Records how requests end."""

    def __init__(self, notes: Notes, *, ends_with_a_failure: bool, **settings: Any) -> None:
        super().__init__(**settings)
        self._notes = notes
        self._ends_with_a_failure = ends_with_a_failure

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Send a request; for server-sent events, the SDK reports no failed messages."""
        try:
            response = await super().send(request, **settings)
        except BaseException:
            self._note(None)
            raise
        self._note(response.status_code)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            # The SDK limits only the size of events.
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
    """A body of limited size."""

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
    """The text without control characters."""
    return "".join(each if each.isprintable() else " " for each in text)


class Transport(Protocol):
    """A way to reach a server."""

    @property
    def place(self) -> str:
        """Its name in errors: a command, or a host."""
        ...

    def notes(self) -> Notes:
        """Notes for a new connection."""
        ...

    def open(self, notes: Notes) -> AbstractAsyncContextManager[Streams]:
        """The streams of a new connection."""
        ...


@dataclass(frozen=True, repr=False)
class Stdio:
    """A process that communicates through its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None

    def __post_init__(self) -> None:
        expect(self.command, str, "the command of an MCP server")
        if not self.command or any("\0" in each for each in (self.command, *self.args)):
            msg = "the command of an MCP server is empty, or contains a NUL character"
            raise InvalidInputError(msg)

    @property
    def place(self) -> str:
        """The command's name, without arguments, which may contain keys."""
        return Path(self.command).name

    def notes(self) -> Notes:
        """Notes with the values of the environment as secrets."""
        return Notes(tuple(self.env.values()))

    @asynccontextmanager
    async def open(self, notes: Notes) -> AsyncGenerator[Streams]:
        """Start the process; leaving the block stops it and all its children."""
        parameters = StdioServerParameters(
            command=self.command, args=[*self.args], env=dict(self.env), cwd=self.cwd,
            encoding=ENCODING, encoding_error_handler="replace",
        )  # fmt: skip
        reading, writing = os.pipe()
        notes.follow(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as errors:
            async with AsyncExitStack() as stack:
                with ending(lambda: notes.lost()):  # noqa: PLW0108 - it is set later
                    streams = await stack.enter_async_context(
                        stdio_client(parameters, errlog=errors)
                    )
                errors.close()  # the process has its own copy: the pipe ends with it
                yield streams


@dataclass(frozen=True, repr=False)
class Http:
    """A server at a URL: streamable HTTP, or the older server-sent events."""

    url: str
    headers: Mapping[str, str] = EMPTY
    auth: Any = None
    is_sse: bool = False

    def __post_init__(self) -> None:
        expect(self.url, str, "the URL of an MCP server")
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
            msg = "the URL of an MCP server must look like https://example.com/mcp"
            raise InvalidInputError(msg)

    @property
    def place(self) -> str:
        """The host, without the rest of the URL, which may contain keys."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def notes(self) -> Notes:
        """Notes without secrets: nothing from the server is shown."""
        return Notes()

    @asynccontextmanager
    async def open(self, notes: Notes) -> AsyncGenerator[Streams]:
        """Connect. Redirects are followed only within the same origin."""

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
                streamable_http_client(
                    self.url, http_client=http_client, max_sse_event_size=MAX_BYTES
                ) as streams,
            ):
                yield streams


@dataclass(frozen=True, repr=False)
class Custom:
    """A custom transport, such as the SDK's in-memory or websocket ones."""

    function: OpenTransport
    place: str = "custom transport"

    def __post_init__(self) -> None:
        given: object = self.function
        if not callable(given):
            msg = "a transport must be a function that returns an async context manager"
            raise InvalidInputError(msg)

    def notes(self) -> Notes:
        """Notes without secrets."""
        return Notes()

    def open(self, notes: Notes) -> AbstractAsyncContextManager[Streams]:  # noqa: ARG002 - others note something
        """The streams that the function returns."""
        return self.function()


_ALLOWED_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII).fullmatch


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The given HTTP headers; raises without quoting a value if one is invalid."""
    expect(headers, Mapping, "headers of an MCP server")
    given: Mapping[Any, Any] = headers
    for name, value in given.items():
        if not isinstance(name, str) or not _ALLOWED_HEADER(name):
            msg = "the name of an HTTP header may contain only letters, digits and hyphens"
            raise InvalidInputError(msg)
        if not isinstance(value, str) or not value.isascii() or {"\r", "\n", "\0"} & {*value}:
            msg = f"the value of the HTTP header {name} must be ASCII text on one line"
            raise InvalidInputError(msg)
    return dict(headers)
