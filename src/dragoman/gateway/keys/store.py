"""The interface of key stores. Every method is atomic, across processes and machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from dragoman.errors import Corrupt
from dragoman.gateway.keys.admission import Held, Refusal
from dragoman.gateway.keys.records import SUMS, KeyRecord, Reservation, UsageRow

LEASE = 120.0
"""Seconds until a reservation expires without renewal, such as that of a crashed worker."""
KEPT = 86_400.0
"""Seconds after which an expired reservation is deleted; until then it can still be settled."""


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


class KeyStore(Protocol):
    """A store of keys, budgets and usage, shared by all workers.

    `now` is the caller's Unix time. The clocks of several machines should agree to about a second,
    as they do with NTP.
    """

    @property
    def name(self) -> str:
        """The store's location, without user and password."""
        ...

    async def open(self) -> None:
        """Connect, and create the tables if needed."""
        ...

    async def close(self) -> None:
        """Close the store."""
        ...

    async def add(self, found: Found) -> bool:
        """Store a new key; returns False if its id is taken."""
        ...

    async def find(self, id: str) -> Found | None:
        """Find a key by its id."""
        ...

    async def records(self) -> Records:
        """All keys, oldest first."""
        ...

    async def revoke(self, id: str, now: float) -> bool:
        """Revoke a key permanently, even a damaged one; False: no such key.

        Keeps the time of the first call.
        """
        ...

    async def reserve(self, reservation: Reservation, now: float) -> Refusal | None:
        """Make a reservation if the key's budgets and limits allow it; else return why not.

        One without an id is not made: this only tells whether it would be.
        """
        ...

    async def settle(self, charge: Charge, now: float) -> bool:
        """Charge and end a reservation; returns False, without a charge, if it had ended."""
        ...

    async def release(self, reservation: Reservation, now: float) -> bool:
        """End a reservation without a charge; returns False if it had ended."""
        ...

    async def renew(self, held: Sequence[Reservation], now: float) -> None:
        """Extend the leases of reservations."""
        ...

    async def sweep(self, now: float) -> None:
        """Delete reservations that expired long ago."""
        ...

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:
        """Add usage atomically; repeated calls with the same token add it only once."""
        ...

    async def charge_batch(self, bill: Bill) -> bool:
        """Charge a batch once, for all time; returns False, without a charge, if it was charged."""
        ...

    async def usage(self, key: str | None, since: str | None) -> list[UsageRow]:
        """The usage of one key or all, since a day; ordered by key, day, model and route."""
        ...

    async def standing(self, key: str, now: float) -> Standing:
        """What counts against a key's budgets."""
        ...


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(KeyRecord).decode


def encode_record(record: KeyRecord) -> str:
    """Encode a record for a store; `revoked_at` is stored separately."""
    return _ENCODE(msgspec.structs.replace(record, revoked_at=None)).decode()


def decode_record(text: str | bytes, revoked_at: float | None) -> KeyRecord:
    """Decode a stored record."""
    try:
        record = _DECODE(text)
    except (msgspec.MsgspecError, UnicodeError):  # its message may quote the text
        record = None
    if record is None:
        msg = "a key in the store is corrupted: revoke it and create another"
        raise Corrupt(msg)
    return record if revoked_at is None else msgspec.structs.replace(record, revoked_at=revoked_at)


def decode_records(rows: Iterable[tuple[str, str | bytes, float | None]]) -> Records:
    """Decode stored records with their ids: one that is damaged doesn't hide the others.

    A damaged one that was revoked is no longer listed.
    """
    records = Records([], [])
    for id, text, revoked_at in rows:
        try:
            records.found.append(decode_record(text, revoked_at))
        except Corrupt:
            if revoked_at is None:
                records.damaged.append(id)
    return records


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
