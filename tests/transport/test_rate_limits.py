"""Rate limits per provider."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from dragoman.errors import InvalidInputError
from dragoman.transport import rate_limits
from dragoman.transport.rate_limits import NO_LIMITS, Gate, Limits, gate_for
from tests.environment import PATIENCE


class Clock:
    """A clock that only advances by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        """The current time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds


async def test_concurrent_requests_are_limited() -> None:
    """Others wait for a free slot, in order of arrival."""
    gate = Gate(Limits(concurrent=2))
    inside: list[int] = []
    order: list[int] = []

    async def request(number: int) -> None:
        await gate.enter()
        inside.append(number)
        order.append(number)
        assert len(inside) <= 2
        await asyncio.sleep(0)
        inside.remove(number)
        gate.leave()

    await asyncio.gather(*map(request, range(20)))
    assert order == list(range(20))


async def test_requests_per_minute_are_limited() -> None:
    """A further request waits until the oldest is a minute old, and no longer."""
    clock = Clock()
    gate = Gate(Limits(per_minute=3), clock=clock, sleep=clock.sleep)
    for seconds in (0, 10, 20):
        clock.now = 1000.0 + seconds
        await gate.enter()
    assert clock.slept == []
    await gate.enter()
    assert clock.slept == [40.0]
    await gate.enter()
    assert clock.slept == [40.0, 10.0]


async def test_a_sleep_that_ends_early_is_repeated() -> None:
    """Timers may fire slightly early."""
    clock = Clock()

    async def early(seconds: float) -> None:
        clock.slept.append(seconds)
        clock.now += max(seconds / 2, 1e-3)

    gate = Gate(Limits(per_minute=1), clock=clock, sleep=early)
    await gate.enter()
    await gate.enter()
    assert clock.now >= 1060.0


@pytest.mark.parametrize("limits", [Limits(concurrent=1), Limits(concurrent=1, per_minute=1)])
async def test_a_cancelled_waiter_takes_no_slot(limits: Limits) -> None:
    """At whatever moment it is cancelled."""
    for moment in range(1, 6):
        clock = Clock()
        gate = Gate(limits, clock=clock, sleep=clock.sleep)
        await gate.enter()
        waiting = asyncio.create_task(gate.enter())
        for _ in range(moment):
            await asyncio.sleep(0)
        gate.leave()
        waiting.cancel()
        got_in = not isinstance((await asyncio.gather(waiting, return_exceptions=True))[0],
                                asyncio.CancelledError)  # fmt: skip
        if got_in:
            gate.leave()
        async with asyncio.timeout(PATIENCE):
            await gate.enter()


async def test_all_clients_of_a_provider_share_a_gate() -> None:
    """Gates are keyed by provider name and limits."""
    limits = Limits(concurrent=3)
    assert gate_for("acme", limits) is gate_for("acme", Limits(concurrent=3))
    assert gate_for("acme", limits) is not gate_for("other", limits)
    assert gate_for("acme", NO_LIMITS) is None


def test_each_loop_has_its_own_gates_and_ended_loops_are_dropped() -> None:
    """A gate with waiters refers to its loop, and must not keep it alive."""
    limits = Limits(concurrent=1)

    async def wait() -> Gate:
        gate = gate_for("loops", limits)
        assert gate is not None
        await gate.enter()
        task = asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        gate.leave()
        await task
        return gate

    first, second = asyncio.run(wait()), asyncio.run(wait())
    assert first is not second
    assert sum(loop.is_closed() for loop in rate_limits._gates) <= 1


@pytest.mark.parametrize("limits", [{"concurrent": 0}, {"per_minute": -1}, {"concurrent": 1.5},
                                    {"concurrent": True}, {"per_minute": "9"}])  # fmt: skip
def test_a_limit_is_a_positive_number(limits: dict[str, object]) -> None:
    """At least one request."""
    with pytest.raises(InvalidInputError):
        Limits(**cast("Any", limits))
