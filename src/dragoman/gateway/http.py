"""Reads an HTTP request and writes its response, over raw ASGI.

A web framework would add as much time as everything that the gateway does itself.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dragoman.errors import InvalidRequest
from dragoman.gateway.content_encoding import too_large
from dragoman.gateway.intake import BodyLimits, Intake

if TYPE_CHECKING:
    from dragoman.gateway.cycle import Cycle

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})
"""Headers that say where a response ends."""
_UNBUFFERED = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_TOO_SLOW = 408


class Disconnected(Exception):  # noqa: N818 - not a failure
    """The client disconnected."""


class Call:
    """An HTTP request and its response. Created for every request, so it is kept minimal."""

    more_headers: dict[str, str]
    """Headers to add to the response, even if it is an error."""
    has_begun = is_over = False
    """Whether the response's headers were sent (`has_begun`), and all of it (`is_over`)."""
    status = 0
    sent = 0
    first_byte: float | None = None
    kept: bytes | None = None
    """The beginning of the response, if bodies are captured."""
    received = 0
    """Bytes of the body that arrived, or that it expanded to if these are more."""
    _most_kept = 0
    _is_direct = False
    _watch: asyncio.Task[None] | None = None

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.path: str = scope["path"]
        self.scheme: str = scope.get("scheme", "http")
        self.headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._receive = receive
        self._send = send
        cycle: Any = getattr(receive, "__self__", None)
        self._cycle: Cycle | None = cycle if hasattr(cycle, "take_body") else None
        """The connection's side of it, if our own protocol serves it."""
        self.named: dict[bytes, bytes] = (
            dict(reversed(self.headers)) if self._cycle is None else self._cycle.named
        )
        """The headers by name; of repeated ones the first."""
        self.began = perf_counter()
        self.more_headers = {}

    # --- the request

    def header(self, name: bytes) -> str | None:
        """A header's value; pass the name in lower case."""
        value = self.named.get(name)
        return None if value is None else value.decode("latin-1")

    async def body(
        self, limits: BodyLimits, seconds: float | None, grown: Callable[[int], None] | None = None
    ) -> bytes:
        """Read and decompress the body, within limits that are checked while it arrives."""
        self._expect_length(limits.size)
        raw, more = None if self._cycle is None else self._cycle.take_body(), False
        if raw is None:
            message = await self._receive_within(seconds)
            raw, more = message.get("body", b""), message.get("more_body", False)
        encodings = None
        if b"content-encoding" in self.named:
            named = [value for name, value in self.headers if name == b"content-encoding"]
            encodings = b",".join(named).decode("latin-1")
        elif not more and len(raw) <= min(limits.size, limits.values or limits.size):
            return raw  # too small for too many values
        intake = Intake(limits, encodings, grown)
        try:
            await intake.take(raw)
            if more:
                await self._rest(intake, seconds)
        finally:
            self.received = intake.size
        return intake.complete()

    def _expect_length(self, most: int) -> None:
        length = self.named.get(b"content-length")
        if length is not None and length.isdigit() and int(length[:20]) > most:
            raise too_large(most)

    async def _rest(self, intake: Intake, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await self._received()
                    await intake.take(message.get("body", b""))
                    if not message.get("more_body"):
                        return
        except builtins.TimeoutError:
            msg = "the request body did not arrive in time"
        raise InvalidRequest(msg, status=_TOO_SLOW)

    async def pieces(self, most: int, seconds: float | None) -> AsyncIterator[bytes]:
        """Stream the body without decompressing it; each chunk must arrive in time."""
        self._expect_length(most)
        size, has_more = 0, True
        while has_more:
            message = await self._receive_within(seconds)
            piece: bytes = message.get("body", b"")
            has_more = message.get("more_body", False)
            size += len(piece)
            if size > most:
                raise too_large(most)
            if piece:
                yield piece

    async def _receive_within(self, seconds: float | None) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                return await self._received()
        except builtins.TimeoutError:
            msg = "the request body did not arrive in time"
        raise InvalidRequest(msg, status=_TOO_SLOW)

    async def _received(self) -> dict[str, Any]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        if message.get("more_body") and self._cycle is not None and self._cycle.broken is not None:
            status, reason = self._cycle.broken  # our protocol could not parse the rest
            raise InvalidRequest(reason, status=status)
        return message

    def watch(self, left: Callable[[], object]) -> None:
        """Call a function when the client disconnects before its response is complete."""
        if self._cycle is not None:  # our protocol calls it directly; a task would cost 20 µs
            self._cycle.left = left
        else:
            self._watch = asyncio.get_running_loop().create_task(self._watched(left))

    async def _watched(self, left: Callable[[], object]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.is_over:
            left()

    def unwatch(self) -> None:
        """Stop watching: the connection must not hold the request."""
        if self._cycle is not None:
            self._cycle.left = None
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    # --- the response

    def keep(self, most: int) -> None:
        """Capture the first `most` bytes of the response."""
        self.kept, self._most_kept = b"", most

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a complete response."""
        self._begin(status)
        cycle = self._cycle
        if cycle is not None and _FRAMING.isdisjoint(headers):
            self._count(body)
            self.is_over = True
            await cycle.respond(status, headers, self.more_headers, body)
            return
        if headers.get("content-length") is None:
            headers = {**headers, "content-length": str(len(body))}
        await self._send(
            {"type": "http.response.start", "status": status, "headers": self._listed(headers)}
        )
        await self._out(body, more=False)

    async def begin(self, headers: Mapping[str, str], status: int = 200) -> None:
        """Start a streamed response by sending its headers."""
        self._begin(status)
        headers = {**headers, **_UNBUFFERED}
        cycle = self._cycle
        if cycle is not None and _FRAMING.isdisjoint(headers):
            self._is_direct = True
            await cycle.begin(status, headers, self.more_headers)
            return
        head = self._listed(headers)
        await self._send({"type": "http.response.start", "status": status, "headers": head})

    async def write(self, data: bytes) -> None:
        """Send a chunk."""
        cycle = self._cycle
        if cycle is None or not self._is_direct:
            await self._out(data, more=True)
            return
        self._count(data)
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        cycle.write(data)

    @property
    def is_direct(self) -> bool:
        """Whether `write_now` can be used: a streamed response on a connection of our protocol."""
        return self._is_direct

    def write_now(self, data: bytes) -> bool:
        """Send a chunk at once; returns False if `drain` must be awaited before the next one."""
        cycle = self._cycle
        assert cycle is not None  # noqa: S101 - `is_direct`
        if self.first_byte is None or self.kept is not None:
            self._count(data)
        else:
            self.sent += len(data)
        cycle.write(data)
        return not cycle.flow.write_paused

    async def drain(self) -> None:
        """Wait until the client has read most of what was sent."""
        cycle = self._cycle
        if cycle is not None and cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()

    async def end(self, data: bytes = b"") -> None:
        """Send the last chunk."""
        cycle = self._cycle
        if cycle is None or not self._is_direct:
            await self._out(data, more=False)
            return
        self._count(data)
        self.is_over = True
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        cycle.end(data)

    def _begin(self, status: int) -> None:
        self.has_begun = True
        self.status = status

    def _count(self, data: bytes) -> None:
        if self.first_byte is None:
            self.first_byte = perf_counter()
        self.sent += len(data)
        if self.kept is not None and len(self.kept) < self._most_kept:
            self.kept += data[: self._most_kept - len(self.kept)]

    async def _out(self, data: bytes, *, more: bool) -> None:
        self._count(data)
        self.is_over = not more
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    def _listed(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        return [
            (name.encode("latin-1"), value.encode("latin-1", "replace"))
            for each in (headers, self.more_headers)
            for name, value in each.items()
        ]


def as_mapping(headers: Iterable[tuple[bytes, bytes]], names: Iterable[str]) -> dict[str, str]:
    """Select headers by name; repeated ones are joined with commas."""
    wanted = {name.encode("latin-1"): name for name in names}
    found: dict[str, str] = {}
    for name, value in headers:
        if name in wanted:
            key, text = wanted[name], value.decode("latin-1")
            found[key] = f"{found[key]},{text}" if key in found else text
    return found
