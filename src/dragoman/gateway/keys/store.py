"""`KeyStore`: keys, budgets and usage on a ledger: a document for each key, changed as a whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache, partial
from secrets import token_hex
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from dragoman.errors import Corrupt
from dragoman.gateway.keys.account import KEPT, LEASE, MAX_USAGE, Account
from dragoman.gateway.keys.admission import Held, Refusal
from dragoman.gateway.keys.records import SUMS, KeyRecord, Reservation, UsageRow
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.documents import Documents
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import Entry, Row

__all__ = [
    "KEPT", "LEASE", "Bill", "Charge", "Found", "KeyStore", "Records", "Standing", "added_up",
    "row_of", "values_of",
]  # fmt: skip

T = TypeVar("T")
_LOG = logging.getLogger("dragoman.gateway")
_RECENT = 1.0
"""Seconds for which a cached document may tell that a key has something left."""
_DAMAGED = "a key in the store is corrupted: revoke it and create another"


class Found(NamedTuple):
    """A stored key and the digest of its secret."""

    record: KeyRecord
    digest: bytes


class Records(NamedTuple):
    """The keys of a store that can be read, oldest first, and the ids of those that can't."""

    found: list[KeyRecord]
    damaged: list[str]


class Charge(NamedTuple):
    """The charge that settles a reservation."""

    reservation: Reservation
    row: UsageRow
    """The request as a row of usage; `nanos` is the charged amount."""

    @property
    def tokens(self) -> int:
        """The tokens that count against budgets and rate limits."""
        return self.row.tokens_in + self.row.tokens_out


class Bill(NamedTuple):
    """The charge for a provider's batch."""

    batch: str
    """The batch's name. It has a slash, so it differs from every key's id."""
    key: str
    """The id of the key that pays."""
    day: str
    rows: Sequence[UsageRow]
    """Its usage by model, of this key and day."""

    @property
    def tokens(self) -> int:
        """The tokens that count against budgets."""
        return sum(row.tokens_in + row.tokens_out for row in self.rows)

    @property
    def nanos(self) -> int:
        """The charged amount."""
        return sum(row.nanos for row in self.rows)


class Standing(NamedTuple):
    """A key's spending by window, and its live reservations."""

    spent: dict[str, tuple[int, int]]
    held: list[Held]


class Payer(msgspec.Struct, array_like=True):
    """Who pays for a batch."""

    key: str = ""
    day: str = ""
    is_charged: bool = False
    """Whether it was charged by an earlier version, which did not store who paid."""


