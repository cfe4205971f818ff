"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_MAX_NAME = 200  # characters of the file's name in the temporary one; systems allow 255 bytes
_PUBLIC, _PRIVATE = 0o666, 0o600


class AtomicFile:
    """A file written under a temporary name until `keep` renames it.

    ```python
    with AtomicFile(path) as file:
        file.write(b"...")
        file.keep()
    ```

    Leaving the block without `keep`, or with an error in it, leaves nothing behind. An `OSError`
    has the file's name, also if it is about a full disk. Files that are not regular (`/dev/null`, a
    named pipe) are written directly. One that `is_new` never replaces another: that is a
    `FileExistsError`, at the start or in `keep`.
    """

    def __init__(self, path: Path, *, is_private: bool = False, is_new: bool = False) -> None:
        self._path = path
        self._is_private = is_private
        self._is_new = is_new
        self._temporary: Path | None = None
        with named(path):
            self._final = final = path.resolve()  # a symbolic link stays one
            if is_new and final.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            if final.exists() and not final.is_file():
                self._stream = final.open("wb")
                return
            written = final.with_name(f".{final.name[:_MAX_NAME]}.{secrets.token_hex(4)}.part")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            handle = os.open(written, flags, _PRIVATE if is_private else _PUBLIC)
            self._stream = os.fdopen(handle, "wb")
            self._temporary = written

    def write(self, data: bytes) -> None:
        """Append data."""
        with named(self._path):
            self._stream.write(data)

    def flush(self) -> None:
        """Flush buffered data."""
        with named(self._path):
            self._stream.flush()

    def keep(self, *, is_synced: bool = False) -> None:
        """Finish: rename the file to its final name, with the mode of the one it replaces.

        `is_synced` waits until the disk has it.
        """
        with named(self._path):
            self._stream.flush()
            if is_synced:
                os.fsync(self._stream.fileno())
            self._stream.close()  # some file systems notice only now that they are full
            if self._temporary is not None:
                self._rename(self._temporary)
            self._temporary = None

    def _rename(self, written: Path) -> None:
        if self._is_new:
            os.link(written, self._final)  # unlike renaming, it fails if there is one
            written.unlink()
            return
        if not self._is_private and self._final.exists():
            written.chmod(stat.S_IMODE(self._final.stat().st_mode))
        written.replace(self._final)

    def discard(self) -> None:
        """Delete what was written, unless it was kept."""
        with suppress(OSError):  # it flushes, and the disk may be full
            self._stream.close()
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.discard()


def write_atomically(path: Path, data: bytes, *, is_private: bool = False) -> None:
    """Write a file, replacing any existing one."""
    with AtomicFile(path, is_private=is_private) as file:
        file.write(data)
        file.keep()


@contextmanager
def named(path: Path) -> Generator[None]:
    """Add the name of a file to an `OSError` about it: those of writing have none."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        error.filename2 = None
        raise
