"""Timing: the best of many short rounds, ours and the peers' in turn: noise hits all alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

Job = Callable[[], Any]


def seconds(
    jobs: Mapping[str, Job], *, rounds: int = 15, per_round: float = 0.02
) -> dict[str, float]:
    """Seconds for one run of each job: the best round counts."""
    repeats = {name: _repeats(job, per_round) for name, job in jobs.items()}
    best = dict.fromkeys(jobs, float("inf"))
    gc.collect()
    for _ in range(rounds):
        for name, job in jobs.items():
            best[name] = min(best[name], _once(job, repeats[name]))
    return best


def _repeats(job: Job, per_round: float) -> int:
    job()  # the first run pays for imports and caches
    return max(1, int(per_round / max(_once(job, 1), 1e-9)))


def _once(job: Job, repeats: int) -> float:
    start = perf_counter()
    for _ in range(repeats):
        job()
    return (perf_counter() - start) / repeats
