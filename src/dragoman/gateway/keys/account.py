"""`Account`: everything that is stored of a key, as one document, and what requests do to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from dragoman.gateway.keys.admission import Held, Meter, Rates, Refusal, corrected, decide
from dragoman.gateway.keys.amounts import TOTAL, windows_of
from dragoman.gateway.keys.records import SUMS, Reservation, UsageRow

LEASE = 120.0
"""Seconds until a reservation expires without renewal, such as that of a crashed worker."""
KEPT = 86_400.0
"""Seconds after which an expired reservation is deleted; until then it can still be settled."""
MAX_USAGE = 32
"""Sums of usage in the document: if there are more, they are moved to rows beside it."""
_MAX_WINDOWS = 64
_KEPT_WINDOWS = 48  # a clock may be set back by weeks
_MAX_TOKENS = 64
_LARGEST = (1 << 63) - 1
_COUNTS = len(SUMS)


class _Live(NamedTuple):
    """The sums of live reservations, by day."""

    since: float
    until: float
    """When they have to be summed again: not after the first one expires."""
    sums: dict[str, Held]


class Account(msgspec.Struct, array_like=True, dict=True):
    """A key with all that counts for it."""

    record: bytes = b""
    """The key's record in its stored form."""
    digest: bytes = b""
    """Of its secret; empty if there is no key, only usage under its id."""
    revoked_at: float | None = None
    spent: dict[str, tuple[int, int]] = {}
    """Tokens and nano-dollars by window."""
    held: dict[str, tuple[str, int, int, float]] = {}
    """Reservations: day, tokens, nano-dollars, and until when they are live."""
    rates: tuple[float, float] = (0.0, 0.0)
    usage: dict[tuple[str, str, str], list[int]] = {}
    """Sums by day, model and route, as far as they are not in rows."""
    tokens: list[str] = []
    """The latest writes of usage: one whose reply was lost is sent again."""

    @property
    def is_stored(self) -> bool:
        """Whether there is a key."""
        return bool(self.digest) or self.revoked_at is not None

    # --- reservations

    def reserve(self, reservation: Reservation, now: float) -> tuple[bool, Refusal | None]:
        """Makes a reservation if its key's budgets and limits allow it."""
        if not self.is_stored or self.revoked_at is not None:
            return False, Refusal("revoked")
        if reservation.id in self.held:
            return False, None  # sent again
        live = self._live(now)
        meter = Meter(self.spent, [*live.sums.values()], Rates(*self.rates))
        decided = decide(reservation, meter, now)
        if isinstance(decided, Refusal):
            return False, decided
        if not reservation.id:
            return False, None
        until = now + LEASE
        held = (reservation.day, reservation.tokens, reservation.nanos, until)
        self.held[reservation.id] = held
        self.rates = decided
        _count(live.sums, held, 1)
        vars(self)["live"] = live._replace(until=min(live.until, until))
        return True, None

    def _live(self, now: float) -> _Live:
        live: _Live | None = vars(self).get("live")
        if live is None or not live.since <= now < live.until:
            held = [each for each in self.held.values() if each[3] > now]
            live = _Live(now, min((each[3] for each in held), default=now + LEASE), {})
            for each in held:
                _count(live.sums, each, 1)
            vars(self)["live"] = live
        return live

    def live(self, now: float) -> list[Held]:
        """The sums of live reservations, by day."""
        return sorted(self._live(now).sums.values())

    def settle(
        self, reservation: Reservation, row: UsageRow, now: float
    ) -> tuple[bool, tuple[bool, bool]]:
        """Charges and ends a reservation; tells whether it did, and whether to move usage."""
        tokens = row.tokens_in + row.tokens_out
        if not self._end(reservation, tokens, now):
            return False, (False, False)
        self.spend(reservation.day, tokens, row.nanos)
        self.use([row])
        return True, (True, len(self.usage) > MAX_USAGE)

    def release(self, reservation: Reservation, now: float) -> tuple[bool, bool]:
        """Ends a reservation without a charge; tells whether it did."""
        has_ended = self._end(reservation, 0, now)
        return has_ended, has_ended

    def _end(self, reservation: Reservation, tokens: int, now: float) -> bool:
        held = self.held.pop(reservation.id, None)
        if held is None:
            return False
        live: _Live | None = vars(self).get("live")
        if live is not None and held[3] >= live.until:
            _count(live.sums, held, -1)
        limit, more = reservation.key.tokens_per_minute, tokens - reservation.tokens
        if limit is not None and more:
            requests_at, tokens_at = self.rates
            self.rates = (requests_at, corrected(tokens_at, now, more, limit))
        return True

    def renew(self, ids: Iterable[str], now: float) -> tuple[bool, None]:
        """Extends leases."""
        held = self.held
        known = [id for id in ids if id in held]
        for id in known:
            held[id] = (*held[id][:3], now + LEASE)
        vars(self).pop("live", None)
        return bool(known), None

    def sweep(self, now: float) -> tuple[bool, None]:
        """Deletes reservations that expired long ago."""
        old = [id for id, each in self.held.items() if each[3] < now - KEPT]
        for id in old:
            del self.held[id]
        return bool(old), None

    # --- what was used

    def spend(self, day: str, tokens: int, nanos: int) -> None:
        """Adds to what was spent in a day's windows."""
        spent = self.spent
        for window in windows_of(day).values():
            was = spent.get(window, (0, 0))
            spent[window] = (min(was[0] + tokens, _LARGEST), min(was[1] + nanos, _LARGEST))
        if len(spent) > _MAX_WINDOWS:
            latest = sorted((each for each in spent if each != TOTAL), reverse=True)
            self.spent = {name: spent[name] for name in (TOTAL, *latest[:_KEPT_WINDOWS])}

    def use(self, rows: Iterable[UsageRow]) -> None:
        """Adds usage."""
        for row in rows:
            sums = self.usage.setdefault((row.day, row.model, row.route), [0] * _COUNTS)
            for position, name in enumerate(SUMS):
                sums[position] = min(sums[position] + getattr(row, name), _LARGEST)

    def use_once(self, rows: Sequence[UsageRow], token: str) -> tuple[bool, bool]:
        """Adds usage unless it was added with this token; tells whether to move usage."""
        if token in self.tokens:
            return False, False
        self.tokens = [*self.tokens[1 - _MAX_TOKENS :], token]
        self.use(rows)
        return True, len(self.usage) > MAX_USAGE

    def usage_rows(self, key: str) -> Iterator[UsageRow]:
        """The usage that is not in rows beside the document."""
        for (day, model, route), sums in self.usage.items():
            yield UsageRow(
                key=key, day=day, model=model, route=route, **dict(zip(SUMS, sums, strict=True))
            )


def _count(sums: dict[str, Held], held: tuple[str, int, int, float], sign: int) -> None:
    day, tokens, nanos, _ = held
    was = sums.get(day)
    if was is None:
        sums[day] = Held(day, sign, sign * tokens, sign * nanos)
        return
    requests = was.requests + sign
    if not requests:
        del sums[day]
        return
    sums[day] = Held(day, requests, was.tokens + sign * tokens, was.nanos + sign * nanos)