class KeyStore:
    """A store of keys, budgets and usage, shared by all workers. Every method is atomic.

    `now` is the caller's Unix time. The clocks of several machines should agree to about a second,
    as they do with NTP.
    """

    def __init__(
        self, ledger: Ledger, opening: Callable[[KeyStore], Awaitable[None]] | None = None
    ) -> None:
        """On a ledger of its own; `opening` opens it and brings in what was stored earlier."""
        self.ledger = ledger
        self._opening = opening
        self.accounts = Documents(ledger, "keys", Account, _DAMAGED)
        self.batches = Documents(ledger, "batches", Payer, _DAMAGED)

    @property
    def name(self) -> str:
        """The store's location, without user and password."""
        return self.ledger.name

    async def open(self) -> None:
        """Connect, and create the tables if needed."""
        try:
            await (self.ledger.open() if self._opening is None else self._opening(self))
        except BaseException:
            await self.ledger.close()
            raise

    async def close(self) -> None:
        """Close the store."""
        await self.ledger.close()

    # --- keys

    async def add(self, found: Found) -> bool:
        """Store a new key; returns False if its id is taken."""
        record, digest = found
        encoded = encode_record(record)

        def work(account: Account) -> tuple[bool, bool]:
            if account.is_stored:
                return False, False
            account.record, account.digest = encoded, digest
            account.revoked_at = record.revoked_at
            return True, True

        try:
            return await self._change(record.id, work)
        except Corrupt:
            return False  # there is one, though damaged

    async def find(self, id: str) -> Found | None:
        """Find a key by its id."""
        account = await self.accounts.read(_identity(id))
        if account is None or not account.is_stored:
            return None
        return Found(decode_record(account.record, account.revoked_at), account.digest)

    async def records(self) -> Records:
        """All keys, oldest first."""
        records = Records([], [])
        async for session, account in self.accounts.all():
            id = session.identity.chat or ""
            if account is not None and not account.is_stored:
                continue
            is_revoked = account is not None and account.revoked_at is not None
            try:
                record = b"" if account is None else account.record
                found = decode_record(record, None if account is None else account.revoked_at)
            except Corrupt:
                if not is_revoked:
                    records.damaged.append(id)
            else:
                records.found.append(found)
        records.found.sort(key=lambda record: (record.created_at, record.id))
        return records

    async def revoke(self, id: str, now: float) -> bool:
        """Revoke a key permanently, even a damaged one; False: no such key.

        Keeps the time of the first call.
        """

        def work(account: Account) -> tuple[bool, bool]:
            if not account.is_stored:
                return False, False
            is_first = account.revoked_at is None
            if is_first:
                account.revoked_at = now
            return is_first, True

        try:
            return await self._change(id, work)
        except Corrupt:
            pass
        await self.accounts.replace(_identity(id), Account(revoked_at=now))
        return True

    # --- reservations

    def reserve(self, reservation: Reservation, now: float) -> Awaitable[Refusal | None]:
        """Make a reservation if the key's budgets and limits allow it; else return why not.

        One without an id is not made: this only tells whether it would be, as far as is known.
        """
        identity = _identity(reservation.key.id)
        if not reservation.id and self.accounts.peek(
            identity, lambda account: account.reserve(reservation, now)[1] is None, _RECENT
        ):
            return _admitted()
        return self._change(reservation.key.id, lambda account: account.reserve(reservation, now))

    async def settle(self, charge: Charge, now: float) -> bool:
        """Charge and end a reservation; returns False, without a charge, if it had ended."""
        reservation, row = charge
        id = reservation.key.id
        has_ended, is_full = await self._change(
            id, lambda account: account.settle(reservation, row, now)
        )
        if is_full:
            await self._move_usage(id)
        return has_ended

    def release(self, reservation: Reservation, now: float) -> Awaitable[bool]:
        """End a reservation without a charge; returns False if it had ended."""
        return self._change(reservation.key.id, lambda account: account.release(reservation, now))

    async def renew(self, held: Sequence[Reservation], now: float) -> None:
        """Extend the leases of reservations."""
        by_key: dict[str, list[str]] = {}
        for each in held:
            by_key.setdefault(each.key.id, []).append(each.id)
        for id, ids in by_key.items():
            await self._change(id, partial(Account.renew, ids=ids, now=now))

    async def sweep(self, now: float) -> None:
        """Delete reservations that expired long ago."""
        old: list[str] = []
        async for session, account in self.accounts.all():
            if account is not None and account.sweep(now)[0]:
                old.append(session.identity.chat or "")
        for id in old:
            await self._change(id, lambda account: account.sweep(now))

    # --- usage

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:  # noqa: ARG002 - for stores that forget tokens by their age
        """Add usage; repeated calls with the same token add it only once."""
        by_key: dict[str, list[UsageRow]] = {}
        for row in rows:
            by_key.setdefault(row.key, []).append(row)
        for id, own in by_key.items():
            if await self._change(id, partial(Account.use_once, rows=own, token=token)):
                await self._move_usage(id)

    async def charge_batch(self, bill: Bill) -> bool:
        """Charge a batch once, for all time; returns False, without a charge, if it was charged.

        Who is first pays: that is stored, then charged, by whoever comes next if this process ends
        in between.
        """

        def work(payer: Payer) -> tuple[bool, Payer]:
            is_first = not (payer.key or payer.is_charged)
            if is_first:
                payer.key, payer.day = bill.key, bill.day
            return is_first, replace(payer)

        payer = await self.batches.change(self.batches.identity(bill.batch), work)
        if payer.is_charged:
            return False
        is_charged = await self._charge(payer, bill)
        return is_charged and payer.key == bill.key

    async def _charge(self, payer: Payer, bill: Bill) -> bool:
        identity, name = _identity(payer.key), f"batch {bill.batch}"
        rows = [replace(row, key=payer.key, day=payer.day) for row in bill.rows]

        async def work(account: Account) -> tuple[Sequence[Entry] | None, bool]:
            if await self.accounts.rows(identity, [name]):
                return None, False
            account.spend(payer.day, bill.tokens, bill.nanos)
            account.use(rows)
            return [Entry(name, b"[]", 0.0)], True

        is_charged = await self.accounts.change_with_rows(identity, work)
        if is_charged:
            await self._move_usage(payer.key)
        return is_charged

    async def _move_usage(self, id: str) -> None:
        """Moves the usage in a document to rows: one for each day."""
        identity = _identity(id)

        async def work(account: Account) -> tuple[Sequence[Entry] | None, None]:
            if len(account.usage) <= MAX_USAGE:
                return None, None
            by_day: dict[str, list[UsageRow]] = {}
            for row in account.usage_rows(id):
                by_day.setdefault(row.day, []).append(row)
            names = {f"usage {day}": day for day in by_day}
            for kept in await self.accounts.rows(identity, [*names]):
                found, day = _usage_in(kept), names.pop(kept.id)
                if found is None:  # it stays as it is
                    names[f"usage {day} {token_hex(6)}"] = day
                else:
                    names[kept.id] = day
                    by_day[day] += found
            account.usage = {}
            return [
                Entry(name, _ENCODE(added_up(by_day[day])), 0.0) for name, day in names.items()
            ], None

        await self.accounts.change_with_rows(identity, work)

    async def usage(self, key: str | None, since: str | None) -> list[UsageRow]:
        """The usage of one key or all, since a day; ordered by key, day, model and route."""
        if key is None:
            keys = [each.identity.chat or "" async for each, found in self.accounts.all() if found]
        else:
            keys = [key]
        rows: list[UsageRow] = []
        for id in keys:
            found = await self.accounts.read_with_rows(_identity(id))
            if found is not None:
                rows += found[0].usage_rows(id)
                rows += [row for kept in found[1] for row in _usage_in(kept) or ()]
        return added_up(row for row in rows if row.day >= (since or ""))

    async def standing(self, key: str, now: float) -> Standing:
        """What counts against a key's budgets."""
        account = await self.accounts.read(_identity(key))
        if account is None:
            return Standing({}, [])
        return Standing(account.spent, account.live(now))

    def _change(self, id: str, work: Callable[[Account], tuple[bool, T]]) -> asyncio.Future[T]:
        return self.accounts.change(_identity(id), work)


