"""The input history across chats, in a file that only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dragoman.history.storage.places import make_private_folder
from dragoman.transport.atomic_files import write_atomically

_MAX_INPUTS = 1000
_MAX_CHARS = 20_000  # characters; longer input is not worth recalling
_NEWLINE = "\u2028"  # Unicode's line separator, so that each input takes one line of the file


class KeptLines:
    """The input history file, oldest first; I/O errors are ignored."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[str]:
        """The most recent inputs, oldest first."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return []
        found = [line.replace(_NEWLINE, "\n") for line in lines if line.strip()]
        if len(found) > 2 * _MAX_INPUTS:
            self._rewrite(found[-_MAX_INPUTS:])
        return found[-_MAX_INPUTS:]

    def add(self, text: str) -> None:
        """Append an input at once, so that it survives if the chat is killed."""
        if text.strip() and len(text) <= _MAX_CHARS:
            with suppress(OSError):
                self._append(text)

    def _rewrite(self, texts: Iterable[str]) -> None:
        with suppress(OSError):
            write_atomically(self.path, _lines(texts), is_private=True)

    def _append(self, text: str) -> None:
        make_private_folder(self.path.parent)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o600)  # an existing file may be readable by others
            file.write(_lines([text]))


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{_on_a_line(text)}\n" for text in texts).encode(errors="replace")


def _on_a_line(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", _NEWLINE)
