"""The files that commands write: completely or not at all."""

from __future__ import annotations

import secrets
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.cli.exit_codes import FILES, USAGE, Ending


class Output:
    """Standard output (if there is no name), or an `AtomicFile`."""

    def __init__(self, name: str | None) -> None:
        from dragoman.transport.atomic_files import AtomicFile  # `--help` needs no transport

        self._file = None if name is None else AtomicFile(Path(name))
        self._stream = sys.stdout.buffer if self._file is None else self._file

    @property
    def is_seen(self) -> bool:
        """Whether it is a terminal."""
        return self._file is None and sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        """Append data."""
        self._stream.write(data)

    def flush(self) -> None:
        """Flush buffered data."""
        self._stream.flush()

    def keep(self) -> None:
        """Finish: rename the file to its final name."""
        if self._file is None:
            self.flush()
        else:
            self._file.keep()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.discard()


def write_private(path: Path, text: str) -> None:
    """Write a text file that only its owner can read, replacing any existing one."""
    from dragoman.history.storage.places import make_private_folder
    from dragoman.transport.atomic_files import write_atomically

    try:
        make_private_folder(path.parent)
        write_atomically(path, text.encode(), is_private=True)
    except OSError as error:
        raise Ending(FILES, f"{path}: {error.strerror or type(error).__name__}") from None


def refuse_same(inputs: Iterable[str], outputs: Iterable[str | None]) -> None:
    """Raise if an output would overwrite an input or another output."""
    taken = {_identity(name) for name in inputs}
    for name in outputs:
        if name is None:
            continue
        place = _identity(name)
        if place in taken:
            msg = f"{name}: is already used as an input or output; choose another file"
            raise Ending(USAGE, msg)
        taken.add(place)


def _identity(name: str) -> tuple[int, int] | str:
    """A key that is equal for two names of the same file only."""
    try:
        found = Path(name).stat()
    except OSError:
        return str(Path(name).resolve())
    if not stat.S_ISREG(found.st_mode):
        return f"{name}{secrets.token_hex(8)}"  # a device can be written any number of times
    return (found.st_dev, found.st_ino)
