"""The SQLite backend, the default: all sessions in one file."""

from __future__ import annotations

from dragoman.history.storage.sqlite.storage import SQLiteStorage

__all__ = ["SQLiteStorage"]
