"""Charges requests to their key: reserves an estimate first, settles the actual cost afterwards."""

from __future__ import annotations

from asyncio import CancelledError
from decimal import Decimal
from types import TracebackType
from typing import Self

from dragoman.gateway.config.routing import Route
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.keys.amounts import clipped_cost, clipped_tokens
from dragoman.gateway.keys.records import Reservation, Spent
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
        usage = self._task.estimated_usage(gateway.settings_of(self._route))
        prices = gateway.prices
        costs = [prices.estimate(usage, hop) for hop in self._route.hops]
        known = [cost for cost in costs if cost is not None]
        tokens = clipped_tokens(usage.total_input + usage.total_output)
        return tokens, clipped_cost(max(known, default=None))

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
            await self._settle(self._reservation, usage, is_due=is_due)

    async def _settle(self, reservation: Reservation, usage: Usage | None, *, is_due: bool) -> None:
        keys, task = self._keys, self._task
        assert keys is not None  # noqa: S101 - there is a reservation
        if usage is None and not is_due:
            await keys.release(reservation)
            return
        if usage is None:  # the actual usage is unknown: charge the estimate
            usage = Usage(input=reservation.tokens)
        model, route = task.model or "", self._route.name
        await keys.settle(reservation, Spent.of(usage, task.cost, model=model, route=route))
