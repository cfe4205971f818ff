"""Sessions in a SQLite file, called as async programs do."""

# ruff: noqa: S608 - names of tables and columns, and values that these tests have chosen

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sqlite import SQLiteStorage
from tests.history.storage.damaging import Damage, altered
from tests.history.torture import IN_FULL, IN_SHORT


@contextmanager
def place(tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A fresh file."""
    yield lambda: SQLiteStorage(tmp_path / "histories.db")


# --- damage to bytes


def flip(raw: bytes, chance: Random) -> bytes:
    """One bit to eight bytes."""
    for _ in range(chance.choice((1, 1, 1, 8))):
        raw = altered(chance, "flip", raw)
    return raw


def overwrite(raw: bytes, chance: Random) -> bytes:
    """A range of zeros or noise."""
    start, length = chance.randrange(len(raw)), chance.randrange(1, 600)
    piece = bytes(length) if chance.random() < 0.5 else chance.randbytes(length)
    return raw[:start] + piece[: len(raw) - start] + raw[start + length :]


def cut_pages(raw: bytes, chance: Random) -> bytes:
    """Cut off whole pages at the end."""
    return raw[: 4096 * chance.randrange(1, len(raw) // 4096)]


def delete(raw: bytes, chance: Random) -> bytes:
    """Remove a range from the middle."""
    start = chance.randrange(len(raw))
    return raw[:start] + raw[start + chance.randrange(1, 5000) :]


_WAYS: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": flip,
    "overwrite": overwrite,
    "cut": lambda raw, chance: altered(chance, "cut", raw),
    "cut pages": cut_pages,
    "delete": delete,
}

# --- damage to rows

_ODD = (
    "NULL", "'text'", "''", "x'ff00'", "-1", "0", "1", "2", "7", "9223372036854775807",
    "-9223372036854775808", "1.5", "9e999", "-9e999", "CAST(x'ff' AS TEXT)", "zeroblob(3)",
)  # fmt: skip
_COLUMNS = {
    "heads": (
        *("id", "digest", "agent", "chat", "user", '"group"', "scope", "stamp", "at", "document"),
    ),
    "messages": (
        *("rowid", "session", "branch", "seq", "id", "at", "model", "input", "output"),
        *("reported_total", "body", "checksum", "chain"),
    ),
}
_CASES = [
    (table, column, value)
    for table, columns in _COLUMNS.items()
    for column in columns
    for value in _ODD
]
_BEYOND_REPAIR = {  # it is unknown whose they are
    ("heads", "id"),
    ("heads", "digest"),
    ("messages", "session"),
    ("messages", "rowid"),
}
_SHARES = 8
BEYOND = ("to no session", "newer")
"""What no repair reaches: rows whose session is gone, and what another version has written."""
KINDS = {
    **dict.fromkeys(_WAYS, 1000 if IN_FULL else 12 if IN_SHORT else 30),
    **dict.fromkeys((f"row of {table}" for table in _COLUMNS), 8),
    **{
        f"columns {share}": len(_CASES[share::_SHARES]) if IN_FULL else 20
        for share in range(_SHARES)
    },
}


class SQLiteDamager:
    """A file; what violates a constraint is not done."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "a.db"
        self._kept = b""
        self._cases: dict[str, list[tuple[str, str, str]]] = {}

    def new(self) -> Storage:
        """See `Damager`."""
        return SQLiteStorage(self._path, blocking=True)

    async def keep(self) -> None:
        """See `Damager`."""
        self._kept = self._path.read_bytes()

    async def put_back(self) -> None:
        """See `Damager`."""
        for each in self._path.parent.glob(f"{self._path.name}-*"):
            each.unlink()
        self._path.write_bytes(self._kept)
        self._path.chmod(0o600)

    def damage(self, chance: Random, kind: str) -> Damage | None:
        """See `Damager`."""
        if kind in _WAYS:
            raw = _WAYS[kind](self._kept, chance)
            self._path.write_bytes(raw)
            # An empty file is a new one.
            return Damage(kind, is_reparable=False) if raw else None
        if kind.startswith("row of "):
            table = kind.removeprefix("row of ")
            assert self._change(table, f"DELETE FROM {table}", chance)
            return Damage(kind, is_told=True, is_reparable=False)
        if kind not in self._cases:  # each once, in any order
            share = _CASES[int(kind.removeprefix("columns ")) :: _SHARES]
            self._cases[kind] = chance.sample(share, len(share))
        table, column, value = self._cases[kind].pop()
        if not self._change(table, f"UPDATE {table} SET {column} = {value}", chance):
            return None
        is_reparable = (table, column) not in _BEYOND_REPAIR
        return Damage(f"{table}.{column} = {value}", is_reparable=is_reparable)

    def _change(self, table: str, statement: str, chance: Random) -> bool:
        """Change one row behind the storage's back; returns whether that was possible."""
        with closing(sqlite3.connect(self._path, isolation_level=None)) as raw:
            keys = [found for (found,) in raw.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
            try:
                done = raw.execute(f"{statement} WHERE rowid = ?", (chance.choice(keys),))
            except sqlite3.Error:
                return False
            return done.rowcount > 0


@contextmanager
def damaged(tmp_path: Path) -> Generator[SQLiteDamager]:
    """A file to damage."""
    yield SQLiteDamager(tmp_path)
