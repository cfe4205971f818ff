"""Sessions in Redis, with a separate prefix for each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from secrets import token_hex
from typing import Any

import pytest

from dragoman.history.storage.protocol import Storage
from tests.history.storage.damaging import Damage, altered
from tests.history.torture import IN_FULL, IN_SHORT

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


# --- damage

BEYOND = ("not exist", "don't match its key")
"""What no repair reaches: a session that is completely gone, or was replaced by another."""
KINDS = dict.fromkeys(("flip", "cut", "delete"), 1000 if IN_FULL else 1 if IN_SHORT else 5)


class RedisDamager:
    """Keys under a prefix."""

    def __init__(self, prefix: str, client: Any) -> None:
        self._prefix = prefix
        self._client = client
        self._kept: dict[bytes, bytes] = {}

    def _keys(self) -> list[bytes]:
        return sorted(self._client.scan_iter(f"{self._prefix}:*", count=1000))

    def new(self) -> Storage:
        """See `Damager`."""
        from dragoman.history.storage.redis import RedisStorage

        return RedisStorage(URL, prefix=self._prefix)

    async def keep(self) -> None:
        """See `Damager`."""
        self._kept = {key: self._client.dump(key) for key in self._keys()}

    async def put_back(self) -> None:
        """See `Damager`."""
        for key in self._keys():
            self._client.unlink(key)
        for key, value in self._kept.items():
            self._client.restore(key, 0, value)

    def damage(self, chance: Random, kind: str) -> Damage:
        """See `Damager`."""
        key = chance.choice([key for key in self._keys() if not key.endswith(b":done")])
        if chance.random() < 0.1:
            self._client.unlink(key)
            if kind != "delete":
                self._client.set(key, b"rubbish")
            return Damage(f"{kind} of the whole {key!r}")
        what = _IN_REDIS[self._client.type(key)](self._client, chance, kind, key)
        return Damage(f"{kind} {key!r} {what!r}")


def _in_hash(client: Any, chance: Random, kind: str, key: bytes) -> bytes:
    field, value = chance.choice(sorted(client.hgetall(key).items()))
    if kind == "delete" or chance.random() < 0.2:
        client.hdel(key, field)
        if kind != "delete":
            client.hset(key, altered(chance, kind, field), value)
    else:
        client.hset(key, field, altered(chance, kind, value))
    return bytes(field)


def _in_zset(client: Any, chance: Random, kind: str, key: bytes) -> bytes:
    member, score = chance.choice(sorted(client.zrange(key, 0, -1, withscores=True)))
    if kind == "cut":
        client.zadd(key, {member: chance.choice((score + 1, -score, score / 2, 0, "inf", 1e300))})
        return bytes(member)
    client.zrem(key, member)
    if kind == "flip":
        client.zadd(key, {altered(chance, kind, member): score})
    return bytes(member)


def _in_text(client: Any, chance: Random, kind: str, key: bytes) -> bytes:
    client.set(key, altered(chance, kind, client.get(key)))
    return b""


_IN_REDIS: dict[bytes, Callable[..., bytes]] = {
    b"hash": _in_hash,
    b"zset": _in_zset,
    b"string": _in_text,
}


@contextmanager
def damaged(_tmp_path: Path) -> Generator[RedisDamager]:
    """A prefix to damage."""
    with fresh_prefix() as prefix:
        import redis

        with redis.Redis.from_url(URL) as client:
            yield RedisDamager(prefix, client)
