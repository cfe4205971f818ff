"""A loopback server that sends scripted bytes and records requests.

It uses raw sockets on purpose: no HTTP server can produce most of these faults.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from tests.environment import PATIENCE

EMPTY: Mapping[str, str] = {}


class Fault(Enum):
    """A fault in place of bytes."""

    CLOSE = "the connection ends"
    RESET = "the connection ends with an RST"
    HANG = "nothing more comes, and the connection stays"
    KEEP = "the answer is over, and the connection stays for the next request"


Step = bytes | Fault | asyncio.Event
"""Bytes are sent, faults happen, events are waited for."""


@dataclass(frozen=True)
class Seen:
    """A request that the server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The request body, parsed."""
        return json.loads(self.body)


Script = Callable[[Seen], Iterable[Step]]


@dataclass
class Server:
    """A running server: its address, and the requests it received."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    """All there ever were."""
    open: set[asyncio.Task[None]] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def port(self) -> int:
        """The port that the system assigned."""
        return int(self.url.rpartition(":")[2])

    async def until(self, condition: Callable[[Server], bool]) -> None:
        """Wait for a condition; the test's timeout ends a wait in vain."""
        async with asyncio.timeout(PATIENCE):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    async def until_idle(self) -> None:
        """Wait until the server has seen every connection end."""
        await self.until(lambda server: not server.open)


@asynccontextmanager
async def serving(
    *scripts: Script | Sequence[Step], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    """A server that answers requests by these scripts in turn, and repeats the last one."""
    server = Server()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        server.connections += 1
        server.open.add(task)
        server._changed.set()
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await _exchange(server, scripts, reader, writer):
                    pass
        finally:
            writer.transport.abort()
            server.open.discard(task)
            server._changed.set()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls, limit=2**20)
    host, port = listening.sockets[0].getsockname()[:2]
    server.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield server
    finally:
        listening.close()
        for task in [*server.open]:
            task.cancel()
        await asyncio.gather(*server.open, return_exceptions=True)


async def _exchange(
    server: Server,
    scripts: Sequence[Script | Sequence[Step]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    """Answer one request; returns whether the connection stays open."""
    seen = await _read(reader)
    script = scripts[min(len(server.seen), len(scripts) - 1)]
    server.seen.append(seen)
    server._changed.set()
    steps = script(seen) if callable(script) else script
    for step in steps:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        elif isinstance(step, asyncio.Event):
            await _first_of(step.wait(), _ended(reader))
        elif step is Fault.KEEP:
            return True
        elif step is Fault.HANG:
            await _ended(reader)
            return False
        elif step is Fault.RESET:
            await asyncio.sleep(0.01)  # the client has read everything sent before
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        else:
            writer.close()
            return False
    return True


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.rstrip().split("\r\n")
    method, path, _ = line.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in
               (each.partition(":") for each in fields)}  # fmt: skip
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, body)


async def _ended(reader: asyncio.StreamReader) -> None:
    while await reader.read(4096):
        pass
    raise ConnectionAbortedError


async def _first_of(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- answers


def head(status: int = 200, headers: Mapping[str, str] = EMPTY, *, version: str = "1.1") -> bytes:
    """The head of a response."""
    lines = [f"HTTP/{version} {status} Whatever", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def plain(
    body: Any, status: int = 200, headers: Mapping[str, str] = EMPTY, kind: str = "application/json"
) -> list[Step]:
    """A complete response with JSON or raw bytes."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    own = {"Content-Type": kind, "Content-Length": str(len(raw)), **headers}
    return [head(status, own) + raw, Fault.KEEP]


def chunk(piece: bytes) -> bytes:
    """A chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b""


def streamed(
    *pieces: bytes | Fault | asyncio.Event,
    kind: str = "text/event-stream",
    headers: Mapping[str, str] = EMPTY,
) -> list[Step]:
    """A chunked response; it ends properly unless the pieces end in a fault."""
    steps: list[Step] = [
        head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked", **headers})
    ]
    steps += [chunk(piece) if isinstance(piece, bytes) else piece for piece in pieces]
    if not (pieces and isinstance(pieces[-1], Fault)):
        steps += [b"0\r\n\r\n", Fault.KEEP]
    return steps
