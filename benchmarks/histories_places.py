"""Where histories are kept while they are measured: fresh, and gone afterwards."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from dragoman.history import MemoryStorage, SQLiteStorage, Storage

POSTGRES = os.environ.get("DRAGOMAN_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
REDIS = os.environ.get("DRAGOMAN_TEST_REDIS", "redis://127.0.0.1:6379/0")
CONNECTIONS = 16


@asynccontextmanager
async def memory() -> AsyncGenerator[Storage]:
    """In this process."""
    yield MemoryStorage()


@asynccontextmanager
async def sqlite() -> AsyncGenerator[Storage]:
    """A file, used in the calling thread: passing work to another would hide what it costs."""
    with TemporaryDirectory() as folder:
        storage = SQLiteStorage(Path(folder) / "histories.db", blocking=True)
        await storage.open()
        yield storage
        await storage.close()


@asynccontextmanager
async def files() -> AsyncGenerator[Storage]:
    """A directory, used in the calling thread."""
    from dragoman.history.storage.files import FileStorage

    with TemporaryDirectory() as folder:
        storage = FileStorage(folder, blocking=True)
        await storage.open()
        yield storage
        await storage.close()


@asynccontextmanager
async def postgres() -> AsyncGenerator[Storage]:
    """A schema of its own."""
    from dragoman.history.storage.postgres import PostgresStorage

    async with schema() as name:
        storage = PostgresStorage(POSTGRES, schema=name, connections=CONNECTIONS)
        await storage.open()
        yield storage
        await storage.close()


@asynccontextmanager
async def redis() -> AsyncGenerator[Storage]:
    """A prefix of its own."""
    from dragoman.history.storage.redis import RedisStorage

    async with prefix() as name:
        storage = RedisStorage(REDIS, prefix=name)
        await storage.open()
        yield storage
        await storage.close()


@asynccontextmanager
async def schema() -> AsyncGenerator[str]:
    """The name of a schema in PostgreSQL, which is dropped in the end."""
    from psycopg import AsyncConnection

    name = f"bench_{token_hex(6)}"
    try:
        yield name
    finally:
        async with await AsyncConnection.connect(POSTGRES, autocommit=True) as connection:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())


@asynccontextmanager
async def prefix() -> AsyncGenerator[str]:
    """The beginning of keys in Redis, which are removed in the end."""
    from redis.asyncio import Redis

    name = f"bench-{token_hex(6)}"
    try:
        yield name
    finally:
        async with Redis.from_url(REDIS) as client:
            async for key in client.scan_iter(f"{name}:*", count=1000):
                await client.unlink(key)


BACKENDS: Mapping[str, Callable[[], AbstractAsyncContextManager[Storage]]] = {
    "memory": memory,
    "files": files,
    "sqlite": sqlite,
    "postgres": postgres,
    "redis": redis,
}


async def absent() -> set[str]:
    """The servers that are not there."""
    return {name for name, ask in (("postgres", _postgres), ("redis", _redis)) if not await ask()}


async def _postgres() -> bool:
    import psycopg

    try:
        await (await psycopg.AsyncConnection.connect(POSTGRES, connect_timeout=5)).close()
    except psycopg.OperationalError:
        return False
    return True


async def _redis() -> bool:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    try:
        async with Redis.from_url(REDIS, socket_connect_timeout=5) as client:
            await client.ping()
    except RedisError:
        return False
    return True
