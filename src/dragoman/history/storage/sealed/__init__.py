"""The encrypting storage: a ledger on a shelf that encrypts the content of messages."""

from __future__ import annotations

from dragoman.history.storage.sealed.rotation import Rotation
from dragoman.history.storage.sealed.storage import SealedStorage

__all__ = ["Rotation", "SealedStorage"]
