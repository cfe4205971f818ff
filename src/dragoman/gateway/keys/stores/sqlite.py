"""Keys in a SQLite file, shared by the processes of one machine."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from dragoman.errors import StoreError
from dragoman.gateway.keys.admission import Held, Meter, Rates, Refusal, corrected, decide
from dragoman.gateway.keys.amounts import windows_of
from dragoman.gateway.keys.records import Reservation, UsageRow
from dragoman.gateway.keys.store import (
    KEPT,
    LEASE,
    Bill,
    Charge,
    Found,
    Records,
    Standing,
    decode_record,
    decode_records,
    encode_record,
    row_of,
    values_of,
)
from dragoman.gateway.keys.stores import sqlite_tables as sql
from dragoman.history.storage.sqlite import privacy
from dragoman.history.storage.sqlite.connection import FAILURES, explanation
from dragoman.history.storage.threaded import Worker

T = TypeVar("T")
_WAIT = 30.0  # seconds for another process's write
MEMORY = ":memory:"


class SQLiteKeyStore:
    """A SQLite file in WAL mode, readable by its owner only; accessed on one worker thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._worker = Worker("dragoman-keys", is_blocking=False)
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None

    @property
    def name(self) -> str:
        """The store's location, without user and password."""
        return "memory:" if self._path == MEMORY else f"sqlite:///{self._path}"

    async def open(self) -> None:
        """Open or create the file. Calling it again does nothing."""
        self._worker.start()
        await self._worker.run(self._open)

    async def close(self) -> None:
        """Close the file; calling it again does nothing."""
        await self._worker.stop(self._close)

    # --- keys

    async def add(self, found: Found) -> bool:
        """Store a new key; returns False if its id is taken."""
        record, digest = found
        values = (record.id, digest, encode_record(record), record.created_at, record.revoked_at)
        return await self._run(lambda on: on.execute(sql.ADD, values).rowcount == 1)

    async def find(self, id: str) -> Found | None:
        """Find a key by its id."""
        return await self._run(lambda on: _found(on, id), writes=False)

    async def records(self) -> Records:
        """All keys, oldest first."""
        rows = await self._run(lambda on: on.execute(sql.RECORDS).fetchall(), writes=False)
        return decode_records(rows)

    async def revoke(self, id: str, now: float) -> bool:
        """Revoke a key; keeps the time of the first call."""

        def work(on: sqlite3.Connection) -> bool:
            on.execute(sql.REVOKE, (now, id))
            return on.execute(sql.STATE, (id,)).fetchone() is not None

        return await self._run(work)

    # --- reservations

    async def reserve(self, reservation: Reservation, now: float) -> Refusal | None:
        """Make a reservation, or return why not."""
        return await self._run(_reserve, reservation, now)

    async def settle(self, charge: Charge, now: float) -> bool:
        """Charge a reservation once."""
        return await self._run(_settle, charge, now)

    async def release(self, reservation: Reservation, now: float) -> bool:
        """End a reservation without a charge."""
        return await self._run(_release, reservation, now)

    async def renew(self, held: Sequence[Reservation], now: float) -> None:
        """Extend leases."""
        values = [(now + LEASE, each.key.id, each.id) for each in held]
        await self._run(lambda on: on.executemany(sql.RENEW, values))

    async def sweep(self, now: float) -> None:
        """Delete reservations that expired long ago."""
        await self._run(lambda on: on.execute(sql.SWEEP, (now - KEPT,)))

    # --- usage

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:  # noqa: ARG002 - the outcome is always known here
        """Add usage."""
        values = [values_of(row) for row in rows]
        await self._run(lambda on: on.executemany(sql.ADD_USAGE, values))

    async def charge_batch(self, bill: Bill) -> bool:
        """Charge a batch once."""
        return await self._run(_charge_batch, bill)

    async def usage(self, key: str | None, since: str | None) -> list[UsageRow]:
        """The usage."""
        values = (key, key, since or "")
        rows = await self._run(lambda on: on.execute(sql.USAGE, values).fetchall(), writes=False)
        return [row_of(row) for row in rows]

    async def standing(self, key: str, now: float) -> Standing:
        """What counts against a key's budgets."""

        def work(on: sqlite3.Connection) -> Standing:
            found = {name: (tokens, nanos) for name, tokens, nanos in on.execute(sql.ALL, (key,))}
            return Standing(found, _held(on, key, now))

        return await self._run(work)

    # --- on the thread

    def _open(self) -> None:
        with self._lock:
            if self._connection is None:
                try:
                    self._connection = _connect(self._path)
                except (*FAILURES, OSError) as error:
                    raised = explanation(error, self.name, is_opening=True)
                else:
                    return
                raise raised

    def _close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    async def _run(self, work: Callable[..., T], *arguments: Any, writes: bool = True) -> T:
        return await self._worker.run(self._transaction, work, arguments, writes)

    def _transaction(
        self, work: Callable[..., T], arguments: tuple[Any, ...], writes: bool  # noqa: FBT001 - through an executor, which takes no names
    ) -> T:  # fmt: skip
        with self._lock:
            connection = self._connection
            if connection is None:
                msg = f"the store {self.name} is closed"
                raise StoreError(msg)
            try:
                return _committed(connection, work, arguments, writes=writes)
            except FAILURES as error:
                raised = explanation(error, self.name)
        raise raised


