"""Serves one client over standard input and output, until it closes them or a signal arrives."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve_stdio(server: Server[Any]) -> int | None:
    """Serve until standard input ends (returns None), or a signal arrives (returns its number).

    After a signal, a thread of the SDK may still wait for a line of input, and can't be stopped:
    the caller has to exit with `os._exit`.
    """
    serving = asyncio.create_task(_serve(server))
    with _signalled() as told:
        waiting = asyncio.create_task(told.wait())
        await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        _expect_success(serving)
        return None
    return told.number


def _expect_success(serving: asyncio.Task[None]) -> None:
    """Raise the task's exception, unless it only means that the client is gone."""
    try:
        serving.result()
    except* BrokenPipeError:
        _expect_unread_output()


def _expect_unread_output() -> None:
    """Let the SDK's buffer be dropped with what the client didn't read.

    It is flushed once more on the way, and since Python 3.13 a failure of that is printed.
    """
    report = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not BrokenPipeError:
            report(unraisable)

    sys.unraisablehook = hook


async def _serve(server: Server[Any]) -> None:
    # While serving, file descriptor 1 is standard error, so that only the protocol is written.
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Told:
    """The signal that arrived, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()


@contextmanager
def _signalled() -> Generator[_Told]:
    told = _Told()
    before = {number: signal.signal(number, told) for number in _SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
