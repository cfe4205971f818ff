"""The input history across chats, in a file that only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

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
                self._write(self.path, [text], os.O_APPEND)

    def _rewrite(self, texts: Iterable[str]) -> None:
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with suppress(OSError):
            self._write(beside, texts, os.O_TRUNC)
            beside.replace(self.path)

    @staticmethod
    def _write(path: Path, texts: Iterable[str], how: int) -> None:
        from dragoman.history.storage.private_folders import make_private_folder

        make_private_folder(path.parent)
        lines = "".join(f"{_on_a_line(text)}\n" for text in texts)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o600)  # an existing file may be readable by others
            file.write(lines.encode(errors="replace"))


def _on_a_line(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", _NEWLINE)
