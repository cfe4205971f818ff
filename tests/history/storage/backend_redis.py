"""Sessions in Redis, with a separate prefix for each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import pytest

from dragoman.history.storage.protocol import Storage

URL = os.environ.get("DRAGOMAN_TEST_REDIS", "redis://127.0.0.1:6379/0")


def emptied(prefix: str) -> None:
    """Remove all keys of a prefix."""
    import redis

    with redis.Redis.from_url(URL) as client:
        for key in client.scan_iter(f"{prefix}:*", count=1000):
            client.unlink(key)


def expect_server() -> None:
    """Skip without a server."""
    redis = pytest.importorskip("redis", reason="the package redis is not installed")
    try:
        with redis.Redis.from_url(URL, socket_connect_timeout=30) as client:
            client.ping()
    except redis.RedisError:
        pytest.skip(f"no Redis at {URL}")


@contextmanager
def fresh_prefix() -> Generator[str]:
    """A unique prefix whose keys are deleted afterwards; skips without a server."""
    expect_server()
    prefix = f"test-{token_hex(8)}"
    try:
        yield prefix
    finally:
        emptied(prefix)


@contextmanager
def place(_tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh prefix."""
    with fresh_prefix() as prefix:
        from dragoman.history.storage.redis import RedisStorage

        yield lambda: RedisStorage(URL, prefix=prefix)
