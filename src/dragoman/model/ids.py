"""Message ids: unique, sortable by time, cheap to create, and safe across a fork."""

from __future__ import annotations

import os
from threading import Lock
from time import time_ns

_lock = Lock()
_last = 0
_suffix = ""


def _reseed() -> None:
    global _suffix, _lock  # noqa: PLW0603 - process-wide state is intended
    _suffix = os.urandom(5).hex()
    _lock = Lock()  # a fork may have copied it in the locked state


_reseed()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reseed)


def new_id(prefix: str = "msg_") -> str:
    """Creates an id: the prefix, 16 hex digits of time, and 10 hex digits for this process."""
    global _last  # noqa: PLW0603 - see above
    now = time_ns()
    with _lock:
        # Strictly increasing, even within one clock tick or when the clock is set back.
        _last = now = now if now > _last else _last + 1
    return f"{prefix}{now:016x}{_suffix}"
