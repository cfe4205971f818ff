"""The supervisor of several worker processes that share a listening socket.

It binds the socket and forks. A worker that dies is replaced while the socket stays open, so that
connections wait instead of being refused. It does as little as possible, so that little can fail.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from dragoman.gateway.hangup import forget_terminal

WorkerMain = Callable[[int, int, Callable[[], None]], None]
"""Runs a worker. Arguments: its number, a pipe that is closed when the supervisor exits, and a
function to call when ready."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STABLE = 10.0  # seconds after which a worker's death no longer counts as a failed start
_FIRST_WAIT, _MAX_WAIT = 0.1, 10.0
_GRACE = 5.0  # seconds after the drain timeout until a worker is killed
_FAILED = 1
_TICK = 1.0


class _Child(msgspec.Struct):
    number: int
    pid: int
    began: float
    pipe: int
    """Receives a byte when the worker is ready."""
    generation: int
    """The generation of the configuration that it started with."""
    is_ready: bool = False


class Supervisor:
    """Keeps a number of workers running until it is told to stop."""

    def __init__(  # noqa: PLR0913 - all but two by keyword, and optional
        self, count: int, worker_main: WorkerMain, *, drain: Callable[[], float],
        reload: Callable[[], bool] = lambda: True, changed: Callable[[], bool] = lambda: False,
        say: Callable[[str], object] = lambda _text: None,
        ready: Callable[[], object] = lambda: None, stopped: Callable[[], object] = lambda: None,
        on_terminal: bool = False,
    ) -> None:  # fmt: skip
        """`reload` reloads the configuration and returns whether it is valid.

        `stopped` is called at the start of a shutdown, to close the listening socket.
        `on_terminal`: SIGHUP stops it, instead of reloading the configuration.
        """
        self._count = count
        self._worker_main = worker_main
        self._drain, self._reload, self._changed = drain, reload, changed
        self._say, self._ready, self._stopped = say, ready, stopped
        self._on_terminal = on_terminal
        self._children: dict[int, _Child] = {}
        self._restart_at: dict[int, float] = {}  # by number: when to start it again
        self._failures: dict[int, int] = {}
        self._generation = 0
        self._has_started = False
        self._deadline: float | None = None  # of stopping
        self._code = 0
        self._caught: list[int] = []
        self._leash, self._held = os.pipe()
        self._selector = selectors.DefaultSelector()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._deadline is not None

    def run(self) -> int:
        """Run until told to stop; returns the exit code."""
        with self._listening():
            for number in range(1, self._count + 1):
                self._start(number)
            while self._children or (self._restart_at and not self.is_stopping):
                self._step()
        return self._code

    def _step(self) -> None:
        for key, _ in self._selector.select(self._timeout()):
            if isinstance(key.data, _Child):
                self._read_ready(key.data)
            else:
                with suppress(BlockingIOError):
                    key.fileobj.recv(64)  # type: ignore[union-attr]
        while self._caught:
            self._handle_signal(self._caught.pop(0))
        self._reap()
        self._restart()
        if not self.is_stopping and self._changed():
            self._reload_workers()
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._signal_all(signal.SIGKILL)

    def _timeout(self) -> float:
        now = time.monotonic()
        return max(0.0, min([_TICK, *(when - now for when in self._restart_at.values())]))

    # --- workers

    def _start(self, number: int) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._run_worker(number, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        child = _Child(number, pid, time.monotonic(), reading, self._generation)
        self._children[pid] = child
        self._selector.register(reading, selectors.EVENT_READ, child)

    def _run_worker(self, number: int, pipe: int) -> NoReturn:
        """Run a worker in the forked process, and exit."""
        code = _FAILED
        try:
            signal.set_wakeup_fd(-1)
            for each in (signal.SIGINT, signal.SIGHUP):
                signal.signal(each, signal.SIG_IGN)  # the supervisor forwards them as needed
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._held)
            self._selector.close()

            def ready() -> None:
                os.write(pipe, b"1")
                os.close(pipe)

            self._worker_main(number, self._leash, ready)
            code = 0
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else _FAILED
        except BaseException as error:  # noqa: BLE001 - logged without its text, which may quote content
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            self._say(f"worker {number} failed ({type(error).__name__} at {place})")
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _read_ready(self, child: _Child) -> None:
        try:
            data = os.read(child.pipe, 1)
        except BlockingIOError:
            return
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        if not data:
            return  # it died before it was ready
        child.is_ready = True
        if child.generation != self._generation:  # the configuration has changed meanwhile
            self._signal(child, signal.SIGHUP)
        if self.is_stopping:
            self._signal(child, signal.SIGTERM)
        if not self._has_started and all(each.is_ready for each in self._children.values()):
            self._has_started = True
            self._ready()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._on_exit(child, os.waitstatus_to_exitcode(status))

    def _on_exit(self, child: _Child, code: int) -> None:
        if not child.is_ready:
            self._read_ready(child)
        if self.is_stopping:
            return
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if not self._has_started:
            self._say(f"worker {child.number} failed to start ({how})")
            self._code = code if code > 0 else _FAILED
            self._stop()
            return
        lived = time.monotonic() - child.began
        failures = 0 if lived > _STABLE else self._failures.get(child.number, 0) + 1
        self._failures[child.number] = failures
        wait = min(_FIRST_WAIT * 2**failures, _MAX_WAIT) if failures > 1 else 0.0
        self._say(f"worker {child.number} exited ({how}); starting another")
        self._restart_at[child.number] = time.monotonic() + wait

    def _restart(self) -> None:
        now = time.monotonic()
        for number in [number for number, when in self._restart_at.items() if when <= now]:
            del self._restart_at[number]
            if not self.is_stopping:
                self._start(number)

    # --- signals

    @contextmanager
    def _listening(self) -> Generator[None, None, None]:
        reading, writing = socket.socketpair()
        reading.setblocking(False)  # noqa: FBT003 - a method of the standard library
        writing.setblocking(False)  # noqa: FBT003 - a method of the standard library
        handled = (*_SIGNALS, signal.SIGHUP, signal.SIGCHLD)
        before = {each: signal.signal(each, self._on_signal) for each in handled}
        earlier = signal.set_wakeup_fd(writing.fileno())
        self._selector.register(reading, selectors.EVENT_READ)
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier)
            for each, handler in before.items():
                signal.signal(each, handler)
            self._selector.close()
            for pipe in (self._leash, self._held):
                os.close(pipe)
            reading.close()
            writing.close()

    def _on_signal(self, number: int, _frame: object) -> None:
        self._caught.append(number)

    def _handle_signal(self, number: int) -> None:
        if number == signal.SIGHUP and not self._on_terminal:
            self._reload_workers()
        elif number == signal.SIGINT and self.is_stopping:
            self._code = 128 + number
            self._signal_all(signal.SIGKILL)
        elif number != signal.SIGCHLD:
            if number == signal.SIGHUP:
                forget_terminal()
            if not self.is_stopping:
                self._say(f"stopping; waiting up to {self._drain():g} s for requests in progress")
                self._stop()

    def _reload_workers(self) -> None:
        if not self._reload():
            return
        self._generation += 1
        for child in self._children.values():
            if child.is_ready:  # others are notified when they become ready
                child.generation = self._generation
                self._signal(child, signal.SIGHUP)

    def _stop(self) -> None:
        self._deadline = time.monotonic() + self._drain() + _GRACE
        self._signal_all(signal.SIGTERM)
        self._stopped()

    def _signal_all(self, number: int) -> None:
        for child in self._children.values():
            self._signal(child, number)

    def _signal(self, child: _Child, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)
