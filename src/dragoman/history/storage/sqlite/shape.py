"""What a file may hold beside rows: our tables, and nothing that runs by itself.

A trigger, a view, a constraint or a computed column of somebody else's would run with our
statements: it could lead what is written elsewhere, or what is read astray.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache

from dragoman.errors import Corrupt, StoreError
from dragoman.history.storage.sqlite.schema import MIGRATIONS

_INDEX = "createvirtualtabletextsusingfts5(text)"
_NOISE = re.compile(r"""[\s"'`\[\]]+""")
_RUNS = re.compile(r"\b(check|generated|as|collate|virtual)\b", re.IGNORECASE)
_FOREIGN = (
    "the store holds triggers, views, indexes or constraints that dragoman did not make, and that"
    " would run with its statements: look at them with `SELECT * FROM sqlite_master` and drop them,"
    " or restore a copy"
)
INCOMPLETE = (
    "the store is damaged: its tables are not those of its schema; it has not been touched:"
    " restore a copy, or save what can be read with `sqlite3 FILE .recover`"
)


def expect_ours(connection: sqlite3.Connection, step: int) -> None:
    """Raise unless the file holds the tables of this step, and nothing that could do harm."""
    ours = _shape(step)
    missing = dict(ours)
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM main.sqlite_master"):
        if kind == "index" and sql is None:
            continue  # a table's own
        if missing.pop((kind, name), None) == _plain(sql):
            continue
        if (kind, name) in ours or not _is_harmless(kind, name, sql):
            raise StoreError(_FOREIGN)
    if missing:
        raise Corrupt(INCOMPLETE)


def _is_harmless(kind: str, name: str, sql: str) -> bool:
    """Tables that nothing of ours touches: statistics, what a recovery left, the search index's."""
    if kind != "table" or type(sql) is not str:
        return False
    return (name == "texts" and _plain(sql) == _INDEX) or _RUNS.search(sql) is None


@cache
def _plain(sql: str) -> str:
    """A definition without what versions of SQLite write differently."""
    if type(sql) is not str:
        return ""
    return _NOISE.sub("", sql).lower().replace("referencessessions(", "referencesheads(")


@cache
def _shape(step: int) -> dict[tuple[str, str], str]:
    """Tables and indexes as they are after so many steps."""
    empty = sqlite3.connect(":memory:")
    try:
        for statements in MIGRATIONS[:step]:
            empty.executescript(statements)
        found = empty.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {(kind, name): _plain(sql) for kind, name, sql in found}
    finally:
        empty.close()
