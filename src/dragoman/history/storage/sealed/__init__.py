"""The encrypting storage: wraps any backend and encrypts the content of messages."""

from __future__ import annotations

from dragoman.history.storage.sealed.repairing import Rotation
from dragoman.history.storage.sealed.storage import SealedStorage

__all__ = ["Rotation", "SealedStorage"]
