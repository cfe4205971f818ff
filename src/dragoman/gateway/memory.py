"""Returns memory to the system after large requests: the C library would keep much of it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from functools import cache
from typing import Any

_SOON = 1.0
"""Seconds to wait: more large requests may come at once."""


@cache
def _trim() -> Any:
    """Glibc's `malloc_trim`; None: another C library, which needs none."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


class MemoryReturn:
    """Gives memory back some time after it was last needed."""

    def __init__(self) -> None:
        self._waiting: asyncio.TimerHandle | None = None
        self._is_cyclic = False

    def soon(self, *, is_cyclic: bool = False) -> None:
        """Give it back in a second, in a thread.

        `is_cyclic`: it is held by objects that refer to each other, as those of the WebSocket
        library do; without much traffic, the garbage collector would not run for a long time.
        """
        self._is_cyclic |= is_cyclic
        if self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(_SOON, self._start, loop)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        is_cyclic, self._is_cyclic = self._is_cyclic, False
        self._waiting = None
        loop.run_in_executor(None, _give_back, is_cyclic)


def _give_back(is_cyclic: bool) -> None:  # noqa: FBT001 - through an executor
    if is_cyclic:
        gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)
