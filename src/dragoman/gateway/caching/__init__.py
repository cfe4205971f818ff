"""The response cache: the same request of the same key gets the same answer again."""

from dragoman.gateway.caching.answering import Cache

__all__ = ["Cache"]
