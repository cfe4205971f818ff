"""`dragoman mcp` as a separate process, used by hand or by the official client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from mcp.client.stdio import StdioServerParameters

SERVER = ["-m", "dragoman.cli", "mcp"]
INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


def over_stdio(*options: str) -> StdioServerParameters:
    """How the official client starts a server."""
    env = dict(os.environ)  # it passes on next to nothing by itself
    return StdioServerParameters(command=sys.executable, args=[*SERVER, *options], env=env)


class Spoken:
    """A server that is used line by line, as clients before 2026 did."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._id = 0

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def shake_hands(self) -> Any:
        """Initialize; returns the server's information."""
        self.send(json.dumps(INITIALIZE).encode())
        first = self.line()
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        return first["result"]

    def send(self, line: bytes) -> None:
        """Send any line."""
        self._stdin.write(line + b"\n")
        self._stdin.flush()

    def line(self) -> Any:
        """The next line of output."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, params: Any) -> None:
        """Send a request; its answer comes later."""
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.send(json.dumps(request).encode())

    def call(self, name: str, **arguments: Any) -> Any:
        """The result of a tool."""
        self.ask("tools/call", {"name": name, "arguments": arguments})
        return self.line()["result"]

    def leave(self) -> tuple[int, bytes, bytes]:
        """Close standard input; returns the exit code and the remaining output."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def started(*options: str, env: Mapping[str, str] | None = None) -> Generator[Spoken]:
    """A server over standard input and output."""
    process = subprocess.Popen(
        [sys.executable, *SERVER, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, **(env or {})},
    )  # fmt: skip
    with process:
        try:
            yield Spoken(process)
        finally:
            process.kill()


@contextmanager
def listening(
    *options: str, env: Mapping[str, str] | None = None
) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    """A server over HTTP, and its address."""
    with started(*options, env=env) as spoken:
        process = spoken.process
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(rb"http://\S+", line):
                yield process, found[0].decode().rstrip(";")
                return
        msg = "it did not begin to listen"
        raise AssertionError(msg)
