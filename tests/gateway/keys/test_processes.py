"""Many processes on one budget: every nano-dollar is counted, and none is admitted beyond it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from dragoman.gateway.keys import Budget, Keys
from dragoman.gateway.keys.store import LEASE
from tests.gateway.keys.conftest import Place
from tests.gateway.keys.spending import AT_ONCE, LARGEST

ROOT = Path(__file__).resolve().parents[3]


def started(place: Place, secret: str, log: Path, seed: int) -> subprocess.Popen[bytes]:
    """A worker."""
    command = [sys.executable, "-m", "tests.gateway.keys.spending", place.url, secret, str(log)]
    return subprocess.Popen([*command, str(seed)], cwd=ROOT, env=os.environ.copy())


def logged(logs: list[Path]) -> tuple[int, int]:
    """The number of settlements in the workers' logs, and their sum."""
    sums = [int(line) for log in logs for line in log.read_text().split("\n") if line]
    return len(sums), sum(sums)


async def counted(place: Place) -> tuple[int, int, int, int]:
    """Requests and total of the usage, the charged total, and what is still reserved."""
    keys = await Keys.open(place.url)
    [row] = await keys.usage()
    [key] = await keys.list()
    spent, held = await keys.standing(key)
    await keys.close()
    assert spent["total"] == spent[row.day] == spent[row.day[:7]]
    assert spent["total"][0] == 7 * row.requests
    return row.requests, row.nanos, spent["total"][1], sum(each.requests for each in held)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [8])
def test_recorded_spend_is_the_sum_of_settlements(
    place: Place, tmp_path: Path, workers: int
) -> None:
    """Over eight processes, each of which checks that the budget is not exceeded."""
    budget = Budget("cost", Decimal("0.4"))
    secret = asyncio.run(created(place, budget))
    logs = [tmp_path / f"log-{seed}" for seed in range(workers)]
    running = [started(place, secret, log, seed) for seed, log in enumerate(logs)]
    assert [worker.wait(300) for worker in running] == [0] * workers
    requests, used, charged, held = asyncio.run(counted(place))
    assert (requests, used) == logged(logs)
    assert (charged, held) == (used, 0)
    assert budget.units - LARGEST < charged <= budget.units  # and it was used up


@pytest.mark.slow
def test_killed_workers_leave_a_consistent_store(place: Place, tmp_path: Path) -> None:
    """Acknowledged charges count once; reservations expire; the others continue."""
    secret = asyncio.run(created(place, Budget("cost", Decimal("0.4"))))
    logs = [tmp_path / f"log-{seed}" for seed in range(8)]
    running = [started(place, secret, log, seed) for seed, log in enumerate(logs)]
    for worker, log in list(zip(running, logs, strict=True))[:4]:
        while not log.exists() or log.read_text().count("\n") < 5:
            assert worker.poll() in {None, 0}
            asyncio.run(asyncio.sleep(0.01))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    # Dead workers may hold the rest of the budget until their lease ends.
    for worker in running[4:]:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    requests, used, charged, held = asyncio.run(counted(place))
    count, total = logged(logs)
    assert used == charged
    # Settled, but killed before the line was written: at most one for each client.
    assert 0 <= requests - count <= 8 * AT_ONCE
    assert 0 <= used - total <= 8 * AT_ONCE * LARGEST
    assert held <= 8 * AT_ONCE
    asyncio.run(lapsed(place))


async def lapsed(place: Place) -> None:
    """A reservation that isn't renewed expires after a lease."""
    keys = await Keys.open(place.url)
    [key] = await keys.list()
    later = keys._clock() + LEASE + 1
    assert (await keys._store.standing(key.id, later)).held == []
    await keys.close()


async def created(place: Place, budget: Budget) -> str:
    """The secret of a new key."""
    keys = await Keys.open(place.url)
    _, secret = await keys.create(budgets=[budget])
    await keys.close()
    return secret
