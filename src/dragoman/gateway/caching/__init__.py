"""The response cache: identical requests with the same key get the cached response."""

from dragoman.gateway.caching.cache import Cache

__all__ = ["Cache"]
