"""Stores of cached answers: bounded memory, and Redis, which is not trusted."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.gateway.caching.entries import MAX_ENTRY_BYTES, Entry, decode, encode
from dragoman.gateway.caching.memory import MemoryCache
from dragoman.gateway.config.settings import GatewayConfig
from tests.gateway.answers import SAID, Provider
from tests.gateway.client_requests import ask, body_for, path_for, text_in
from tests.gateway.running import place, routed, running, upstream
from tests.history.storage.backend_redis import URL, fresh_prefix

KEY = b"k" * 32


def entry(key: bytes = KEY, body: bytes = b"{}", **changes: Any) -> Entry:
    """An answer."""
    given: dict[str, Any] = {
        "is_stream": False,
        "headers": {"content-type": "application/json"},
        **changes,
    }
    return Entry(key=key, pieces=[body], **given)


def test_memory_is_bounded_in_bytes_and_entries() -> None:
    """The least recently used entry is evicted."""

    async def check() -> None:
        cache = MemoryCache(50_000, max_entries=10)
        for number in range(100):
            await cache.keep(entry(bytes([number]) * 32, b"x" * 100), 60)
            assert await cache.find(bytes([0]) * 32) is not None  # used, so it stays
        assert len(cache) == 10
        for number in range(100):
            await cache.keep(entry(bytes([number]) * 32, b"x" * 20_000), 60)
            assert cache.size <= 50_000
        await cache.keep(entry(b"l" * 32, b"x" * 60_000), 60)
        assert await cache.find(b"l" * 32) is None
        await cache.close()
        assert (len(cache), cache.size) == (0, 0)

    asyncio.run(check())


def test_memory_entries_expire() -> None:
    """After the time that the route sets."""

    async def check() -> None:
        now = 0.0
        cache = MemoryCache(50_000, clock=lambda: now)
        await cache.keep(entry(), 10)
        now = 9.9
        assert await cache.find(KEY) is not None
        now = 10.0
        assert await cache.find(KEY) is None
        assert (len(cache), cache.size) == (0, 0)

    asyncio.run(check())


def test_cached_values_are_validated() -> None:
    """Anything but an answer to this very request is ignored, whatever the bytes."""
    good = encode(entry())
    assert decode(good, KEY) == entry()
    assert decode(good, b"other") is None
    draw = random.Random(7)
    for _ in range(2000):
        raw = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        found = decode(bytes(raw[: draw.randint(0, len(raw))]), KEY)
        assert found is None or found.key == KEY
    assert decode(good + b"x" * MAX_ENTRY_BYTES, KEY) is None
    for headers in (
        {"set-cookie": "a=b"},
        {"content-type": "text/html\r\nset-cookie: a"},
        {"content-length": "3"},
        {"transfer-encoding": "chunked"},
        {"content-type": "é"},
    ):
        assert decode(encode(entry(headers=headers)), KEY) is None
    magic = good[: good.index(b"\n") + 1]
    values: tuple[Any, ...] = (
        None,
        [],
        {},
        [KEY, False, {}, []],
        [KEY, False, {}, [1]],
        "x",
        [[[[]]]],
    )
    for value in values:
        assert decode(magic + msgspec.msgpack.encode(value), KEY) is None


def test_redis_stores_answers_and_is_not_trusted() -> None:
    """Round trip, time to live, values of another type, size or request."""
    from dragoman.gateway.caching.redis import RedisCache

    async def check(prefix: str) -> None:
        cache = RedisCache(f"{URL}?prefix={prefix}")
        client, at = cache._client, f"{prefix}:cache:{KEY.hex()}"
        assert await cache.find(KEY) is None
        stored = entry(is_stream=True, body=b"\x00\xff", model="m")
        await cache.keep(stored, 60)
        assert await cache.find(KEY) == stored
        assert 0 < await client.pttl(at) <= 60_000
        await client.set(at, encode(entry(b"other")))
        assert await cache.find(KEY) is None
        await client.set(at, b"x" * (MAX_ENTRY_BYTES + 100))
        assert await cache.find(KEY) is None
        await client.delete(at)
        await client.rpush(at, "x")
        assert await cache.find(KEY) is None
        await cache.close()

    with fresh_prefix() as prefix:
        asyncio.run(check(prefix))


def test_an_unavailable_redis_is_an_empty_cache(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is no error, but a log line, and a pause before the next attempt."""
    pytest.importorskip("redis")
    from dragoman.gateway.caching.redis import RedisCache

    async def check() -> None:
        now = 0.0
        cache = RedisCache("redis://:sekrit@127.0.0.1:1/0", clock=lambda: now)
        for _ in range(5):
            assert await cache.find(KEY) is None
            await cache.keep(entry(), 60)
        assert len(caplog.records) == 1
        now = 60.0
        assert await cache.find(KEY) is None
        assert len(caplog.records) == 2
        await cache.close()

    with caplog.at_level(logging.WARNING, "dragoman.gateway"):
        asyncio.run(check())
    assert "sekrit" not in caplog.text


def _with_cache(config: GatewayConfig) -> GatewayConfig:
    """The same, with a cache for every route."""
    return replace(config, routes=tuple(replace(each, cache=60.0) for each in config.routes))


def test_gateways_share_answers_in_redis() -> None:
    """For the same request only."""
    provider = Provider("openai-chat")
    with fresh_prefix() as prefix, upstream(provider) as url:
        at = place("lab", "openai-compatible", url)
        config = _with_cache(routed(at, cache=f"{URL}?prefix={prefix}"))
        seen = []
        for text in ("Where?", "Where?", "When?"):
            with running(config) as serving:
                body = body_for("openai-chat", text, stream=True)
                answer = ask(serving.url, path_for("openai-chat"), body)
                assert text_in("openai-chat", answer, stream=True) == SAID
                seen.append(answer.headers["x-dragoman-cache"])
    assert seen == ["miss", "hit", "miss"]


def test_a_gateway_whose_redis_is_down_calls_the_model() -> None:
    """Its clients don't notice."""
    pytest.importorskip("redis")
    provider = Provider("openai-chat")
    with upstream(provider) as url:
        at = place("lab", "openai-compatible", url)
        config = _with_cache(routed(at, cache="redis://127.0.0.1:1/0"))
        with running(config) as serving:
            for _ in range(2):
                answer = ask(serving.url, path_for("openai-chat"), body_for("openai-chat"))
                assert text_in("openai-chat", answer) == SAID
                assert answer.headers["x-dragoman-cache"] == "miss"
