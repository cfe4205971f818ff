"""Damages what a server holds: flips bits, truncates values, deletes rows, fields and keys."""

# ruff: noqa: S608 - names of tables and columns, and values that these tests have chosen

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Literal, Protocol

from dragoman.history.storage.protocol import Storage
from tests.history.storage import backend_postgres, backend_redis
from tests.history.storage.backend_postgres import sql

Kind = Literal["flip", "cut", "delete"]
KINDS: tuple[Kind, ...] = ("flip", "cut", "delete")


class Damager(Protocol):
    """One store that can be damaged and restored."""

    def new(self) -> Storage:
        """A storage on it, not opened yet."""
        ...

    def keep(self) -> None:
        """Remember the current state."""
        ...

    def put_back(self) -> None:
        """Restore the remembered state."""
        ...

    def damage(self, chance: Random, kind: Kind) -> str:
        """Applies random damage; returns a description."""
        ...


def altered(chance: Random, kind: Kind, value: bytes) -> bytes:
    """Bytes with a bit flipped, or cut short."""
    if not value or kind == "cut":
        return value[: chance.randrange(len(value))] if value else b"\0"
    at = chance.randrange(len(value))
    return value[:at] + bytes([value[at] ^ 1 << chance.randrange(8)]) + value[at + 1 :]


# --- PostgreSQL

_TABLES = {
    "heads": 'digest agent chat "user" version last_seq created_at updated_at active indexed forks'
    ' "window" windows chain seal',
    "messages": "session seq branch at id model input output cache_read cache_write thinking"
    " reported_total checksum chain body",
    "texts": "session seq branch at words",
}


class PostgresDamager:
    """Tables in a schema; a change that violates a constraint is skipped."""

    def __init__(self, schema: str, connection: Any) -> None:
        self._schema = schema
        self._connection = connection

    def _run(self, template: str, values: Any = None) -> Any:
        return self._connection.execute(sql(template, self._schema), values)

    def new(self) -> Storage:
        """See `Damager`."""
        from dragoman.history.storage.postgres import PostgresStorage

        return PostgresStorage(backend_postgres.URL, schema=self._schema, connections=2)

    def keep(self) -> None:
        """See `Damager`."""
        for table in _TABLES:
            self._run(f"CREATE TABLE our.kept_{table} AS SELECT * FROM our.{table}")

    def put_back(self) -> None:
        """See `Damager`."""
        for table in _TABLES:
            self._run(f"DELETE FROM our.{table}")
            self._run(
                f"INSERT INTO our.{table} OVERRIDING SYSTEM VALUE SELECT * FROM our.kept_{table}"
            )
        self._run("DELETE FROM our.aside")

    def damage(self, chance: Random, kind: Kind) -> str:
        """See `Damager`."""
        import psycopg

        while True:
            table = chance.choice(("heads", "messages", "messages", "texts"))
            column = chance.choice(_TABLES[table].split())
            places = self._run(f"SELECT ctid::text, {column}::text FROM our.{table}").fetchall()
            place, text = chance.choice(sorted(places))
            if kind == "delete":
                self._run(f"DELETE FROM our.{table} WHERE ctid = %s::text::tid", (place,))
                return f"{kind} {table} {place}"
            new = self._other(chance, kind, text)
            with suppress(psycopg.Error):
                kinds = self._run(f"SELECT pg_typeof({column})::text FROM our.{table} LIMIT 1")
                [(type_,)] = kinds.fetchall()
                self._run(
                    f"UPDATE our.{table} SET {column} = %s::text::{type_}"
                    " WHERE ctid = %s::text::tid",
                    (new, place),
                )
                return f"{kind} {table}.{column}: {text!r} -> {new!r}"

    def _other(self, chance: Random, kind: Kind, text: str | None) -> str | None:
        if text is None:
            return chance.choice(("", "x", "0", "-1", "base64:odd"))
        odd = chance.choice(
            (None, "NaN", "Infinity", "-3", "0", "{}", "{1}", "{{1,NULL,2}}", "{{7}}")
        )
        if chance.random() < 0.25:
            return odd
        return altered(chance, kind, text.encode()).decode("utf-8", "replace")


@contextmanager
def postgres() -> Generator[Damager]:
    """A schema to damage."""
    with backend_postgres.schema() as name:
        import psycopg

        with psycopg.connect(backend_postgres.URL, autocommit=True) as connection:
            yield PostgresDamager(name, connection)


# --- Redis


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

        return RedisStorage(backend_redis.URL, prefix=self._prefix)

    def keep(self) -> None:
        """See `Damager`."""
        self._kept = {key: self._client.dump(key) for key in self._keys()}

    def put_back(self) -> None:
        """See `Damager`."""
        for key in self._keys():
            self._client.unlink(key)
        for key, value in self._kept.items():
            self._client.restore(key, 0, value)

    def damage(self, chance: Random, kind: Kind) -> str:
        """See `Damager`."""
        key = chance.choice([key for key in self._keys() if not key.endswith(b":done")])
        if chance.random() < 0.1:
            self._client.unlink(key)
            if kind != "delete":
                self._client.set(key, b"rubbish")
            return f"{kind} of the whole {key!r}"
        what = _IN_REDIS[self._client.type(key)](self._client, chance, kind, key)
        return f"{kind} {key!r} {what!r}"


def _in_hash(client: Any, chance: Random, kind: Kind, key: bytes) -> bytes:
    field, value = chance.choice(sorted(client.hgetall(key).items()))
    if kind == "delete" or chance.random() < 0.2:
        client.hdel(key, field)
        if kind != "delete":
            client.hset(key, altered(chance, kind, field), value)
    else:
        client.hset(key, field, altered(chance, kind, value))
    return bytes(field)


def _in_zset(client: Any, chance: Random, kind: Kind, key: bytes) -> bytes:
    member, score = chance.choice(sorted(client.zrange(key, 0, -1, withscores=True)))
    if kind == "cut":
        client.zadd(key, {member: chance.choice((score + 1, -score, score / 2, 0, "inf", 1e300))})
        return bytes(member)
    client.zrem(key, member)
    if kind == "flip":
        client.zadd(key, {altered(chance, kind, member): score})
    return bytes(member)


def _in_text(client: Any, chance: Random, kind: Kind, key: bytes) -> bytes:
    client.set(key, altered(chance, kind, client.get(key)))
    return b""


_IN_REDIS: dict[bytes, Callable[..., bytes]] = {
    b"hash": _in_hash,
    b"zset": _in_zset,
    b"string": _in_text,
}


@contextmanager
def redis() -> Generator[Damager]:
    """A prefix to damage."""
    with backend_redis.fresh_prefix() as prefix:
        import redis as package

        with package.Redis.from_url(backend_redis.URL) as client:
            yield RedisDamager(prefix, client)