def _committed(
    connection: sqlite3.Connection, work: Callable[..., T], arguments: tuple[Any, ...], *,
    writes: bool,
) -> T:  # fmt: skip
    if not writes:
        return work(connection, *arguments)  # one statement, one snapshot
    connection.execute("BEGIN IMMEDIATE")
    try:
        answer = work(connection, *arguments)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    return answer


def _connect(path: str) -> sqlite3.Connection:
    is_exposed = path != MEMORY and privacy.prepare(Path(path))
    connection = sqlite3.connect(
        path, timeout=_WAIT, isolation_level=None, check_same_thread=False
    )  # one thread at a time, not always the same
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        if sys.version_info >= (3, 12):
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # noqa: FBT003 - positional only
        sql.prepare(connection)
        if is_exposed:
            privacy.expect_files(Path(path))  # now that its log is there as well
    except BaseException:
        connection.close()
        raise
    return connection


def _found(on: sqlite3.Connection, id: str) -> Found | None:
    row = on.execute(sql.FIND, (id,)).fetchone()
    return None if row is None else Found(decode_record(row[0], row[2]), row[1])


def _reserve(on: sqlite3.Connection, reservation: Reservation, now: float) -> Refusal | None:
    key = reservation.key.id
    state = on.execute(sql.STATE, (key,)).fetchone()
    if state is None or state[0] is not None:
        return Refusal("revoked")
    windows = tuple(windows_of(reservation.day).values())
    spent = {name: (tokens, nanos)
             for name, tokens, nanos in on.execute(sql.SPENT, (key, *windows))}  # fmt: skip
    decided = decide(reservation, Meter(spent, _held(on, key, now), Rates(*state[1:])), now)
    if isinstance(decided, Refusal):
        return decided
    if not reservation.id:
        return None
    on.execute(
        sql.HOLD,
        (reservation.id, key, reservation.tokens, reservation.nanos, reservation.day, now + LEASE),
    )
    if decided != state[1:]:
        on.execute(sql.RATES, (*decided, key))
    return None


def _held(on: sqlite3.Connection, key: str, now: float) -> list[Held]:
    return [Held(*row) for row in on.execute(sql.HELD, (key, now))]


def _settle(on: sqlite3.Connection, charge: Charge, now: float) -> bool:
    reservation, row = charge
    if not _ended(on, reservation):
        return False
    windows = windows_of(reservation.day).values()
    values = [(row.key, window, charge.tokens, row.nanos) for window in windows]
    on.executemany(sql.SPEND, values)
    on.execute(sql.ADD_USAGE, values_of(row))
    _correct(on, reservation, charge.tokens, now)
    return True


def _charge_batch(on: sqlite3.Connection, bill: Bill) -> bool:
    amount = (bill.tokens, bill.nanos)
    if on.execute(sql.CHARGE_BATCH, (bill.batch, *amount)).rowcount != 1:
        return False
    windows = windows_of(bill.day).values()
    on.executemany(sql.SPEND, [(bill.key, window, *amount) for window in windows])
    on.executemany(sql.ADD_USAGE, [values_of(row) for row in bill.rows])
    return True


def _release(on: sqlite3.Connection, reservation: Reservation, now: float) -> bool:
    if not _ended(on, reservation):
        return False
    _correct(on, reservation, 0, now)
    return True


def _ended(on: sqlite3.Connection, reservation: Reservation) -> bool:
    return on.execute(sql.END, (reservation.id, reservation.key.id)).rowcount == 1


def _correct(on: sqlite3.Connection, reservation: Reservation, tokens: int, now: float) -> None:
    limit, more = reservation.key.tokens_per_minute, tokens - reservation.tokens
    if limit is None or not more:
        return
    _, requests_at, tokens_at = on.execute(sql.STATE, (reservation.key.id,)).fetchone()
    rates = (requests_at, corrected(tokens_at, now, more, limit))
    on.execute(sql.RATES, (*rates, reservation.key.id))
