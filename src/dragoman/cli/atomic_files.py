"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from dragoman.cli.exit_codes import FILES, USAGE, Ending


class Output:
    """A file written under a temporary name until `keep` renames it.

    Without a name it is standard output. Files that are not regular (`/dev/null`, a named pipe) are
    written directly. Leaving the block without `keep` deletes the temporary file.
    """

    def __init__(self, name: str | None) -> None:
        self._final: Path | None = None
        self._temporary: Path | None = None
        self._stream: BinaryIO
        if name is None:
            self._stream = sys.stdout.buffer
            return
        path = Path(name).resolve()  # a symbolic link stays one
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            self._stream = path.open("wb")
        else:
            self._final = path
            self._temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
            self._stream = self._temporary.open("xb")

    @property
    def is_seen(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def write(self, data: bytes) -> None:
        """Append data."""
        self._stream.write(data)

    def flush(self) -> None:
        """Flush buffered data."""
        self._stream.flush()

    def keep(self) -> None:
        """Finish: rename the file to its final name."""
        self._stream.flush()
        if self._temporary is not None and self._final is not None:
            self._stream.close()
            if self._final.exists():
                self._temporary.chmod(stat.S_IMODE(self._final.stat().st_mode))
            self._temporary.replace(self._final)
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._stream is not sys.stdout.buffer:
            self._stream.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a text file that only its owner can read, replacing any existing one."""
    from dragoman.history.storage.private_folders import make_private_folder

    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        make_private_folder(path.parent)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
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
