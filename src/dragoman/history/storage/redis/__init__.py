"""The Redis backend."""

from __future__ import annotations

from dragoman.history.storage.redis.storage import RedisStorage

__all__ = ["RedisStorage"]
