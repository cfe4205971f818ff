"""Where stores are on a disk: directories of their own, and whether one is still there."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from dragoman.errors import StoreError

# --- a store that was moved, removed or replaced while it was open
#
# The operating system lets a process go on reading and writing a file or directory that no longer
# has a name. What it writes there is gone when it closes it, so it must not be acknowledged.


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


# --- directories that only their owner can read, whatever the umask


def make_private_folder(folder: Path) -> None:
    """Creates a directory and its missing parents, accessible to the owner only.

    `Path.mkdir` gives its mode to the last one only; the parents would get the umask's.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            each.mkdir(mode=0o700)
    folder.mkdir(exist_ok=True)  # raises if it is not a directory
