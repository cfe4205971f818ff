"""The cache directory of downloaded models, with a lock for writers."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.errors import ConfigError

_POLL = 0.1


def models_folder() -> Path:
    """The cache directory for models (under `XDG_CACHE_HOME` or the system's); may not exist."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        root = Path(named)
    elif sys.platform == "darwin":
        root = _home() / "Library" / "Caches"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    else:
        root = _home() / ".cache"
    return root / "dragoman" / "models"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        msg = "there is no home directory to store models in; set XDG_CACHE_HOME"
    raise ConfigError(msg)


@asynccontextmanager
async def alone(path: Path) -> AsyncGenerator[None]:
    """Hold an exclusive lock on this file, among all processes and tasks; waits for it.

    The system releases the lock when the process dies.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _taken(handle):  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(_POLL)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _taken(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
