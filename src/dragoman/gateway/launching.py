"""Starts the server for `dragoman serve`: configuration, socket, one or several workers."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from dragoman._version import __version__
from dragoman.errors import ConfigError, DragomanError
from dragoman.gateway.access_log import moment
from dragoman.gateway.config.discovery import circular_variables
from dragoman.gateway.config.problems import Problem
from dragoman.gateway.config.reading import load_config
from dragoman.gateway.config.reloading import FileWatch, Reloader
from dragoman.gateway.config.settings import GatewayConfig, LogForm
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.hangup import ends_with_terminal
from dragoman.gateway.peers import Peers
from dragoman.gateway.serving import LOG, Worker, bind, run
from dragoman.gateway.summary import summary
from dragoman.gateway.workers import Supervisor

Say = Callable[[str], object]
_SHOWN = 12  # routes or providers


class Launch:
    """Loads the configuration and runs the server."""

    def __init__(self, path: Path | None, changes: Mapping[str, Any]) -> None:
        """`changes` are the command line's overrides of `[server]` settings."""
        self._path = path
        self._changes = changes
        self._on_terminal = ends_with_terminal()
        self._watch = FileWatch(path, os.environ)  # before loading, so that no change is missed
        self.config = self.load()

    def load(self) -> GatewayConfig:
        """Load the configuration; raises `ConfigFileError` with all problems."""
        config = load_config(self._path, os.environ)
        server = msgspec.structs.replace(config.server, **self._changes)
        circular = circular_variables(config.places.values(), server)
        if circular:
            others = {name: os.environ[name] for name in os.environ if name not in circular}
            config = load_config(self._path, others)
        why = "it is this gateway's own address, and is ignored"
        ignored = [Problem(f"{name}: {why}") for name in sorted(circular)]
        warnings = (*config.warnings, *ignored)
        return msgspec.structs.replace(config, server=server, warnings=warnings)

    def _watching(self, worker: Worker) -> Reloader:
        return Reloader(
            self._watch, self.load, on_config=worker.adopt_soon, on_problems=worker.keep,
            hears_signals=not self._on_terminal,
        )  # fmt: skip

    def run(self, say: Say) -> int:
        """Serve until told to stop; returns the exit code."""
        server = self.config.server
        expect_safe(self.config)
        set_up_log(server.log)
        listening = bind(server.host, server.port)
        welcome = partial(self._welcome, listening, say)
        try:
            if server.workers > 1:
                return self._supervise(listening, say, welcome)
            run(
                lambda: Worker(self.config), [listening], welcome,
                watching=self._watching, on_terminal=self._on_terminal,
            )  # fmt: skip
        finally:
            listening.close()
        say("stopped")
        return 0

    def _supervise(self, listening: socket.socket, say: Say, welcome: Callable[[], object]) -> int:
        if sys.platform == "win32":
            msg = "several workers are not supported on Windows; use --workers 1"
            raise ConfigError(msg)
        folder = Path(tempfile.mkdtemp(prefix="dragoman-"))  # readable by its owner only
        count, owner = self.config.server.workers, os.getpid()

        def worker_main(number: int, leash: int, ready: Callable[[], None]) -> None:
            peers = Peers(folder, number, count)
            making = partial(Worker, self.config, self.load, number=number, peers=peers)
            try:
                run(making, [listening], ready, leash=leash)
            except DragomanError as error:
                say(f"dragoman: {error}")
                sys.exit(2)

        supervisor = Supervisor(
            count, worker_main, drain=lambda: self.config.server.drain_timeout,
            reload=self._reloaded, changed=self._watch.has_changed, say=say, ready=welcome,
            stopped=listening.close, on_terminal=self._on_terminal,
        )  # fmt: skip
        try:
            code = supervisor.run()
        finally:
            if os.getpid() == owner:
                shutil.rmtree(folder, ignore_errors=True)
        say("stopped")
        return code

    def _reloaded(self) -> bool:
        """Reload the configuration for future workers; return whether running ones should too."""
        self._watch.has_changed()  # not another time for the change itself
        try:
            self.config = self.load()
        except (DragomanError, OSError) as error:
            LOG.error("the configuration was not reloaded; the old one stays in effect:\n%s", error)
            return False
        return True

    def _welcome(self, listening: socket.socket, say: Say) -> None:
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        url, count = f"http://{shown}:{port}", self.config.server.workers
        prefix = self.config.server.path_prefix
        workers = "1 worker" if count == 1 else f"{count} workers"
        say(f"dragoman {__version__} listens on {url}{prefix} ({workers}, pid {os.getpid()})")
        say(f"  base URL for OpenAI clients: {url}{prefix}/v1")
        say(f"  for Anthropic, Gemini and Ollama clients: {url}{prefix}")
        for line in summary(self.config, most=_SHOWN):
            say(f"  {line}")
        if self.config.source is not None:
            also = "" if self._on_terminal else ", and on SIGHUP"
            say(f"Changes to the file are applied automatically{also}.")
        drain = f"{self.config.server.drain_timeout:g} s"
        say(f"Press Ctrl-C to stop after current requests (up to {drain}), twice to stop at once.")


def expect_safe(config: GatewayConfig) -> None:
    """Raise an error if the gateway would serve everyone without keys."""
    server = config.server
    if server.keys is None and not is_loopback(server.host):
        msg = (
            "without keys the gateway may only listen on a loopback address, because anyone who"
            " can reach it could spend your money; set `keys` in [server], or use 127.0.0.1"
        )
        raise ConfigError(msg)


class _JsonForm(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": moment(record.created),
            "level": record.levelname.lower(),
            "event": "message",
            "text": record.getMessage(),
        }
        return msgspec.json.encode(entry).decode()


class _TextForm(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{moment(record.created)} dragoman: {record.getMessage()}"


def set_up_log(form: LogForm) -> None:
    """Send the gateway's log messages to standard error, in the format of the access log."""
    logger = logging.getLogger("dragoman")
    if logger.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonForm() if form == "json" else _TextForm())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