@lru_cache(4096)
def _identity(id: str) -> SessionIdentity:
    return SessionIdentity(chat=id, scope="keys")


async def _admitted() -> None:
    """No refusal."""


def _usage_in(row: Row) -> list[UsageRow] | None:
    """The usage in a row beside a key; `None` if it is damaged."""
    if not row.id.startswith("usage "):
        return []
    if damage_to(row) is None:
        try:
            return _USAGE(row.body)
        except (msgspec.MsgspecError, UnicodeError):
            pass
    _LOG.error("a stored record of usage is damaged and is not counted")
    return None


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(KeyRecord).decode
_USAGE = msgspec.json.Decoder(list[UsageRow]).decode


def encode_record(record: KeyRecord) -> bytes:
    """Encode a record for a store; `revoked_at` is stored separately."""
    return _ENCODE(replace(record, revoked_at=None))


def decode_record(text: bytes, revoked_at: float | None) -> KeyRecord:
    """Decode a stored record."""
    try:
        record = _DECODE(text)
    except (msgspec.MsgspecError, UnicodeError):  # its message may quote the text
        record = None
    if record is None:
        raise Corrupt(_DAMAGED)
    return record if revoked_at is None else replace(record, revoked_at=revoked_at)


def added_up(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """Sum rows by key, day, model and route; sorted in this order."""
    sums: dict[tuple[str, str, str, str], list[int]] = {}
    for row in rows:
        counts = sums.setdefault((row.key, row.day, row.model, row.route), [0] * len(SUMS))
        for position, name in enumerate(SUMS):
            counts[position] += getattr(row, name)
    return [_row(labels, counts) for labels, counts in sorted(sums.items())]


def _row(labels: tuple[str, str, str, str], counts: Sequence[int]) -> UsageRow:
    key, day, model, route = labels
    return UsageRow(
        key=key, day=day, model=model, route=route, **dict(zip(SUMS, counts, strict=True))
    )


def row_of(values: Sequence[str | int]) -> UsageRow:
    """Build a row from a table's values: key, day, model, route and the sums."""
    key, day, model, route, *counts = values
    return _row((str(key), str(day), str(model), str(route)), [int(each) for each in counts])


def values_of(row: UsageRow) -> tuple[str | int, ...]:
    """The inverse of `row_of`."""
    return (row.key, row.day, row.model, row.route, *(getattr(row, name) for name in SUMS))
