"""What a store of keys does. Every method is atomic, across processes and machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from dragoman.errors import Corrupt
from dragoman.gateway.keys.admission import Held, Refusal
from dragoman.gateway.keys.records import SUMS, KeyRecord, Reservation, UsageRow

LEASE = 120.0
"""Seconds that a reservation lives without being renewed: that long a crashed worker holds it."""
KEPT = 86_400.0
"""Seconds after which a lapsed reservation is forgotten; until then it can still be settled."""


class Found(NamedTuple):
    """A key as it is stored."""

    record: KeyRecord
    digest: bytes


class Charge(NamedTuple):
    """What a reservation is settled with."""

    reservation: Reservation
    row: UsageRow
    """The request in the usage; `nanos` is what is charged."""

    @property
    def tokens(self) -> int:
        """What counts against budgets and rates."""
        return self.row.tokens_in + self.row.tokens_out


class Standing(NamedTuple):
    """What a key has spent by window, and what its live reservations hold."""

    spent: dict[str, tuple[int, int]]
    held: list[Held]


class KeyStore(Protocol):
    """Keys, their budgets and their usage, in one place that all workers share.

    `now` is the caller's clock, in seconds since 1970: those of several machines should agree to
    about a second, as they do with NTP.
    """

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        ...

    async def open(self) -> None:
        """Connect, and make the tables if need be."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...

    async def add(self, found: Found) -> bool:
        """Store a new key; False where its id is taken."""
        ...

    async def find(self, id: str) -> Found | None:
        """The key of an id."""
        ...

    async def records(self) -> list[KeyRecord]:
        """All keys, the oldest first."""
        ...

    async def revoke(self, id: str, now: float) -> KeyRecord | None:
        """Revoke a key, for good; None where there is none. The first time counts."""
        ...

    async def reserve(self, asked: Reservation, now: float) -> Refusal | None:
        """Hold what is asked for, if the key's budgets and limits allow it; else why not."""
        ...

    async def settle(self, charge: Charge, now: float) -> bool:
        """Charge a reservation and end it; False, and no charge, where it was ended before."""
        ...

    async def release(self, reservation: Reservation, now: float) -> bool:
        """End a reservation without a charge; False where it was ended before."""
        ...

    async def renew(self, held: Sequence[Reservation], now: float) -> None:
        """Extend the leases of reservations."""
        ...

    async def sweep(self, now: float) -> None:
        """Forget what lapsed long ago."""
        ...

    async def add_usage(self, rows: Sequence[UsageRow], token: str, now: float) -> None:
        """Add to the sums, all or nothing, and once for a token: it may be sent again."""
        ...

    async def usage(self, key: str | None, since: str | None) -> list[UsageRow]:
        """The sums of a key or of all, from a day on; ordered by key, day, model and route."""
        ...

    async def standing(self, key: str, now: float) -> Standing:
        """What counts against a key's budgets."""
        ...


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(KeyRecord).decode


def encode_record(record: KeyRecord) -> str:
    """A record as stores keep it; when it was revoked is kept beside it."""
    return _ENCODE(msgspec.structs.replace(record, revoked_at=None)).decode()


def decode_record(text: str | bytes, revoked_at: float | None) -> KeyRecord:
    """The record in a stored text."""
    try:
        record = _DECODE(text)
    except (msgspec.MsgspecError, UnicodeError):  # it may quote the text
        record = None
    if record is None:
        msg = "a key in the store is damaged: revoke it, and create another"
        raise Corrupt(msg)
    return record if revoked_at is None else msgspec.structs.replace(record, revoked_at=revoked_at)


def added_up(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """One row for each key, day, model and route, in this order."""
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
    """A row of a table: key, day, model, route and the sums."""
    key, day, model, route, *counts = values
    return _row((str(key), str(day), str(model), str(route)), [int(each) for each in counts])


def values_of(row: UsageRow) -> tuple[str | int, ...]:
    """The inverse of `row_of`."""
    return (row.key, row.day, row.model, row.route, *(getattr(row, name) for name in SUMS))
