"""Ctrl-C while a command waits for the network."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading


def notice_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Have an event loop notice every signal at once.

    The handler that `asyncio.Runner` has for Ctrl-C runs between two steps of Python. If the signal
    comes right before the loop begins to wait, that is after the next event, which may never come.
    A loop that handles a signal itself, whichever, is woken by all of them.
    """
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        loop.add_signal_handler(signal.SIGCONT, _nothing)


def _nothing() -> None:
    """The process goes on after SIGCONT anyway."""
