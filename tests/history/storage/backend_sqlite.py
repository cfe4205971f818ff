"""Sessions in a SQLite file, called as async programs do."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sqlite import SQLiteStorage


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh file."""
    yield lambda: SQLiteStorage(tmp_path / "histories.db")
