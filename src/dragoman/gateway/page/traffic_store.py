"""Records the latest requests of all workers in a shared SQLite file.

An observer of the gateway queues records, and a thread writes them in batches, so that a request
costs about a microsecond. When the disk can't keep up, records are dropped and counted.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from time import time
from typing import Any, TypeVar

import msgspec

from dragoman.errors import DragomanError, StoreError
from dragoman.gateway.config.settings import ServerSettings
from dragoman.gateway.records import RequestRecord
from dragoman.history.storage.sqlite.connection import expect_files, prepare
from dragoman.history.storage_urls import default_file

# --- the schema, and how the file is opened
#
# Its data is expendable: a damaged file, or one of another version, is renamed and a new one
# created.

_APPLICATION = 0x44726754  # "DrgT", in the file's header
_VERSION = 1
_LOCK_TIMEOUT = 10.0  # seconds to wait for another worker
COLUMNS = (
    "time", "front", "kind", "route", "provider", "model", "status", "key", "seconds", "first_byte",
    "tokens_in", "tokens_out", "nanos", "losses", "repairs", "attempts", "passes", "stream",
    "error", "left", "sent", "bin",
)  # fmt: skip
"""The columns of a request's row; `bin` is the bin of its duration."""

_TABLES = """
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, time REAL NOT NULL, front TEXT NOT NULL, kind TEXT NOT NULL, route TEXT,
  provider TEXT, model TEXT, status INTEGER NOT NULL, key TEXT, seconds REAL NOT NULL,
  first_byte REAL, tokens_in INTEGER, tokens_out INTEGER, nanos INTEGER, losses INTEGER NOT NULL,
  repairs INTEGER NOT NULL, attempts INTEGER NOT NULL, passes INTEGER NOT NULL,
  stream INTEGER NOT NULL, error TEXT, left INTEGER NOT NULL, sent INTEGER NOT NULL,
  bin INTEGER NOT NULL
) STRICT;
CREATE TABLE names (kind TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (kind, name))
  STRICT, WITHOUT ROWID;
CREATE TABLE details (id INTEGER PRIMARY KEY, detail BLOB NOT NULL) STRICT;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, request BLOB, answer BLOB) STRICT
"""
INSERT = f"INSERT INTO requests VALUES (?{', ?' * len(COLUMNS)})"  # noqa: S608 - all ours
DETAIL = "INSERT INTO details VALUES (?, ?)"
BODIES = "INSERT INTO bodies VALUES (?, ?, ?)"
NAME = "INSERT OR IGNORE INTO names VALUES (?, ?)"


class NotOurs(Exception):  # noqa: N818 - it never leaves these modules
    """The file is not a usable traffic database."""


WRITING, READING = 2048, 32768
"""Cache sizes in KiB. Readers get the larger cache because they scan the whole file."""


