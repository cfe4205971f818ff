"""A chain of a memory and a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sqlite import SQLiteStorage


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A memory of its own, and a fresh file."""
    primary = MemoryStorage()
    yield lambda: ChainStorage(primary, SQLiteStorage(tmp_path / "copy.db"))
