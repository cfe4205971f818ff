"""The stores decide alike on the same generated requests."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from pathlib import Path

import pytest

from dragoman.errors import DragomanError, ProviderError
from dragoman.gateway.keys import Budget, KeyRecord, Keys, Reservation, Spent
from dragoman.gateway.keys.records import Kind, Period
from tests.gateway.keys.conftest import PLACES, Place

Told = list[object]
_STEPS = 60


def drawn_limits(draw: random.Random) -> dict[str, object]:
    """Some limits of a key, tight enough to matter."""
    units: dict[Kind, Decimal] = {"tokens": Decimal(1), "cost": Decimal("0.001")}
    periods: list[Period] = ["total", "day", "month"]
    budgets = [
        Budget(kind, draw.randrange(400) * unit, period)
        for kind, unit in units.items()
        for period in periods
        if draw.random() < 0.3
    ]
    return {
        "budgets": budgets,
        "requests_per_minute": draw.choice([None, 1, 7, 30]),
        "tokens_per_minute": draw.choice([None, 60, 500]),
        "max_concurrent": draw.choice([None, 1, 3, 100]),
    }


def drawn_pause(draw: random.Random) -> float:
    """Seconds to the next step; sometimes a day, sometimes negative."""
    return draw.choice(
        [0.0, 0.0, 0.1, 1.0, 7.5, 30.0, 61.0, 119.0, 3600.0, 86_400.0, -5.0, -4000.0]
    )


async def told_by(place: Place, seed: int) -> Told:
    """The decisions of a store for the requests of a seed."""
    draw = random.Random(seed)
    told: Told = []
    async with place.opened() as keys:
        key, _ = await keys.create(**drawn_limits(draw))  # type: ignore[arg-type]  # by name
        held: list[Reservation] = []
        for _ in range(_STEPS):
            place.clock.now += drawn_pause(draw)
            told.append(await step(keys, key, held, draw))
        spent, live = await keys.standing(key)
        rows = [(row.day, row.requests, row.tokens_in, row.nanos) for row in await keys.usage()]
        told += [sorted(spent.items()), live, rows]
    return told


async def step(keys: Keys, key: KeyRecord, held: list[Reservation], draw: random.Random) -> object:
    """One request or the end of one, and its outcome."""
    tokens, cost = draw.randrange(80), Decimal(draw.randrange(90)) / 1000
    action, place = draw.random(), draw.randrange(100)
    try:
        if action < 0.6 or not held:
            held.append(await keys.reserve(key, "m", tokens, cost))
        elif action < 0.9:
            took = Spent(tokens_in=2 * tokens, cost=draw.choice([None, cost]), model="m", route="r")
            await keys.settle(held[place % len(held)], took)
        else:
            await keys.release(held.pop(place % len(held)))
    except DragomanError as error:
        wait = error.retry_after if isinstance(error, ProviderError) else None
        return type(error).__name__, str(error), None if wait is None else round(wait, 3)
    return "done"


def answers(name: str, folder: Path, seed: int) -> Told:
    """The decisions of a new store of a kind."""
    with PLACES[name](folder) as url:
        return asyncio.run(told_by(Place(url), seed))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("other", ["postgres", "redis"])
def test_stores_decide_alike(other: str, seed: int, tmp_path: Path) -> None:
    """For any limits, and a clock that moves either way."""
    (tmp_path / "one").mkdir()
    assert answers(other, tmp_path, seed) == answers("sqlite", tmp_path / "one", seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(8, 60))
@pytest.mark.parametrize("other", ["postgres", "redis"])
def test_stores_decide_alike_in_many_cases(other: str, seed: int, tmp_path: Path) -> None:
    """More of the same."""
    (tmp_path / "one").mkdir()
    assert answers(other, tmp_path, seed) == answers("sqlite", tmp_path / "one", seed)
