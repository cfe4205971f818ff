"""Sessions in memory: all storages of a location are the same object."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import Storage


@contextmanager
def place(_tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A memory of its own."""
    storage = MemoryStorage()
    yield lambda: storage
