"""Checks that a file contains our tables, and nothing that executes by itself.

A foreign trigger, view, constraint or generated column would run with our statements, and could
redirect what is written or falsify what is read.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache

from dragoman.errors import Corrupt, StoreError
from dragoman.history.storage.sqlite import schema

_INDEX = "createvirtualtabletextsusingfts5(text)"
_NOISE = re.compile(r"""[\s"'`\[\]]+""")
_RUNS = re.compile(r"\b(check|generated|as|collate|virtual)\b", re.IGNORECASE)
_FOREIGN = (
    "the store contains triggers, views, indexes or constraints that dragoman did not create and"
    " that would run with its statements; inspect them with `SELECT * FROM sqlite_master` and drop"
    " them, or restore a backup"
)
INCOMPLETE = (
    "the store is damaged: its tables don't match its schema; it was not changed. Restore a"
    " backup, or recover what is readable with `sqlite3 FILE .recover`"
)


def expect_ours(connection: sqlite3.Connection, version: int) -> None:
    """Raises unless the file has the tables of this version, and nothing harmful."""
    ours = _shape(version)
    missing = dict(ours)
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM main.sqlite_master"):
        if kind == "index" and sql is None:
            continue  # created implicitly for a table
        if missing.pop((kind, name), None) == _plain(sql):
            continue
        if _feed().get((kind, name)) == _plain(sql):
            continue
        if (kind, name) in ours or not _is_harmless(kind, name, sql):
            raise StoreError(_FOREIGN)
    if missing:
        raise Corrupt(INCOMPLETE)


def _is_harmless(kind: str, name: str, sql: str) -> bool:
    """Tables that we never touch: statistics, leftovers of a recovery, and the search index's."""
    if kind != "table" or type(sql) is not str:
        return False
    return (name == "texts" and _plain(sql) == _INDEX) or _RUNS.search(sql) is None


@cache
def _plain(sql: str) -> str:
    """A definition without the differences between versions of SQLite."""
    if type(sql) is not str:
        return ""
    return _NOISE.sub("", sql).lower().replace("referencessessions(", "referencesheads(")


@cache
def _shape(version: int) -> dict[tuple[str, str], str]:
    """Tables and indexes of a version."""
    empty = sqlite3.connect(":memory:")
    try:
        schema.create(empty)
        if version > schema.EARLIER:
            schema.migrate(empty)
        return _found(empty)
    finally:
        empty.close()


@cache
def _feed() -> dict[tuple[str, str], str]:
    """What there may be besides: the feed of changes."""
    empty = sqlite3.connect(":memory:")
    try:
        empty.execute("CREATE TABLE heads (digest)")
        schema.run(empty, schema.FEED)
        return _found(empty)
    finally:
        empty.close()


def _found(empty: sqlite3.Connection) -> dict[tuple[str, str], str]:
    found = empty.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {(kind, name): _plain(sql) for kind, name, sql in found}
