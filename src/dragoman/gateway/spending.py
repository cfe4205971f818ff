"""Charges requests to their key: reserves an estimate first, settles the actual cost afterwards.

A complete response costs what its provider reports. Where there is no such report, or none that can
be true, the largest of the reservation, of what was reported and of what was delivered is charged:
otherwise clients could hang up before the report, and pay less than they got.
"""

from __future__ import annotations

from asyncio import CancelledError
from decimal import Decimal
from types import TracebackType
from typing import Self

from dragoman.gateway.config.routing import Route
from dragoman.gateway.delivered import largest
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.keys.amounts import clipped_cost, clipped_tokens, dollars_of
from dragoman.gateway.keys.records import Reservation, Spent
from dragoman.gateway.limits import maximum_of
from dragoman.gateway.upstream_task import UpstreamTask
from dragoman.model.usage import Usage


class Spending:
    """Reserves the cost of one request; leaving the `async with` settles or releases it."""

    def __init__(self, inbound: InboundRequest, task: UpstreamTask, route: Route) -> None:
        self._inbound = inbound
        self._task = task
        self._route = route
        self._keys = inbound.gateway.keys  # settle where it was reserved, even after a reload
        self._reservation: Reservation | None = None
        self._estimated: Usage | None = None

    async def __aenter__(self) -> Self:
        keys, key = self._keys, self._inbound.key
        if keys is None or key is None:
            return self
        tokens, cost = (0, None) if not key.is_limited else await self._estimate()
        model = self._task.requested_model or ""
        self._reservation = await keys.reserve(key, model, tokens, cost)
        return self

    async def _estimate(self) -> tuple[int, Decimal | None]:
        """Upper estimate of tokens and cost, from the request's size and its limits."""
        if self._task.is_free:
            return 0, Decimal(0)
        gateway = self._inbound.gateway
        await self._task.prepare_estimate()
        usage = self._task.estimated_usage(gateway.settings_of(self._route), self._maximum)
        self._estimated = usage
        prices = gateway.prices
        costs = [prices.estimate(usage, hop) for hop in self._route.hops]
        known = [cost for cost in costs if cost is not None]
        tokens = clipped_tokens(usage.total_input + usage.total_output)
        return tokens, clipped_cost(max(known, default=None))

    def _maximum(self) -> int:
        """The most output tokens of any model of the route."""
        places = [(hop.place, hop.model) for hop in self._route.hops]
        return maximum_of(
            (place.name if place.provider is None else place.provider.name, model)
            for place, model in places
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        task = self._task
        usage = task.usage
        if usage is not None and task.provider is not None:
            prices = self._inbound.gateway.prices
            task.cost = prices.cost(task.summary, task.provider, task.model, task.place)
        if self._reservation is not None:
            # A cancelled request has reached the provider, which may charge for it.
            is_due = task.sink.has_begun or (task.attempts > 0 and kind is CancelledError)
            await self._settle(self._reservation, is_due=is_due or task.partial is not None)

    async def _settle(self, reservation: Reservation, *, is_due: bool) -> None:
        keys, task = self._keys, self._task
        assert keys is not None  # noqa: S101 - there is a reservation
        usage, cost = task.usage, task.cost
        if usage is None and not is_due:
            await keys.release(reservation)
            return
        if usage is None:
            usage = largest((self._estimated, task.partial))
            cost = self._cost_of(usage, reservation)
        model, route = task.model or "", self._route.name
        await keys.settle(reservation, Spent.of(usage, cost, model=model, route=route))

    def _cost_of(self, usage: Usage, reservation: Reservation) -> Decimal | None:
        """The cost of an estimated usage, but no less than was reserved; None: it is unknown."""
        task = self._task
        if task.is_free or task.provider is None:
            return task.cost
        summary = task.summary._replace(usage=usage)
        cost = self._inbound.gateway.prices.cost(summary, task.provider, task.model, task.place)
        return None if cost is None else max(cost, dollars_of(reservation.nanos))
