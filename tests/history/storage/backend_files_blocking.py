"""Sessions in files, called directly as blocking programs do, with `durability=power`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.protocol import Storage


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh directory."""
    yield lambda: FileStorage(tmp_path / "histories", durability="power", blocking=True)
