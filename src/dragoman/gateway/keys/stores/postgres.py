"""Keys in PostgreSQL, shared by many machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.gateway.keys.admission import (
    MINUTE,
    OVERDRAFT,
    Held,
    Meter,
    Rates,
    Refusal,
    decide,
)
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
from dragoman.gateway.keys.stores import postgres_tables as sql
from dragoman.gateway.keys.stores.postgres_link import Connection, PostgresLink


class PostgresKeyStore:
    """Keys in a separate schema (`?schema=`, by default `dragoman_keys`)."""

    def __init__(self, url: str) -> None:
        self._link = PostgresLink(url)

    @property
    def name(self) -> str:
        """The store's location, without user and password."""
        return self._link.name

    async def open(self) -> None:
        """Connect, and create the tables if needed."""
        await self._link.open()

    async def close(self) -> None:
        """Close the store."""
        await self._link.close()

    # --- keys

    async def add(self, found: Found) -> bool:
        """Store a new key; returns False if its id is taken."""
        record, digest = found
        values = (record.id, digest, encode_record(record), record.created_at, record.revoked_at)
        return bool(await self._link.fetch(sql.ADD, values))

    async def find(self, id: str) -> Found | None:
        """Find a key by its id."""
        return _found(await self._link.fetch(sql.FIND, (id,)))

    async def records(self) -> Records:
        """All keys, oldest first."""
        return decode_records(await self._link.fetch(sql.RECORDS))

    async def revoke(self, id: str, now: float) -> bool:
        """Revoke a key; keeps the time of the first call."""
        return bool(await self._link.fetch(sql.REVOKE, (now, id)))

    # --- reservations

    async def reserve(self, reservation: Reservation, now: float) -> Refusal | None:
        """Make a reservation, or return why not: two round trips, with the key's row locked."""

        async def work(connection: Connection) -> Refusal | None:
            return await self._reserve(connection, reservation, now)

        return await self._link.run(work)

    async def _reserve(
        self, connection: Connection, reservation: Reservation, now: float
    ) -> Refusal | None:
        execute, id = self._link.execute, reservation.key.id
        windows = list(windows_of(reservation.day).values())
        async with connection.pipeline():
            await execute(connection, sql.BEGIN)
            await execute(connection, sql.PATIENCE)
            locked = await execute(connection, sql.LOCK_KEY, (id,))
            counted = await execute(
                connection, sql.METER, (id, windows, id, now, id, reservation.id)
            )
        state, rows = await locked.fetchone(), await counted.fetchall()
        decided = _decided(reservation, state, rows, now)
        async with connection.pipeline():
            if isinstance(decided, Rates) and reservation.id:
                values = (
                    reservation.id,
                    id,
                    reservation.tokens,
                    reservation.nanos,
                    reservation.day,
                    now + LEASE,
                )
                await execute(connection, sql.HOLD, values)
                if decided != (state or ())[1:]:
                    await execute(connection, sql.RATES, (*decided, id))
            await execute(connection, "COMMIT")
        return decided if isinstance(decided, Refusal) else None

    async def settle(self, charge: Charge, now: float) -> bool:
        """Charge a reservation once."""
        row = charge.row
        values = (charge.tokens, row.nanos, *values_of(row))
        return await self._end(charge.reservation, charge.tokens, now, values)

    async def release(self, reservation: Reservation, now: float) -> bool:
        """End a reservation without a charge."""
        return await self._end(reservation, 0, now, ())

    async def _end(
        self, reservation: Reservation, tokens: int, now: float, charged: tuple[str | int, ...]
    ) -> bool:
        limit, more = reservation.key.tokens_per_minute, tokens - reservation.tokens
        rated: tuple[float, ...] = ()
        statement = sql.SETTLE if charged else sql.RELEASE
        if limit is not None and more:
            statement = sql.SETTLE_RATED if charged else sql.RELEASE_RATED
            rated = (more * MINUTE / limit, now + OVERDRAFT)
        values = (reservation.key.id, reservation.id, *rated, *charged)
        [(ended,)] = await self._link.fetch(statement, values)
        return bool(ended)

    async def renew(self, held: Sequence[Reservation], now: float) -> None:
        """Extend leases."""
        keys, ids = [each.key.id for each in held], [each.id for each in held]
        await self._link.change(sql.RENEW, (now + LEASE, keys, ids))

    async def sweep(self, now: float) -> None:
        """Delete reservations that expired long ago."""
        await self._link.change(sql.SWEEP, (now - KEPT,))
        await self._link.change(sql.SWEEP_BATCHES, (now - KEPT,))

    # --- usage

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:
        """Add usage, once per token."""
        columns = zip(*sorted(values_of(row) for row in rows), strict=True)
        await self._link.change(sql.ADD_USAGE, (token, now, *map(list, columns)))

    async def charge_batch(self, bill: Bill) -> bool:
        """Charge a batch once."""
        windows = list(windows_of(bill.day).values())
        columns = zip(*sorted(values_of(row) for row in bill.rows), strict=True)
        amount = (bill.tokens, bill.nanos)
        values = (bill.batch, *amount, bill.key, windows, *map(list, columns))
        [(charged,)] = await self._link.fetch(sql.CHARGE_BATCH, values)
        return bool(charged)

    async def usage(self, key: str | None, since: str | None) -> list[UsageRow]:
        """The usage."""
        rows = await self._link.fetch(sql.USAGE, (key, key, since or ""))
        return [row_of(row) for row in rows]

    async def standing(self, key: str, now: float) -> Standing:
        """What counts against a key's budgets."""
        return _standing(await self._link.fetch(sql.STANDING, (key, key, now)))


def _found(rows: Sequence[tuple[Any, ...]]) -> Found | None:
    if not rows:
        return None
    record, digest, revoked_at = rows[0]
    return Found(decode_record(record, revoked_at), digest)


def _decided(
    reservation: Reservation,
    state: tuple[Any, ...] | None,
    rows: Sequence[tuple[Any, ...]],
    now: float,
) -> Rates | Refusal | None:
    """The decision; None: the reservation was already made, but its reply was lost."""
    if state is None or state[0] is not None:
        return Refusal("revoked")
    if any(row[0] == "again" for row in rows):
        return None
    spent, held = _standing(rows)
    return decide(reservation, Meter(spent, held, Rates(*state[1:])), now)


def _standing(rows: Iterable[tuple[Any, ...]]) -> Standing:
    spent: dict[str, tuple[int, int]] = {}
    held: list[Held] = []
    for kind, name, requests, tokens, nanos in rows:
        if kind == "spent":
            spent[name] = (tokens, nanos)
        else:
            held.append(Held(name, requests, tokens, nanos))
    return Standing(spent, sorted(held))
