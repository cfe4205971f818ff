"""Sessions in Redis, under a prefix of their own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import pytest

from dragoman.history.storage.protocol import Storage

URL = "redis://127.0.0.1:6379/0"


def emptied(prefix: str) -> None:
    """Remove all keys of a prefix."""
    import redis

    with redis.Redis.from_url(URL) as client:
        for key in client.scan_iter(f"{prefix}:*", count=1000):
            client.unlink(key)


def expect_server() -> None:
    """Skip where there is no server."""
    redis = pytest.importorskip("redis", reason="the package redis is not installed")
    try:
        with redis.Redis.from_url(URL, socket_connect_timeout=30) as client:
            client.ping()
    except redis.RedisError:
        pytest.skip(f"no Redis at {URL}")


@contextmanager
def place(_tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh prefix."""
    expect_server()
    from dragoman.history.storage.redis import RedisStorage

    prefix = f"test-{token_hex(6)}"
    try:
        yield lambda: RedisStorage(URL, prefix=prefix)
    finally:
        emptied(prefix)
