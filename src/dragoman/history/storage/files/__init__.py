"""Sessions in files of JSON lines, one per session."""

from __future__ import annotations

from dragoman.history.storage.files.storage import FileStorage

__all__ = ["FileStorage"]
