"""Charges batches to keys: once, when their results are read through the gateway.

A provider's batch is neither translated nor routed, so its usage is known only from its results. If
a client disconnects before it has all of them, the gateway reads the rest itself.
"""

from __future__ import annotations

import asyncio
import logging
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.gateway.delivered import tokens_in
from dragoman.gateway.endpoints import ANTHROPIC, CHAT, GEMINI
from dragoman.gateway.services.batch_results import LineResults, OperationResults
from dragoman.model.usage import Usage
from dragoman.transport.protocol import HttpRequest

if TYPE_CHECKING:
    from dragoman.gateway.inbound import InboundRequest
    from dragoman.gateway.keys import BatchSpent, KeyRecord, Keys
    from dragoman.gateway.state import Gateway
    from dragoman.gateway.upstreams import Upstream
    from dragoman.wire.lane.plain import Summary

_LOG = logging.getLogger("dragoman.gateway")
_FILES = {
    CHAT: re.compile(r"/v1/files/([^/]+)/content"),
    ANTHROPIC: re.compile(r"/v1/messages/batches/([^/]+)/results"),
    GEMINI: re.compile(r"/v1(?:beta)?/(files/[^/]+):download"),
}
"""The paths of results as JSON lines, with the name that they are remembered by."""
_OPERATIONS = re.compile(r"/v1(?:beta)?/batches(?:/[^/:]+)?")
_BATCH = "batch"
_TASK = "batch results of "
_OK = 200
_MANY_BYTES = 1024 * 1024
_MAX_TASKS = 8
"""How many results may be read to the end at once after their clients left."""


class BatchMeter:
    """Adds up what the results of batches used while they pass through."""

    def __init__(
        self, gateway: Gateway, payer: tuple[Keys, KeyRecord], upstream: Upstream, front: str,
        path: str,
    ) -> None:  # fmt: skip
        self._gateway = gateway
        self._keys, self._key = payer
        self._upstream = upstream
        self._spent: dict[tuple[str, str], BatchSpent] = {}
        self._size = 0
        named = _FILES[front].fullmatch(path)
        self._results: LineResults | OperationResults = (
            OperationResults(path.split("/", 2)[2], self._add)
            if named is None
            else LineResults(front, named[1], self._add)
        )

    @property
    def may_have_results(self) -> bool:
        """Whether the response looks like results so far."""
        return self._results.may_have_results

    def feed(self, piece: bytes) -> None:
        """Read more of the response."""
        self._size += len(piece)
        self._results.feed(piece)

    async def charge(self) -> None:
        """Charge the results of a complete response."""
        if isinstance(self._results, OperationResults) and self._size > _MANY_BYTES:
            await asyncio.to_thread(self._results.close)
        else:
            self._results.close()
        by_batch: dict[str, list[BatchSpent]] = {}
        for (name, _), spent in self._spent.items():
            by_batch.setdefault(name, []).append(spent)
        for name, all_spent in by_batch.items():
            await self._keys.charge_batch(self._key, f"{self._upstream.name}/{name}", all_spent)

    def _add(self, name: str, summary: Summary, size: int) -> None:
        from dragoman.gateway.keys import BatchSpent, Spent

        usage = summary.usage
        if usage is None or not usage.billed:  # nothing is reported: it counts by its size
            usage = Usage(output=tokens_in(size))
            summary = summary._replace(usage=usage)
        model, place = summary.model or "", self._upstream.name
        cost = self._cost(summary)
        spent = self._spent.get((name, model))
        if spent is None:
            spent = self._spent[name, model] = BatchSpent(model=model, route=place)
        spent.add(Spent.of(usage, cost, model=model, route=place))

    def _cost(self, summary: Summary) -> Decimal | None:
        """The cost at the price for batches, or at the full price if that is unknown."""
        provider, place = self._upstream.provider_name, self._upstream.name
        for tier in (_BATCH, None):
            priced = summary._replace(tier=tier)
            cost = self._gateway.prices.cost(priced, provider, None, place)
            if cost is not None:
                return cost
        return None


def batch_meter(inbound: InboundRequest, upstream: Upstream, status: int) -> BatchMeter | None:
    """A meter for a response that may have the results of batches; None: there are none."""
    keys, key = inbound.gateway.keys, inbound.key
    if keys is None or key is None:
        return None
    if inbound.method != "GET" or status != _OK:
        return None
    front, path = inbound.endpoint.front, inbound.call.path
    is_operation = front == GEMINI and _OPERATIONS.fullmatch(path) is not None
    if not is_operation and (front not in _FILES or _FILES[front].fullmatch(path) is None):
        return None
    return BatchMeter(inbound.gateway, (keys, key), upstream, front, path)


def read_to_the_end(inbound: InboundRequest, upstream: Upstream, message: HttpRequest) -> None:
    """Read the results again in the background: the client left before it had all of them."""
    gateway, name = inbound.gateway, f"{_TASK}{upstream.name} {message.url}"
    meter = batch_meter(inbound, upstream, _OK)
    if meter is None or name in gateway.background:
        return
    if gateway.background.count(_TASK) >= _MAX_TASKS:
        _LOG.warning("a batch is not charged yet: too many clients left before its end")
        return
    gateway.background.start(name, _read(meter, upstream, message))


async def _read(meter: BatchMeter, upstream: Upstream, message: HttpRequest) -> None:
    try:
        reply = await upstream.accept(message, upstream.place.timeouts, None)
        try:
            async for piece in reply.chunks():
                meter.feed(piece)
        finally:
            await reply.close()
        await meter.charge()
    except DragomanError as error:
        _LOG.warning("a batch is not charged until its results are read again: %s", error)
