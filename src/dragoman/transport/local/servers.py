"""Processes of llama.cpp's server: one per model and settings, as long as it is in use."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock, Thread
from typing import Any

import msgspec

from dragoman.errors import (
    ConfigError,
    TimeoutError,  # noqa: A004 - ours, which is the builtin's as well
)

_SCRIPT = Path(__file__).with_name("serving.py")
_POLL = 0.01


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a server."""

    model: str
    """The path of the model file."""
    alias: str
    context: int
    threads: int
    parallel: int
    embeddings: bool
    template: str | None
    verbose: bool


class Server:
    """A process that serves a model on loopback to clients with its key."""

    def __init__(self, settings: Settings) -> None:
        self.key = token_urlsafe(24)
        self._owner = os.getpid()
        self._answer: dict[str, str] | None = None
        self._process = _started(verbose=settings.verbose)
        self._tell({**msgspec.to_builtins(settings), "key": self.key})
        Thread(target=self._listen, name="dragoman-local", daemon=True).start()

    def _tell(self, settings: dict[str, Any]) -> None:
        # Through stdin: the key would be visible in the arguments or the environment.
        line = json.dumps({**settings, "path": sys.path, "parent": self._owner})
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - it is a pipe
        with suppress(OSError):  # it ended at once: there will be no answer
            stdin.write(line.encode() + b"\n")

    def _listen(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - it is a pipe
        with stdout:
            line = stdout.readline()
        self._answer = json.loads(line) if line else {"problem": "ended"}

    @property
    def is_running(self) -> bool:
        """Whether it is ready, or may become so."""
        return self._process.poll() is None and "problem" not in (self._answer or {})

    async def address(self, seconds: float | None) -> str:
        """Its address, once the model is loaded."""
        loop = asyncio.get_running_loop()
        latest = None if seconds is None else loop.time() + seconds
        # Any number of loops may wait, and stop waiting: each one polls.
        while self._answer is None:
            if latest is not None and loop.time() > latest:
                msg = "the model was not loaded in time; raise Timeouts.first_byte, or retry"
                raise TimeoutError(msg, sent=False)
            await asyncio.sleep(_POLL)
        if "address" in self._answer:
            return self._answer["address"]
        raise ConfigError(_PROBLEMS[self._answer["problem"]])

    def stop(self) -> None:
        """End it at once. Calling it again has no effect."""
        if self._owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def disown(self) -> None:
        """Forget it, in a process forked from its owner."""
        self._process.returncode = 0  # it is not ours to wait for
        if self._process.stdin is not None:
            self._process.stdin.close()


def _started(*, verbose: bool) -> subprocess.Popen[bytes]:
    if not sys.executable:
        msg = "no Python interpreter found to start llama.cpp's server (sys.executable is empty)"
        raise ConfigError(msg)
    try:
        return subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
            bufsize=0,
            # Ctrl-C must not reach the server, which we may still need.
            start_new_session=True,
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
    msg = f"llama.cpp's server could not be started ({reason})"
    raise ConfigError(msg)


_PROBLEMS = {
    "missing": "local models need xllamacpp: pip install 'dragoman[local]'",
    "strange": "this version of xllamacpp is too old or too new: pip install -U 'dragoman[local]'",
    "unloadable": (
        "llama.cpp can't load the model: the file is corrupt or of an unsupported type;"
        " verbose=True shows its log"
    ),
    "ended": (
        "llama.cpp ended while loading the model, perhaps out of memory: try a smaller model or"
        " context; verbose=True shows its log"
    ),
}

# --- one per model, in this process

_lock = Lock()
_servers: dict[Settings, Server] = {}
_holders: dict[Settings, int] = {}


def hold(settings: Settings) -> Server:
    """The server for these settings, started if necessary; give it back with `release`."""
    with _lock:
        _holders[settings] = _holders.get(settings, 0) + 1
    return current(settings)


def current(settings: Settings) -> Server:
    """The server for these settings; a new one if the last one has ended."""
    with _lock:
        server = _servers.get(settings)
        if server is None or not server.is_running:
            if server is not None:
                server.stop()
            server = _servers[settings] = Server(settings)
        return server


def release(settings: Settings) -> None:
    """Release a server; the last release stops it."""
    with _lock:
        left = _holders.get(settings, 1) - 1
        _holders[settings] = max(left, 0)
        server = _servers.pop(settings, None) if left <= 0 else None
    if server is not None:
        server.stop()


def stop_all() -> None:
    """Stop all servers."""
    with _lock:
        servers = list(_servers.values())
        _servers.clear()
        _holders.clear()
    for server in servers:
        server.stop()


def _forget() -> None:
    global _lock  # noqa: PLW0603 - process-wide state is the point
    for server in _servers.values():
        server.disown()
    _lock = Lock()  # a fork may have copied it locked
    _servers.clear()
    _holders.clear()


atexit.register(stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
