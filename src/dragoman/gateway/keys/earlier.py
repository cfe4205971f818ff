"""Brings in the key stores of November 2026, which had tables, or Lua scripts, of their own.

Files and schemas are changed in one transaction. On Redis each key is moved by itself: first its
document is created, if it is not there, then what it was made of is removed; so any number of
workers may do it at once, or again after a crash. Workers of that version must have been stopped.
"""

# ruff: noqa: S608 - statements are put together from constants; values go as parameters

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import StoreError
from dragoman.gateway.keys.account import Account
from dragoman.gateway.keys.records import SUMS
from dragoman.gateway.keys.store import KeyStore, Payer
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.sql import HEAD_COLUMNS
from dragoman.history.storage.sqlite import schema

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.pool import Link
    from dragoman.history.storage.postgres.storage import PostgresShelf
    from dragoman.history.storage.redis.storage import RedisShelf

APPLICATION = 0x4472674B  # "DrgK", in the header of a file of keys
_VERSION = 1
_WAIT = 30.0
_HEX = 64  # digits of a digest
_HELD = "SELECT key, id, day, tokens, nanos, until FROM our.reservations"
_SPENT = "SELECT key, span, tokens, nanos FROM our.spent"
_USAGE = f"SELECT key, day, model, route, {', '.join(SUMS)} FROM our.usage"
_KEYS = "SELECT id, digest, record, revoked_at, requests_at, tokens_at FROM our.keys"
_ALL = (_KEYS, _SPENT, _HELD, _USAGE)
_TABLES = ("keys", "spent", "reservations", "usage")
# Reads the catalogue itself: to_regclass() may use a cache that is older than the lock.
_IS_THERE = """
SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'key_store'"""
_BATCH = "batch"
_MIXED = (
    "the schema has histories besides keys; use another one for the keys (?schema=), and delete"
    " these tables: "
)

Rows = Iterable[tuple[Any, ...]]


class _Found:
    """The documents that are made of an earlier store."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.batches: list[str] = []

    def of(self, id: str) -> Account:
        """A key's document."""
        return self.accounts.setdefault(id, Account())

    def add_tables(self, keys: Rows, spent: Rows, held: Rows, usage: Rows) -> None:
        """Adds the rows of all tables."""
        for id, digest, record, revoked_at, requests_at, tokens_at in keys:
            account = self.of(id)
            account.record, account.digest = _raw(record), bytes(digest)
            account.revoked_at, account.rates = revoked_at, (requests_at, tokens_at)
        for id, span, tokens, nanos in spent:
            if span == _BATCH:
                self.batches.append(id)
            else:
                self.of(id).spent[span] = (tokens, nanos)
        for key, id, day, tokens, nanos, until in held:
            self.of(key).held[id] = (day, tokens, nanos, until)
        for key, day, model, route, *sums in usage:
            self.of(key).usage[day, model, route] = sums

    def stored(self, store: KeyStore) -> Iterator[Stored]:
        """The heads of all documents."""
        for id, account in self.accounts.items():
            yield store.accounts.stored(store.accounts.identity(id), account)
        for name in self.batches:
            yield store.batches.stored(store.batches.identity(name), Payer(is_charged=True))


def _raw(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)


# --- a file


def move_file(path: Path, store: KeyStore) -> None:
    """Changes a file of that version; any other is left as it is."""
    if not path.is_file():
        return
    with closing(sqlite3.connect(path, timeout=_WAIT, isolation_level=None)) as connection:
        connection.text_factory = _text
        try:
            if _is_earlier(connection):
                _move_tables(connection, store)
        except sqlite3.Error as error:
            raised = StoreError(f"the key store could not be migrated: {type(error).__name__}")
        else:
            return
    raise raised


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _is_earlier(connection: sqlite3.Connection) -> bool:
    try:
        [(application,)] = connection.execute("PRAGMA application_id")
        [(version,)] = connection.execute("PRAGMA user_version")
    except sqlite3.DatabaseError:
        return False  # whoever opens it says what is wrong
    return (application, version) == (APPLICATION, _VERSION)


