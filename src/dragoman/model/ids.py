"""Identifiers: unique, sortable by time, cheap, and different on both sides of a fork."""

from __future__ import annotations

import os
from threading import Lock
from time import time_ns

_lock = Lock()
_last = 0
_suffix = ""


def _reseed() -> None:
    global _suffix, _lock  # noqa: PLW0603 - process-wide state is the point
    _suffix = os.urandom(5).hex()
    _lock = Lock()  # a fork may have copied it locked


_reseed()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reseed)


def new_id(prefix: str = "msg_") -> str:
    """A fresh identifier: the prefix, 16 hexadecimal digits of time, 10 of this process."""
    global _last  # noqa: PLW0603 - see above
    now = time_ns()
    with _lock:
        # Two calls within one tick of the clock, or a clock set back, still count upwards.
        _last = now = now if now > _last else _last + 1
    return f"{prefix}{now:016x}{_suffix}"
