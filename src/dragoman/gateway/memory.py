"""Returns memory to the system after large requests: the C library would keep much of it."""

from __future__ import annotations

import asyncio
import ctypes
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

    def soon(self) -> None:
        """Give it back in a second, in a thread."""
        trim = _trim()
        if trim is not None and self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(_SOON, self._give_back, loop, trim)

    def _give_back(self, loop: asyncio.AbstractEventLoop, trim: Any) -> None:
        self._waiting = None
        loop.run_in_executor(None, trim, 0)
