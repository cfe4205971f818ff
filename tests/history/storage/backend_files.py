"""Sessions in files, called as async programs do."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.protocol import Storage


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh directory."""
    yield lambda: FileStorage(tmp_path / "histories")
