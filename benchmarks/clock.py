"""Timing: the best of many short rounds, ours and the peers' in turn: noise hits all alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

Job = Callable[[], Any]


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
    jobs: Mapping[str, Sequence[Job]], *, rounds: int = 7, enough: float = 0.02
) -> dict[str, float]:
    """Seconds for all of the jobs that each name has: the sum of each job's best round.

    The names' jobs are the same work, one by one, and take turns. One that has run `enough`
    seconds needs no further round: it is long enough for noise not to matter as much.
    """
    total = dict.fromkeys(jobs, 0.0)
    gc.collect()
    gc.freeze()
    try:
        for turn in zip(*jobs.values(), strict=True):
            for name, value in zip(total, _best(turn, rounds, enough), strict=True):
                total[name] += value
    finally:
        gc.unfreeze()
    return total


def _best(turn: Sequence[Job], rounds: int, enough: float) -> list[float]:
    best, spent = [float("inf")] * len(turn), [0.0] * len(turn)
    for _ in range(rounds):
        for place, job in enumerate(turn):
            if spent[place] < enough:
                took = _once(job, 1)
                best[place] = min(best[place], took)
                spent[place] += took
    return best


def _repeats(job: Job, per_round: float) -> int:
    job()  # the first run pays for imports and caches
    return max(1, int(per_round / max(_once(job, 1), 1e-9)))


def _once(job: Job, repeats: int, clock: Callable[[], float] = perf_counter) -> float:
    start = clock()
    for _ in range(repeats):
        job()
    return (clock() - start) / repeats
