"""Timing: the best of many short rounds, ours and the peers' in turn: noise hits all alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, thread_time
from typing import Any

Job = Callable[[], Any]
_WARMING = 5


def seconds(
    jobs: Mapping[str, Job],
    *,
    rounds: int = 15,
    per_round: float = 0.02,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, float]:
    """Seconds for one run of each job: the best round counts.

    With `thread_time` for a clock, the neighbours on a busy machine count less.
    """
    repeats = {name: _repeats(job, per_round) for name, job in jobs.items()}
    best = dict.fromkeys(jobs, float("inf"))
    gc.collect()
    gc.freeze()  # what all the peers' imports have left behind is no part of anyone's work
    try:
        for _ in range(rounds):
            for name, job in jobs.items():
                best[name] = min(best[name], _once(job, repeats[name], clock))
    finally:
        gc.unfreeze()
    return best


def summed(
    jobs: Mapping[str, Sequence[Job]],
    *,
    rounds: int = 5,
    clock: Callable[[], float] = thread_time,
) -> dict[str, float]:
    """Seconds of CPU time for all of the jobs that each name has: the sum of each job's best round.

    The names take turns, each with all of its jobs: so whoever is timed has just been at work, as a
    server is, and nobody pays for what another one has pushed out of the processor's caches. Every
    job has the same number of rounds, however long it takes.
    """
    best = {name: [float("inf")] * len(own) for name, own in jobs.items()}
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            for name, own in jobs.items():
                took = [_once(job, 1, clock) for job in own]
                best[name] = list(map(min, best[name], took))
    finally:
        gc.unfreeze()
    return {name: sum(values) for name, values in best.items()}


def _repeats(job: Job, per_round: float) -> int:
    """How often to run a job in a round, so that all rounds take as long.

    The first runs pay for imports and caches, and a neighbour may slow one down: by them, a quick
    job would run a few times only, and be measured cold beside others that are warm.
    """
    fastest = min(_once(job, 1) for _ in range(_WARMING))
    return max(1, int(per_round / max(fastest, 1e-9)))


def _once(job: Job, repeats: int, clock: Callable[[], float] = perf_counter) -> float:
    start = clock()
    for _ in range(repeats):
        job()
    return (clock() - start) / repeats
