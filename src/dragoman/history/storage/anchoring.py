"""Detects that an open store was moved, removed or replaced by another one.

The operating system lets a process go on reading and writing a file or directory that no longer
has a name. What it writes there is gone when it closes it, so it must not be acknowledged.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from dragoman.errors import StoreError

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Anchor:
    """The path of an open file or directory, and what was there when it was opened."""

    def __init__(self, path: Path | str) -> None:
        self._name = os.path.abspath(path)  # noqa: PTH100 - the current directory may change
        self._opened = self._there()

    def holds(self) -> bool:
        """Whether the path still leads there; also true if that can't be checked."""
        # Runs before every read and write.
        try:
            about = os.stat(self._name)  # noqa: PTH116 - pathlib is slow
        except OSError as error:
            return error.errno not in _GONE
        return self._opened is None or (about.st_ino, about.st_dev) == self._opened

    def _there(self) -> tuple[int, int] | None:
        try:
            about = os.stat(self._name)  # noqa: PTH116 - as above
        except OSError:
            return None
        return about.st_ino, about.st_dev


def moved(name: str) -> StoreError:
    """The error for a store that is no longer where it was opened."""
    return StoreError(
        f"the store {name} failed: it was moved, removed or replaced while it was open; nothing"
        " was written. Put it back, or open it again"
    )
