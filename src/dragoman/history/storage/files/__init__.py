"""The file backend: one file of JSON lines per session."""

from __future__ import annotations

from dragoman.history.storage.files.storage import FileStorage

__all__ = ["FileStorage"]