def connect(path: Path, cache: int = WRITING) -> sqlite3.Connection:
    """Opens the file; creates it with private permissions if it doesn't exist."""
    is_exposed = prepare(path)
    found = sqlite3.connect(
        path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = NORMAL")  # the last rows may be lost on power failure
        found.execute("PRAGMA secure_delete = ON")  # deleted bodies are overwritten
        found.execute(f"PRAGMA cache_size = -{cache}")
        _make_tables(found)
        if is_exposed:
            expect_files(path)
    except BaseException:
        found.close()
        raise
    return found


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_new(connection):
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file has no tables yet; raises `NotOurs` if it has other tables."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (_APPLICATION, _VERSION):
        return False
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise NotOurs
    return True


def is_ours(path: Path) -> bool:
    """Whether an unreadable file is a traffic database: only those are renamed."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(72)
        is_sqlite = head[:15] == b"SQLite format 3"
        return is_sqlite and int.from_bytes(head[68:72], "big") == _APPLICATION
    return False


def set_aside(path: Path) -> Path:
    """Renames a damaged file and deletes its SQLite side files; returns the new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    for ending in ("-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + ending).unlink()
    return aside


# --- the store

LOG = logging.getLogger("dragoman.gateway")
T = TypeVar("T")
_SKIPPED = frozenset({"page", "page-api", "health", "ready", "metrics", "root"})
_MAX_QUEUED = 50_000
_MAX_BODIES = 1000
_BATCH = 5000
_WRITE_INTERVAL = 0.5  # seconds
_JOIN_TIMEOUT = 10.0
_MAX_NAME = 256  # characters
_MAX_NOTES = 200
_MAX_INTEGER = 2**62
_NANOS = Decimal(10**9)
NAMED = ("front", "route", "model", "key")
"""The columns that requests can be filtered and grouped by."""
_MAX_NAMES = 10_000
WIDTH = 1.1
"""The ratio between the upper and lower bound of a duration bin."""
_SHORTEST = 1e-5
Entry = tuple[float, RequestRecord]
_encode = msgspec.json.Encoder().encode


class Traffic:
    """Stores `RequestRecord` records; keeps the latest `most` of them."""

    def __init__(self, path: Path, *, most: int = 100_000, pause: float = _WRITE_INTERVAL) -> None:
        self.path = path
        self.dropped = 0
        """The number of requests that could not be written."""
        self._most, self._pause = most, pause
        self._names: set[tuple[str, str]] = set()
        self._waiting: deque[Entry] = deque()
        self._wanted, self._written = threading.Event(), threading.Event()
        self._is_over = self._has_failed = False
        self._writing = _opened(path)
        self._reading, self._summing = _Reader(path), _Reader(path)
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._thread.start()

    def __call__(self, record: RequestRecord) -> None:
        """Queues the record of a finished request."""
        if record.kind in _SKIPPED:
            return
        if len(self._waiting) >= _MAX_QUEUED:
            self.dropped += 1
            return
        self._waiting.append((time(), record))

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs a read function, one at a time. Call it in a thread."""
        return self._reading.run(work)

    def sum_up(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `read`, for functions that take longer: they don't make `read` wait."""
        return self._summing.run(work)

    def flush(self, seconds: float = _JOIN_TIMEOUT) -> None:
        """Waits until all queued records are written."""
        self._written.clear()
        self._wanted.set()
        self._written.wait(seconds)

    def close(self) -> None:
        """Writes the remaining records and closes the file."""
        self._is_over = True
        self._wanted.set()
        self._thread.join(_JOIN_TIMEOUT)
        self._reading.close()
        self._summing.close()

    # --- in the writer thread

    def _run(self) -> None:
        while True:
            is_asked = self._wanted.wait(self._pause)
            self._wanted.clear()
            is_over = self._is_over
            while self._waiting and self._write_some():
                pass
            if is_asked:
                self._written.set()
            if is_over:
                with suppress(sqlite3.Error):
                    self._writing.close()
                return

    def _write_some(self) -> bool:
        count = min(len(self._waiting), _BATCH)
        entries = [self._waiting.popleft() for _ in range(count)]
        try:
            self._insert(entries)
        except sqlite3.Error as error:
            self.dropped += count
            self._warn(error)
            return False
        self._has_failed = False
        return True

    def _insert(self, entries: list[Entry]) -> None:
        run = self._writing.execute
        run("BEGIN IMMEDIATE")
        try:
            first = run("SELECT coalesce(max(id), 0) + 1 FROM requests").fetchone()[0]
            self._insert_rows(first, entries)
            last = first + len(entries) - 1
            for table, most in (("requests", self._most), ("details", self._most),
                                ("bodies", min(self._most, _MAX_BODIES))):  # fmt: skip
                run(f"DELETE FROM {table} WHERE id <= ?", (last - most,))  # noqa: S608 - ours
            run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                run("ROLLBACK")
            raise

    def _insert_rows(self, first: int, entries: list[Entry]) -> None:
        rows, details, bodies = list[Any](), list[Any](), list[Any]()
        for id, (when, record) in enumerate(entries, first):
            rows.append((id, *_row(when, record)))
            details.append((id, _encode(_detail(record))))
            if record.request_body is not None or record.answer_body is not None:
                bodies.append((id, record.request_body, record.answer_body))
        run = self._writing.executemany
        run(INSERT, rows)
        run(DETAIL, details)
        run(BODIES, bodies)
        run(NAME, self._new_names(entries))

    def _new_names(self, entries: list[Entry]) -> list[tuple[str, str]]:
        """Returns the names that no earlier request had."""
        found: dict[tuple[str, str], None] = {}
        for names in {_named(record) for _, record in entries}:
            for kind, name in zip(NAMED, map(_clipped, names), strict=True):
                if name is not None and (kind, name) not in self._names:
                    found[kind, name] = None
        if len(self._names) < _MAX_NAMES:
            self._names.update(found)
        return list(found)

    def _warn(self, error: sqlite3.Error) -> None:
        """Logs a warning once per series of failures."""
        if not self._has_failed:
            LOG.warning("requests could not be recorded: %s", type(error).__name__)
        self._has_failed = True


class _Reader:
    """A connection that only reads, for one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path, READING)
        self._connection.execute("PRAGMA query_only = ON")
        self._lock = threading.Lock()

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return work(self._connection)
            except sqlite3.Error:
                pass
        msg = "the traffic database can't be read"
        raise StoreError(msg)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def traffic_file(server: ServerSettings) -> Path | None:
    """Returns the path of the traffic database; None if recording is off."""
    if server.traffic == "off":
        return None
    if server.traffic is not None:
        return Path(server.traffic).expanduser()
    return default_file().with_name(f"traffic-{server.port}.db")


def opened_traffic(server: ServerSettings) -> Traffic | None:
    """Opens the traffic store; None if it is off or, with a warning, if it can't be opened."""
    path = traffic_file(server)
    if path is None:
        return None
    try:
        return Traffic(path, most=server.traffic_rows)
    except (DragomanError, OSError, RuntimeError, sqlite3.Error) as error:
        LOG.warning(
            "requests are not recorded: the traffic file is unusable (%s)", type(error).__name__
        )
        return None


def _opened(path: Path) -> sqlite3.Connection:
    """Opens the file; first renames a damaged traffic file, or one of another version."""
    try:
        return connect(path)
    except NotOurs:
        problem = None
    except sqlite3.DatabaseError as error:
        problem = error
    if isinstance(problem, sqlite3.OperationalError) or not is_ours(path):
        msg = "the file is not a traffic database, or it can't be written"
        raise StoreError(msg)
    LOG.warning("the traffic file can't be read; it was renamed to %s", set_aside(path).name)
    return connect(path)


# --- rows


def bin_of(seconds: float) -> int:
    """Returns the bin of a duration: 10 % wide, so that percentiles can be derived from counts."""
    return 0 if seconds <= _SHORTEST else math.ceil(math.log(seconds / _SHORTEST, WIDTH))


def seconds_of(number: int) -> float:
    """Returns the midpoint of a duration bin."""
    return _SHORTEST if number <= 0 else float(_SHORTEST * WIDTH ** (number - 0.5))


def _named(record: RequestRecord) -> tuple[str | None, ...]:
    return (record.front, record.route, record.model, record.key)  # as in `NAMED`


def _row(when: float, record: RequestRecord) -> tuple[Any, ...]:
    usage, cost = record.usage, record.cost
    return (
        when, record.front, record.kind, _clipped(record.route),
        _clipped(record.provider), _clipped(record.model), record.status, record.key,
        record.seconds, record.first_byte,
        None if usage is None else _whole(usage.total_input),
        None if usage is None else _whole(usage.total_output),
        None if cost is None else _whole(int(cost * _NANOS)),
        len(record.losses), len(record.repairs), record.attempts, record.passes, record.stream,
        record.error, record.left, record.sent, bin_of(record.seconds),
    )  # fmt: skip


def _detail(record: RequestRecord) -> dict[str, Any]:
    """Returns the fields that only the detail view shows."""
    found: dict[str, Any] = {"steps": record.steps, "tried": record.tried}
    if record.losses:
        found["losses"] = [_clipped(each) for each in record.losses[:_MAX_NOTES]]
    if record.repairs:
        found["repairs"] = [_clipped(each) for each in record.repairs[:_MAX_NOTES]]
    return found


def _clipped(text: str | None) -> str | None:
    """Truncates and cleans a name for the database: clients choose some of them."""
    return None if text is None else _cleaned(text[:_MAX_NAME])


@lru_cache(2048)
def _cleaned(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def _whole(number: int) -> int:
    return max(0, min(number, _MAX_INTEGER))
