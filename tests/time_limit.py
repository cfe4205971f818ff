"""A time limit for every test, which ends what hangs and says where.

The limit counts for the test, and for its fixtures' setup and teardown, each. When it passes, the
processes that the test started and that still run are killed, and the test fails with the stacks
of all threads and these processes. If not even that is possible (the main thread is in a call that
no signal interrupts), the process prints all stacks and exits; pytest-xdist reports the test.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import NoReturn

import pytest

LIMITS = {"quick": 120, "dev": 120, "ci": 1200, "torture": 24 * 3600}
"""Seconds by Hypothesis profile: many times what the slowest test takes on a busy machine."""

_GRACE = 60  # seconds that a test has to end after its limit
_stderr = 2
_watched_since = -inf


def keep_stderr() -> None:
    """Remember where this process complains, while pytest doesn't capture it."""
    global _stderr  # noqa: PLW0603 - as the process has one
    _stderr = os.dup(2)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Fails the block when it takes longer; does nothing outside the main thread of POSIX."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def too_long(_signal: int, frame: FrameType | None) -> NoReturn:
        stacks, left = all_stacks(frame), end_children()
        running = "".join(f"\n  killed: {process}" for process in left)
        pytest.fail(f"not done after {seconds:g} s{running}\n{stacks}", pytrace=False)

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _watch(seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _watch(seconds: float) -> None:
    """End the process when it is stuck after the limit and up to twice the grace.

    The watch goes on from test to test, and is set anew when half of the grace has passed: it is a
    thread, and to end one for each test takes milliseconds on a busy machine.
    """
    global _watched_since  # noqa: PLW0603 - as the process has one
    now = monotonic()
    if now - _watched_since > _GRACE / 2:
        _watched_since = now
        faulthandler.dump_traceback_later(seconds + 1.5 * _GRACE, exit=True, file=_stderr)


def end_watch() -> None:
    """After the last test: a process may wait for others as long as it likes."""
    global _watched_since  # noqa: PLW0603 - as the process has one
    _watched_since = -inf
    faulthandler.cancel_dump_traceback_later()


def all_stacks(main: FrameType | None) -> str:
    """The stacks of all threads, the main thread's last: it is the one that hangs."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    if main is not None:
        frames.pop(threading.get_ident(), None)
        frames[threading.get_ident()] = main
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in frames.items()
    )


def end_children() -> list[str]:
    """Kill all processes that this one started, and theirs; gives what they were."""
    found = descendants(os.getpid())
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return [f"{pid} {command}" for pid, command in found.items()]


def descendants(of: int) -> dict[int, str]:
    """The processes that run below one, with their commands."""
    commands: dict[int, str] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent, command in _processes():
        commands[pid] = command
        children[parent].append(pid)
    below, found = list(children[of]), {}
    for pid in below:  # grows while it is read
        found[pid] = commands[pid]
        below += children[pid]
    return found


def _processes() -> Iterator[tuple[int, int, str]]:
    """All processes: number, parent, command."""
    if not Path("/proc/self/stat").exists():  # no Linux
        ps = ["ps", "-A", "-ww", "-o", "pid=,ppid=,command="]
        for line in subprocess.run(
            ps, capture_output=True, text=True, check=True
        ).stdout.splitlines():
            pid, parent, command = (*line.split(None, 2), "")[:3]
            yield int(pid), int(parent), command
        return
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            # The name in parentheses may hold anything, parentheses included.
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            command = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            yield int(process.name), int(parent), command
