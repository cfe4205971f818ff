"""Sessions under encryption, in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sqlite import SQLiteStorage

SEARCHES = False
KEYS = {"2025": b"\1" * 32, "2026": b"\2" * 32}


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh file."""
    yield lambda: SealedStorage(SQLiteStorage(tmp_path / "histories.db"), keys=KEYS, current="2026")