def _move_tables(connection: sqlite3.Connection, store: KeyStore) -> None:
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_earlier(connection):  # another process may have been faster
            found = _Found()
            found.add_tables(*(connection.execute(_with_name(each)).fetchall() for each in _ALL))
            for table in _TABLES:
                connection.execute(f"DROP TABLE {table}")
            schema.create(connection)
            schema.migrate(connection)
            marks = "?, ?, ?, ?, ?, ?, ?, ?, ?"
            connection.executemany(
                f"INSERT INTO heads ({HEAD_COLUMNS}) VALUES ({marks})",
                [(each.digest, *each.names, *each[2:]) for each in found.stored(store)],
            )
            connection.execute(f"PRAGMA user_version={schema.VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _with_name(statement: str) -> str:
    return statement.replace("our.", "main.")


# --- a schema


async def move_schema(shelf: PostgresShelf, store: KeyStore) -> None:
    """Changes the tables of that version in a schema, if they are there."""
    await shelf.connections.write_slowly(_moved, store)


async def _moved(link: Link, store: KeyStore) -> None:
    if not await link.fetch(_IS_THERE, (link.schema,)):
        return
    await link.fetch("SELECT pg_advisory_xact_lock(4946170)")
    if not await link.fetch(_IS_THERE, (link.schema,)):
        return  # another worker was faster
    if await link.fetch("SELECT 1 FROM our.heads LIMIT 1"):
        raise StoreError(_MIXED + ", ".join(_TABLES))
    names = ", ".join(f"our.{each}" for each in (*_TABLES, "batches", "key_store"))
    await link.run(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
    found = _Found()
    found.add_tables(*[await link.fetch(each) for each in _ALL])
    for each in found.stored(store):
        await link.run(
            f"INSERT INTO our.heads ({HEAD_COLUMNS}, last_seq)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 0)",
            (each.digest, *each.names, *each[2:]),
        )
    await link.run(f"DROP TABLE {names}")


# --- a prefix on Redis


async def move_prefix(shelf: RedisShelf, prefix: str, store: KeyStore) -> None:
    """Moves the keys of that version below a prefix."""
    client = shelf.opened.client

    async def command(*words: str) -> Any:
        return await shelf.opened.ask(lambda: client.execute_command(*words))  # type: ignore[no-untyped-call, unused-ignore]

    async def hash_at(name: str) -> dict[str, bytes]:
        found = await command("HGETALL", f"{prefix}:{name}")
        return {field.decode("utf-8", "surrogateescape"): value for field, value in found.items()}

    keys, revoked = await hash_at("keys"), await hash_at("revoked")
    days: dict[str, list[str]] = {}
    for member in await command("SMEMBERS", f"{prefix}:days"):
        id, _, day = member.decode("utf-8", "surrogateescape").partition(" ")
        days.setdefault(id, []).append(day)
    for id in dict.fromkeys([*keys, *days]):
        own = [f"{{{id}}}:{what}" for what in ("meter", "reservations")]
        meter, held = [await hash_at(name) for name in own]
        name = f"{prefix}:{{{id}}}:leases"
        leases: Any = await shelf.opened.ask(
            lambda name=name: client.zrange(name, 0, -1, withscores=True)  # type: ignore[misc]
        )
        account = _of_redis(keys.get(id), revoked.get(id), meter, held, leases)
        for day in days.get(id, ()):
            _add_usage(account, day, await hash_at(f"{{{id}}}:usage:{day}"))
        await store.accounts.create(store.accounts.identity(id), account)
        gone = [*own, f"{{{id}}}:leases", *(f"{{{id}}}:usage:{day}" for day in days.get(id, ()))]
        await command("DEL", *(f"{prefix}:{name}" for name in gone))
        await command("HDEL", f"{prefix}:keys", id)
        await command("HDEL", f"{prefix}:revoked", id)
        for day in days.get(id, ()):
            await command("SREM", f"{prefix}:days", f"{id} {day}")
    for name in await hash_at("batches"):
        await store.batches.create(store.batches.identity(name), Payer(is_charged=True))
        await command("HDEL", f"{prefix}:batches", name)
    await command("DEL", f"{prefix}:holding")


def _of_redis(
    text: bytes | None,
    revoked_at: bytes | None,
    meter: dict[str, bytes],
    held: dict[str, bytes],
    leases: Iterable[tuple[bytes, float]],
) -> Account:
    account = Account()
    if text is not None:
        account.digest, account.record = _parts(text)
    account.revoked_at = None if revoked_at is None else float(revoked_at)
    for field, value in meter.items():
        kind, _, window = field.partition(":")
        tokens, nanos = account.spent.get(window, (0, 0))
        if kind == "tokens":
            account.spent[window] = (int(value), nanos)
        elif kind == "nanos":
            account.spent[window] = (tokens, int(value))
    requests_at, tokens_at = (meter.get(name, b"0") for name in ("requests_at", "tokens_at"))
    account.rates = (float(requests_at), float(tokens_at))
    until = {name.decode(): float(at) for name, at in leases}
    for id, sums in held.items():
        tokens_text, nanos_text, day = sums.decode().split(" ")
        account.held[id] = (day, int(tokens_text), int(nanos_text), until.get(id, 0.0))
    return account


def _parts(text: bytes) -> tuple[bytes, bytes]:
    """The digest and the record of a key; of a damaged one, what can't be read as either."""
    try:
        return bytes.fromhex(text[:_HEX].decode()), text[_HEX + 1 :]
    except ValueError:
        return b"damaged", text


def _add_usage(account: Account, day: str, sums: dict[str, bytes]) -> None:
    for field, value in sums.items():
        model, route, name = msgspec.json.decode(field, type=tuple[str, str, str])
        counts = account.usage.setdefault((day, model, route), [0] * len(SUMS))
        counts[SUMS.index(name)] = int(value)
