"""Several backends as one: the first is the primary, the others hold copies."""

from __future__ import annotations

from dragoman.history.storage.chain.shelf import Report
from dragoman.history.storage.chain.storage import ChainStorage, Repair

__all__ = ["ChainStorage", "Repair", "Report"]
