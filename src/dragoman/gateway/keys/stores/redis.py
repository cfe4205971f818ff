"""Keys in Redis, shared by many machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.errors import Corrupt
from dragoman.gateway.keys.admission import MINUTE, OVERDRAFT, SET_BACK, SOON, Held, Refusal
from dragoman.gateway.keys.amounts import windows_of
from dragoman.gateway.keys.records import SUMS, Reservation, UsageRow
from dragoman.gateway.keys.store import (
    KEPT,
    LEASE,
    Bill,
    Charge,
    Found,
    Records,
    Standing,
    added_up,
    decode_record,
    encode_record,
    row_of,
)
from dragoman.gateway.keys.stores import redis_scripts as scripts
from dragoman.gateway.keys.stores.redis_link import RedisLink

_HEX = 64  # digits of a digest


class RedisKeyStore:
    """Keys below a prefix, on one server or with Sentinel; Redis Cluster is not supported."""

    def __init__(self, url: str, *, prefix: str = "dragoman") -> None:
        self._link = RedisLink(url, prefix)

    @property
    def name(self) -> str:
        """The store's location, without user and password."""
        return self._link.name

    async def open(self) -> None:
        """Connect. Calling it again does nothing."""
        await self._link.open()

    async def close(self) -> None:
        """Disconnect; calling it again does nothing."""
        await self._link.close()

    # --- keys

    async def add(self, found: Found) -> bool:
        """Store a new key; returns False if its id is taken."""
        record, digest = found
        text = f"{digest.hex()} {encode_record(record)}"
        return bool(await self._link.command("HSETNX", self._at("keys"), record.id, text))

    async def find(self, id: str) -> Found | None:
        """Find a key by its id."""
        text, revoked_at = await self._link.pipeline(
            ("HGET", self._at("keys"), id), ("HGET", self._at("revoked"), id)
        )
        return None if text is None else _found(text, revoked_at)

    async def records(self) -> Records:
        """All keys, oldest first."""
        texts, revoked = await self._link.pipeline(
            ("HGETALL", self._at("keys")), ("HGETALL", self._at("revoked"))
        )
        records = Records([], [])
        for id, text in texts.items():
            try:
                records.found.append(_found(text, revoked.get(id)).record)
            except Corrupt:
                if id in revoked:
                    continue
                records.damaged.append(id.decode() if isinstance(id, bytes) else str(id))
        records.found.sort(key=lambda record: (record.created_at, record.id))
        return records

    async def revoke(self, id: str, now: float) -> bool:
        """Revoke a key; keeps the time of the first call."""
        keys = [self._at("keys"), self._at("revoked")]
        return bool(await self._link.run(scripts.REVOKE, keys, [id, repr(now)]))

    # --- reservations

    async def reserve(self, reservation: Reservation, now: float) -> Refusal | None:
        """Make a reservation, or return why not."""
        key, id = reservation.key, reservation.key.id
        keys = [self._at("revoked"), *self._held(id), self._at("holding"), self._at("keys")]
        limits = (key.requests_per_minute, key.tokens_per_minute, key.max_concurrent)
        windows = windows_of(reservation.day)
        values = [reservation.id, id, repr(now), reservation.tokens, reservation.nanos,
                  reservation.day, repr(now + LEASE),
                  *("" if limit is None else limit for limit in limits), MINUTE, SET_BACK,
                  SOON]  # fmt: skip
        for budget in key.budgets:
            kind = "tokens" if budget.kind == "tokens" else "nanos"
            values += [kind, windows[budget.period], budget.units]
        answer = await self._link.run(scripts.RESERVE, keys, values)
        if answer[0] == b"ok":
            return None
        return Refusal(answer[0].decode(), float(answer[1]), int(answer[2]))

    async def settle(self, charge: Charge, now: float) -> bool:
        """Charge a reservation once."""
        row = charge.row
        spent: list[str | int] = [f"{row.key} {row.day}"]
        for window in windows_of(charge.reservation.day).values():
            spent += [f"tokens:{window}", charge.tokens, f"nanos:{window}", row.nanos]
        return await self._end(charge.reservation, charge.tokens, now, [*spent, *_pairs(row)])

    async def release(self, reservation: Reservation, now: float) -> bool:
        """End a reservation without a charge."""
        return await self._end(reservation, 0, now, [])

    async def _end(
        self, reservation: Reservation, tokens: int, now: float, spent: Sequence[str | int]
    ) -> bool:
        id, limit = reservation.key.id, reservation.key.tokens_per_minute
        more = 0.0 if limit is None else (tokens - reservation.tokens) * MINUTE / limit
        keys = [*self._held(id), self._usage(id, reservation.day), self._at("days")]
        values = [reservation.id, repr(now + OVERDRAFT), repr(more), *spent]
        return bool(await self._link.run(scripts.END, keys, values))

    async def renew(self, held: Sequence[Reservation], now: float) -> None:
        """Extend leases."""
        by_key: dict[str, list[str]] = {}
        for each in held:
            by_key.setdefault(each.key.id, []).append(each.id)
        for id, ids in by_key.items():
            for start in range(0, len(ids), 1000):
                values = [repr(now + LEASE), *ids[start : start + 1000]]
                await self._link.run(scripts.RENEW, [self._at(f"{{{id}}}:leases")], values)

    async def sweep(self, now: float) -> None:
        """Delete reservations that expired long ago."""
        for each in await self._link.command("SMEMBERS", self._at("holding")):
            id = each.decode()
            keys = [*self._held(id)[1:], self._at("holding")]
            await self._link.run(scripts.SWEEP, keys, [repr(now - KEPT), id])

    # --- usage

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:  # noqa: ARG002 - tokens expire on the server
        """Add usage, once per token."""
        keys = [self._at(f"done:{token}"), self._at("days")]
        values: list[str | int] = []
        for (id, day), pairs in _by_day(rows).items():
            keys.append(self._usage(id, day))
            values += [f"{id} {day}", len(pairs) // 2, *pairs]
        await self._link.run(scripts.ADD_USAGE, keys, values)

    async def charge_batch(self, bill: Bill) -> bool:
        """Charge a batch once."""
        usage = self._usage(bill.key, bill.day)
        keys = [self._at("batches"), self._held(bill.key)[0], usage, self._at("days")]
        values: list[str | int] = [bill.batch, f"{bill.tokens} {bill.nanos}"]
        values.append(f"{bill.key} {bill.day}")
        for window in windows_of(bill.day).values():
            values += [f"tokens:{window}", bill.tokens, f"nanos:{window}", bill.nanos]
        for row in bill.rows:
            values += _pairs(row)
        return bool(await self._link.run(scripts.CHARGE_BATCH, keys, values))

    async def usage(self, key: str | None, since: str | None) -> list[UsageRow]:
        """The usage."""
        members = [each.decode().split(" ")
                   for each in await self._link.command("SMEMBERS", self._at("days"))]  # fmt: skip
        wanted = [(id, day) for id, day in members
                  if key in {None, id} and day >= (since or "")]  # fmt: skip
        answers = await self._link.pipeline(
            *(("HGETALL", self._usage(id, day)) for id, day in wanted)
        )
        rows: list[UsageRow] = []
        for (id, day), sums in zip(wanted, answers, strict=True):
            rows += _rows(id, day, sums)
        return added_up(rows)

    async def standing(self, key: str, now: float) -> Standing:
        """What counts against a key's budgets."""
        flat, held = await self._link.run(scripts.STANDING, self._held(key), [repr(now)])
        spent: dict[str, tuple[int, int]] = {}
        for field, value in zip(flat[::2], flat[1::2], strict=True):
            kind, _, window = field.decode().partition(":")
            if window:
                tokens, nanos = spent.get(window, (0, 0))
                spent[window] = (int(value), nanos) if kind == "tokens" else (tokens, int(value))
        return Standing(spent, sorted(Held(day.decode(), *map(int, rest)) for day, *rest in held))

    # --- names

    def _at(self, what: str) -> str:
        return f"{self._link.prefix}:{what}"

    def _held(self, id: str) -> list[str]:
        return [self._at(f"{{{id}}}:{what}") for what in ("meter", "leases", "reservations")]

    def _usage(self, id: str, day: str) -> str:
        return self._at(f"{{{id}}}:usage:{day}")


def _found(text: bytes, revoked_at: bytes | None) -> Found:
    try:
        digest = bytes.fromhex(text[:_HEX].decode())
    except ValueError:
        digest = b""
    if len(digest) * 2 != _HEX:
        msg = "a key in the store is corrupted: revoke it and create another"
        raise Corrupt(msg)
    when = None if revoked_at is None else float(revoked_at)
    return Found(decode_record(text[_HEX + 1 :], when), digest)


def _pairs(row: UsageRow) -> list[str | int]:
    """The increments of a row in its hash."""
    pairs: list[str | int] = []
    for name in SUMS:
        count = getattr(row, name)
        if count:
            pairs += [json.dumps([row.model, row.route, name]), count]
    return pairs


def _by_day(rows: Iterable[UsageRow]) -> dict[tuple[str, str], list[str | int]]:
    found: dict[tuple[str, str], list[str | int]] = {}
    for row in rows:
        found.setdefault((row.key, row.day), []).extend(_pairs(row))
    return found


def _rows(id: str, day: str, sums: dict[bytes, bytes]) -> list[UsageRow]:
    rows: list[UsageRow] = []
    for field, value in sums.items():
        model, route, name = json.loads(field)
        counts: list[Any] = [int(value) if each == name else 0 for each in SUMS]
        rows.append(row_of([id, day, model, route, *counts]))
    return rows
