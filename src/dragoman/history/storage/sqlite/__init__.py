"""Sessions in one SQLite file: the default."""

from __future__ import annotations

from dragoman.history.storage.sqlite.storage import SQLiteStorage

__all__ = ["SQLiteStorage"]
