"""Timing of what waits for disks and servers: batches in turn, of which the best counts.

A batch is short, so that one of many is not disturbed even on a busy machine; but not so short
that it leaves out what a store does only now and then (a log folded into its file).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

Batch = Callable[[], Awaitable[float]]
"""Does something a number of times, and returns the seconds for one of them."""
_ROUNDS = 31
_ENOUGH = 3.0  # seconds: who takes this long all together gets no further turn
_FEWEST = 2  # turns that everyone gets


async def in_turn(batches: Mapping[str, Batch]) -> dict[str, float]:
    """Seconds for one of each, in its best batch."""
    best = dict.fromkeys(batches, float("inf"))
    spent = dict.fromkeys(batches, 0.0)
    for batch in batches.values():
        await batch()  # the first one pays for imports and caches
    gc.collect()
    gc.freeze()  # what all the peers' imports have left behind is no part of anyone's work
    try:
        for turn in range(_ROUNDS):
            for name, batch in batches.items():
                if spent[name] < _ENOUGH or turn < _FEWEST:
                    start = perf_counter()
                    best[name] = min(best[name], await batch())
                    spent[name] += perf_counter() - start
    finally:
        gc.unfreeze()
    return best


def each(action: Callable[[Any], Awaitable[object]], prepare: Callable[[], Sequence[Any]]) -> Batch:
    """A batch of an action, on things that are prepared before the clock runs."""

    async def batch() -> float:
        things = prepare()
        start = perf_counter()
        for thing in things:
            await action(thing)
        return (perf_counter() - start) / len(things)

    return batch


def each_blocking(action: Callable[[Any], object], prepare: Callable[[], Sequence[Any]]) -> Batch:
    """The same, for an action that does not wait."""

    async def batch() -> float:
        things = prepare()
        start = perf_counter()
        for thing in things:
            action(thing)
        return (perf_counter() - start) / len(things)

    return batch


def at_once(
    actions: Sequence[Callable[[Any], Awaitable[object]]], prepare: Callable[[], Sequence[Any]]
) -> Batch:
    """The same for several tasks, each with an action and things of its own; seconds for one."""

    async def task(action: Callable[[Any], Awaitable[object]], things: Sequence[Any]) -> None:
        for thing in things:
            await action(thing)

    async def batch() -> float:
        work = [(action, prepare()) for action in actions]
        start = perf_counter()
        await asyncio.gather(*(task(action, things) for action, things in work))
        return (perf_counter() - start) / sum(len(things) for _, things in work)

    return batch
