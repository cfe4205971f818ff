"""The keys of a gateway: authenticates requests, reserves their cost and charges them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, MutableSequence, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from secrets import token_bytes, token_hex
from time import monotonic, time
from types import TracebackType
from typing import Any, Self, TypeVar

from dragoman.errors import Corrupt, InvalidInputError, NotFound, PermissionDenied, StoreError
from dragoman.gateway.keys.admission import Refusal, error_of, expect_possible
from dragoman.gateway.keys.amounts import expect_tokens, nanos_of
from dragoman.gateway.keys.authentication import REMEMBERED, Authenticator
from dragoman.gateway.keys.patterns import may_use
from dragoman.gateway.keys.records import (
    BatchSpent,
    Budget,
    KeyRecord,
    Reservation,
    Spent,
    UsageRow,
)
from dragoman.gateway.keys.secret_form import digest_of, is_id, new_id, new_secret
from dragoman.gateway.keys.store import LEASE, Bill, Charge, Found, KeyStore, Standing
from dragoman.gateway.keys.throttling import Throttle
from dragoman.gateway.keys.urls import store_at
from dragoman.gateway.keys.usage_sums import By, Pending, grouped, row_for, rows_of

T = TypeVar("T")
_LOG = logging.getLogger("dragoman.gateway")
_RENEW = LEASE / 4
_SWEEP = 600.0
_ENVELOPE = "envelope-"
"""Begins the ids of keys that sign envelopes, which take the place of digests. No secret has such
an id: it has a hyphen."""
_SPREAD = 150.0
"""Seconds after which all workers know a new key, and it may sign."""
KEPT_ENVELOPE_KEYS = 3
"""How many of these keys are accepted: the oldest are forgotten when new ones are added."""


class Keys:
    """Virtual keys in a store shared by all workers of a gateway.

    Requests with a key without budgets and limits don't access the store; their usage is written
    every second. All others are admitted and charged in the store, immediately.
    """

    def __init__(
        self, store: KeyStore, *, remembered: float = REMEMBERED, throttle: Throttle | None = None,
        clock: Callable[[], float] = time, flush: float = 1.0,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._flush = flush  # seconds between writes of the usage of keys without limits
        self._authenticator = Authenticator(store, clock, seconds=remembered, throttle=throttle)
        self._pending = Pending()
        self._live: dict[str, Reservation] = {}
        self._unsettled: dict[str, Charge] = {}
        self._unpaid: dict[str, Bill] = {}  # by batch
        # By token, so that a batch is not added twice if the store's response was lost.
        self._batches: dict[str, Sequence[UsageRow]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._today = ("", 0.0, 0.0)
        self.damaged: Sequence[str] = ()
        """The ids of keys that `list` could not read."""

    @classmethod
    async def open(cls, url: str, **options: Any) -> Self:
        """Open the store at a URL: sqlite:, postgresql:, mariadb:, redis: or memory:."""
        keys = cls(store_at(url), **options)
        await keys.start()
        return keys

    async def start(self) -> None:
        """Open the store, and start the background task that writes usage."""
        await self._store.open()
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write pending usage and close the store."""
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._write_pending()
        if lost := len(self._unsettled) + len(self._unpaid):
            _LOG.error("%d requests could not be charged to their keys", lost)
        await self._store.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        await self.close()

    # --- a request

    def recall(self, presented: str) -> KeyRecord | None:
        """The key of a secret that was presented before; None: `authenticate` can tell."""
        return self._authenticator.recall(presented)

    async def authenticate(self, presented: str, peer: str = "") -> KeyRecord:
        """Return the key of a secret; raises `AuthenticationError` or `RateLimited`.

        `peer` identifies the client, such as by its address, to count invalid keys.
        """
        return await self._authenticator.authenticate(presented, peer)

    async def expect_open(self, key: KeyRecord, *, is_free: bool = False) -> None:
        """Raise if the key's budgets and limits refuse even the smallest request now.

        It reserves nothing. `is_free` requests cost neither tokens nor money.
        """
        if not key.is_limited:
            return
        now, least = self._clock(), 0 if is_free else 1
        asked = Reservation(id="", key=key, tokens=least, nanos=least, day=self._day(now))
        self._expect_admitted(await self._store.reserve(asked, now), key, now)

    async def reserve(
        self, key: KeyRecord, model: str, tokens: int, cost: Decimal | None
    ) -> Reservation:
        """Admit a request with its estimated tokens and cost (None: the price is unknown)."""
        if key.models and not may_use(key.models, model):
            msg = "the API key does not allow this model"
            raise PermissionDenied(msg, status=403, code="model_not_allowed")
        expect_tokens(tokens)
        now = self._clock()
        if not key.is_limited:
            return Reservation(id="", key=key, tokens=tokens, nanos=0, day=self._day(now))
        if cost is None and key.has_cost_budget:
            msg = (
                "the price of this model is unknown, so a key with a cost budget can't use it; set"
                " a price for the model, or use a token budget"
            )
            raise PermissionDenied(msg, status=403, code="model_without_price")
        expect_possible(key, tokens)
        nanos = 0 if cost is None else nanos_of(cost)
        reservation = Reservation(
            id=token_hex(12), key=key, tokens=tokens, nanos=nanos, day=self._day(now)
        )
        return await self._hold(reservation, now)

    async def _hold(self, reservation: Reservation, now: float) -> Reservation:
        task = asyncio.ensure_future(self._store.reserve(reservation, now))
        try:
            refusal = await asyncio.shield(task)
        except asyncio.CancelledError:  # the client disconnected: nothing will settle it
            self._start(self._undo(task, reservation))
            raise
        self._expect_admitted(refusal, reservation.key, now)
        self._live[reservation.id] = reservation
        return reservation

    def _expect_admitted(self, refusal: Refusal | None, key: KeyRecord, now: float) -> None:
        if refusal is None:
            return
        if refusal.reason == "revoked":
            self._authenticator.forget(key.id)
        raise error_of(refusal, key, now)

    async def _undo(self, task: asyncio.Future[Refusal | None], reservation: Reservation) -> None:
        with suppress(StoreError):
            if await task is None:
                await self._store.release(reservation, self._clock())

    async def settle(self, reservation: Reservation, spent: Spent) -> None:
        """Charge what a request used. Does nothing if it was already settled or released.

        If the cost is unknown, the estimate is charged to cost budgets. The charge is made even if
        the caller is cancelled, and retried if the store fails.
        """
        if reservation.is_done:
            return
        if not reservation.id:
            self._pending.add(reservation, spent)
            reservation.is_done = True
            return
        nanos = reservation.nanos if spent.cost is None else nanos_of(spent.cost)
        row = row_for(reservation, spent, self._pending.labels_of(spent), nanos)
        reservation.is_done = True
        await asyncio.shield(self._start(self._charge(Charge(reservation, row))))

    async def release(self, reservation: Reservation) -> None:
        """Release the reservation of a request that used nothing."""
        if reservation.is_done:
            return
        reservation.is_done = True
        if reservation.id:
            await asyncio.shield(self._start(self._give_back(reservation)))

    async def charge_batch(self, key: KeyRecord, batch: str, spent: Sequence[BatchSpent]) -> None:
        """Charge what a provider's batch used to a key: once, whoever reads the results again.

        `batch` is unique among all providers, and has a slash. The charge is made even if the
        caller is cancelled, and retried if the store fails.
        """
        day = self._day(self._clock())
        bill = Bill(batch, key.id, day, rows_of(key.id, day, spent, self._pending))
        await asyncio.shield(self._start(self._charge_bill(bill)))

    async def _charge_bill(self, bill: Bill) -> None:
        try:
            await self._store.charge_batch(bill)
        except StoreError as error:
            if bill.batch not in self._unpaid:
                _LOG.warning("charging a batch to its key failed, will retry: %s", error)
            self._unpaid.setdefault(bill.batch, bill)
            return
        self._unpaid.pop(bill.batch, None)

    async def _charge(self, charge: Charge) -> None:
        id = charge.reservation.id
        try:
            await self._store.settle(charge, self._clock())
        except StoreError as error:
            if id not in self._unsettled:
                _LOG.warning("charging a request to its key failed, will retry: %s", error)
            self._unsettled[id] = charge  # its reservation stays live, so it does not expire
            return
        self._unsettled.pop(id, None)
        self._live.pop(id, None)

    async def _give_back(self, reservation: Reservation) -> None:
        self._live.pop(reservation.id, None)
        try:
            await self._store.release(reservation, self._clock())
        except StoreError as error:
            _LOG.warning("a reservation could not be released and will expire: %s", error)

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _day(self, now: float) -> str:
        day, begins, ends = self._today
        if not begins <= now < ends:
            midnight = datetime.fromtimestamp(now, UTC).replace(
                hour=0, minute=0, second=0, microsecond=0
            )
            ends = (midnight + timedelta(days=1)).timestamp()
            day = midnight.date().isoformat()
            self._today = (day, midnight.timestamp(), ends)
        return day

    # --- in the background

    async def _run(self) -> None:
        renewed = swept = monotonic()
        while True:
            await asyncio.sleep(self._flush)
            try:
                if monotonic() - renewed >= _RENEW:
                    await self._renew()
                    renewed = monotonic()
                await self._write_pending()
                if monotonic() - swept >= _SWEEP:
                    await self._store.sweep(self._clock())
                    swept = monotonic()
            except StoreError:
                continue  # retried in the next round
            except Exception as error:  # noqa: BLE001 - the task must survive any driver error
                # The message may quote values.
                _LOG.error("the key store failed: %s", type(error).__name__)

    async def _renew(self) -> None:
        held = tuple(self._live.values())
        if held:
            await self._store.renew(held, self._clock())

    async def _write_pending(self) -> None:
        """Write pending charges and usage."""
        for id, charge in tuple(self._unsettled.items()):
            await self._charge(charge)
            if id in self._unsettled:
                break  # the store is still unreachable
        for bill in tuple(self._unpaid.values()):
            await self._charge_bill(bill)
            if bill.batch in self._unpaid:
                break
        rows = self._pending.take()
        if rows:
            self._batches[token_hex(12)] = rows
        for token, batch in tuple(self._batches.items()):
            try:
                await self._store.add_usage(batch, token, self._clock())
            except StoreError as error:
                _LOG.warning("usage could not be written, will retry: %s", error)
                return
            self._batches.pop(token, None)

    # --- administration

    async def create(
        self, *, name: str = "", models: Sequence[str] = (),
        requests_per_minute: int | None = None, tokens_per_minute: int | None = None,
        max_concurrent: int | None = None, budgets: Sequence[Budget] = (),
        expires_at: float | None = None, is_admin: bool = False,
    ) -> tuple[KeyRecord, str]:  # fmt: skip
        """Create a key; returns its record and its secret, which can't be shown again."""
        now = self._clock()
        if expires_at is not None and not now < expires_at < float("inf"):
            msg = "expires_at must be a future Unix timestamp"
            raise InvalidInputError(msg)
        while True:
            record = KeyRecord(
                id=new_id(), name=name, models=tuple(models),
                requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute,
                max_concurrent=max_concurrent, budgets=tuple(budgets), expires_at=expires_at,
                created_at=now, is_admin=is_admin,
            )  # fmt: skip
            secret = new_secret(record.id)
            if await self._store.add(Found(record, digest_of(secret))):
                return record, secret

    async def revoke(self, id: str) -> KeyRecord | None:
        """Revoke a key permanently; other processes notice within seconds.

        Returns its record; None if that is damaged.
        """
        if not (is_id(id) and await self._store.revoke(id, self._clock())):
            msg = "there is no key with this id; `dragoman keys list` shows all keys"
            raise NotFound(msg)
        self._authenticator.forget(id)
        try:
            found = await self._store.find(id)
        except Corrupt:
            return None
        return None if found is None else found.record

    async def usage(
        self, key: str | None = None, *, by: Sequence[By] | None = None, since: str | None = None
    ) -> Sequence[UsageRow]:
        """The usage of one key or all keys since a UTC day, optionally grouped `by` labels."""
        await self._write_pending()
        rows = await self._store.usage(key, since)
        return rows if by is None else grouped(rows, by)

    async def standing(self, key: KeyRecord) -> Standing:
        """What counts against a key's budgets: amounts spent and reserved."""
        return await self._store.standing(key.id, self._clock())

    async def list(self) -> Sequence[KeyRecord]:
        """All keys that can be read, oldest first; `damaged` then has the ids of the others."""
        found, damaged = await self._store.records()
        self.damaged = [id for id in damaged if not id.startswith(_ENVELOPE)]
        return [each for each in found if not each.id.startswith(_ENVELOPE)]

    # --- the keys of envelopes

    async def envelope_keys(self) -> tuple[bytes, ...]:
        """The keys that sign provider state: the first one signs, all of them are accepted.

        The first call on an empty store creates one. A new one signs only when all workers have had
        the time to read it; the latest `KEPT_ENVELOPE_KEYS` are accepted.
        """
        found = await self._envelope_keys()
        if not found:
            await self._add_envelope_key(1)
            found = await self._envelope_keys()
        found = found[-KEPT_ENVELOPE_KEYS:]
        since = self._clock() - _SPREAD
        ready = [each for each in found if each.record.created_at <= since] or found[:1]
        return (ready[-1].digest, *[each.digest for each in found if each is not ready[-1]])

    async def add_envelope_key(self) -> None:
        """Add a key that signs provider state; soon, all workers use it."""
        await self._add_envelope_key(len(await self._all_envelope_keys()) + 1)

    async def _add_envelope_key(self, number: int) -> None:
        """Add it unless another process was faster: then its key is as good."""
        record = KeyRecord(id=f"{_ENVELOPE}{number}", created_at=self._clock())
        await self._store.add(Found(record, token_bytes(32)))

    async def _envelope_keys(self) -> Sequence[Found]:
        return [each for each in await self._all_envelope_keys() if each is not None]

    async def _all_envelope_keys(self) -> Sequence[Found | None]:
        """All that were ever added, in order; None for one that is damaged."""
        found: MutableSequence[Found | None] = []
        while True:
            try:
                each = await self._store.find(f"{_ENVELOPE}{len(found) + 1}")
            except Corrupt:
                found.append(None)
                continue
            if each is None:
                return found
            found.append(each)
