"""The tables and statements of the SQLite key store."""

from __future__ import annotations

import sqlite3
from time import monotonic, sleep

from dragoman.errors import StoreError

_APPLICATION = 0x4472674B  # "DrgK", in the file's header: protects the databases of other programs
_VERSION = 1
_WAIT = 30.0

_TABLES = """
CREATE TABLE keys (
  id TEXT PRIMARY KEY, digest BLOB NOT NULL, record TEXT NOT NULL, created_at REAL NOT NULL,
  revoked_at REAL, requests_at REAL NOT NULL DEFAULT 0, tokens_at REAL NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
  key TEXT NOT NULL, span TEXT NOT NULL, tokens INTEGER NOT NULL, nanos INTEGER NOT NULL,
  PRIMARY KEY (key, span)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
  key TEXT NOT NULL, id TEXT NOT NULL, tokens INTEGER NOT NULL, nanos INTEGER NOT NULL,
  day TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  key TEXT NOT NULL, day TEXT NOT NULL, model TEXT NOT NULL, route TEXT NOT NULL,
  requests INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
  tokens_cached INTEGER NOT NULL, tokens_reasoning INTEGER NOT NULL, nanos INTEGER NOT NULL,
  unknown INTEGER NOT NULL, PRIMARY KEY (key, day, model, route)
) STRICT, WITHOUT ROWID
"""

ADD = (
    "INSERT INTO keys (id, digest, record, created_at, revoked_at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO NOTHING"
)
FIND = "SELECT record, digest, revoked_at FROM keys WHERE id = ?"
RECORDS = "SELECT id, record, revoked_at FROM keys ORDER BY created_at, id"
REVOKE = "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"

STATE = "SELECT revoked_at, requests_at, tokens_at FROM keys WHERE id = ?"
SPENT = "SELECT span, tokens, nanos FROM spent WHERE key = ? AND span IN (?, ?, ?)"
ALL = "SELECT span, tokens, nanos FROM spent WHERE key = ?"
HELD = (
    "SELECT day, count(*), sum(tokens), sum(nanos) FROM reservations WHERE key = ? AND until > ?"
    " GROUP BY day"
)
HOLD = "INSERT INTO reservations (id, key, tokens, nanos, day, until) VALUES (?, ?, ?, ?, ?, ?)"
RATES = "UPDATE keys SET requests_at = ?, tokens_at = ? WHERE id = ?"
END = "DELETE FROM reservations WHERE id = ? AND key = ?"
SPEND = (
    "INSERT INTO spent (key, span, tokens, nanos) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET tokens = tokens + excluded.tokens, nanos = nanos + excluded.nanos"
)
# The spending of a batch is kept under its name, and so is the fact that it was charged.
CHARGE_BATCH = "INSERT INTO spent VALUES (?, 'batch', ?, ?) ON CONFLICT DO NOTHING"
RENEW = "UPDATE reservations SET until = ? WHERE key = ? AND id = ?"
SWEEP = "DELETE FROM reservations WHERE until < ?"

ADD_USAGE = (
    "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " requests = requests + excluded.requests, tokens_in = tokens_in + excluded.tokens_in,"
    " tokens_out = tokens_out + excluded.tokens_out,"
    " tokens_cached = tokens_cached + excluded.tokens_cached,"
    " tokens_reasoning = tokens_reasoning + excluded.tokens_reasoning,"
    " nanos = nanos + excluded.nanos, unknown = unknown + excluded.unknown"
)
USAGE = (
    "SELECT key, day, model, route, requests, tokens_in, tokens_out, tokens_cached,"
    " tokens_reasoning, nanos, unknown FROM usage WHERE (? IS NULL OR key = ?) AND day >= ?"
    " ORDER BY key, day, model, route"
)


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables if the file is new; raise if it belongs to another program."""
    connection.execute("BEGIN")  # one snapshot for all checks
    _expect_ours(connection)
    connection.execute("COMMIT")
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")  # survives kill -9
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _expect_ours(connection):  # another process may have been faster
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _expect_ours(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there already."""
    [(application,)] = connection.execute("PRAGMA application_id")
    [(version,)] = connection.execute("PRAGMA user_version")
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
    if application != _APPLICATION and (tables or version):
        msg = "the file is the database of another program; use a separate file for the keys"
        raise StoreError(msg)
    if version > _VERSION:
        msg = "this key store was written by a newer version of dragoman; upgrade to use it"
        raise StoreError(msg)
    return bool(version == _VERSION)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # Unlike other statements, switching to WAL mode does not wait for locks.
    deadline = monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
        else:
            return
