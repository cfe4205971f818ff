"""Every history backend, for the server too."""

from __future__ import annotations

from tests.history.conftest import backend

__all__ = ["backend"]
