"""The PostgreSQL backend, for many processes and machines."""

from __future__ import annotations

from dragoman.history.storage.postgres.storage import PostgresStorage

__all__ = ["PostgresStorage"]
